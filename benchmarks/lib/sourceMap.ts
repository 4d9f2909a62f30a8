/** Finds the source file of each piece of a bundle. `size` uses it. */

/** A piece of a bundle. Its source is empty if the map does not name one. */
export interface Piece {
  readonly source: string
  readonly text: string
}

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/**
 * Decodes the numbers in a segment from the base 64 of source maps: five bits per digit, least significant digit first,
 * with the sign in the first digit.
 */
const numbersOf = (segment: string): ReadonlyArray<number> => {
  const numbers: Array<number> = []
  let shift = 0
  let value = 0
  for (const digit of segment) {
    const bits = digits.indexOf(digit)
    value += (bits & 31) << shift
    if ((bits & 32) !== 0) shift += 5
    else {
      numbers.push((value & 1) === 1 ? -(value >> 1) : value >> 1)
      shift = 0
      value = 0
    }
  }
  return numbers
}

export const piecesOf = (code: string, map: string): ReadonlyArray<Piece> => {
  const { mappings, sources } = JSON.parse(map) as { readonly mappings: string; readonly sources: Array<string> }
  const lines = code.split("\n")
  let at = 0
  return mappings.split(";").flatMap((segments, line) => {
    const text = lines[line] ?? ""
    let column = 0
    const starts = segments.split(",").filter((segment) => segment !== "").map((segment) => {
      const [columns, source] = numbersOf(segment)
      column += columns!
      at += source ?? 0
      return { column, source: source === undefined ? "" : sources[at]! }
    })
    const first = { column: 0, source: "" }
    return [first, ...starts].map(({ column, source }, index) => ({
      source,
      text: text.slice(column, starts[index]?.column)
    }))
  })
}
