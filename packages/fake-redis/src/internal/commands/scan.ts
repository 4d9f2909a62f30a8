/**
 * Cursors for SCAN, HSCAN, SSCAN and ZSCAN. Elements are visited in the order of a hash of their bytes, and a cursor is
 * a position in that order. A scan therefore finds every element that exists throughout the scan, regardless of other
 * changes.
 */
import { globMatch } from "../glob.ts"
import { integer } from "../numbers.ts"
import { fail, syntaxError } from "../reply.ts"

const hash = (text: string): number => {
  let h = 0x811c9dc5
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193)
  return h >>> 0
}

/** Returns one page. The cursor is `args[at]`; the options follow. A compact collection fits in a single page. */
export const scanPage = (
  names: ReadonlyArray<string>,
  args: ReadonlyArray<string>,
  at: number,
  isCompact: boolean
): readonly [cursor: string, page: ReadonlyArray<string>] => {
  const cursorText = args[at]!
  if (!/^[+-]?[0-9]{1,20}$/.test(cursorText)) return fail("ERR invalid cursor")
  let pattern: string | undefined
  let count = 10
  for (let i = at + 1; i < args.length; i += 2) {
    const option = args[i]!.toLowerCase()
    const value = args[i + 1]
    if (value === undefined) return syntaxError()
    if (option === "match") pattern = value
    else if (option === "count") {
      count = integer(value)
      if (count < 1) return syntaxError()
    } else return syntaxError()
  }
  const wanted = (page: ReadonlyArray<string>) =>
    pattern === undefined || pattern === "*" ? page : page.filter((name) => globMatch(pattern, name))
  if (isCompact) return ["0", wanted(names)]
  const cursor = Number(cursorText)
  const rest = names.map((name) => ({ name, order: hash(name) })).filter((item) => item.order >= cursor)
    .sort((a, b) => a.order - b.order || (a.name < b.name ? -1 : 1))
  let end = Math.min(count, rest.length)
  while (end < rest.length && rest[end]!.order === rest[end - 1]!.order) end++
  return [end < rest.length ? String(rest[end]!.order) : "0", wanted(rest.slice(0, end).map((item) => item.name))]
}
