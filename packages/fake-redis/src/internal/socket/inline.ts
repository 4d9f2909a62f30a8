/**
 * Splits an inline command (a line of plain text) into words, with Redis's rules for quotes and escapes. Called by
 * `requestParser`.
 */
const isSpace = (char: string | undefined): boolean => char !== undefined && /[ \n\r\t\0]/.test(char)

const escapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", b: "\b", a: "\x07" }

/** Returns `undefined` if a quote is not closed, or not followed by a space. */
export const splitInline = (line: string): ReadonlyArray<string> | undefined => {
  const words: Array<string> = []
  let at = 0
  for (;;) {
    while (isSpace(line[at])) at++
    if (at >= line.length) return words
    let word = ""
    while (at < line.length && !isSpace(line[at])) {
      const quote = line[at]
      if (quote !== "\"" && quote !== "'") {
        word += line[at++]
        continue
      }
      at++
      for (;;) {
        const char = line[at]
        if (char === undefined) return undefined
        if (char === quote) break
        const hex = quote === "\"" ? /^\\x([0-9a-fA-F]{2})/.exec(line.slice(at, at + 4)) : null
        if (hex !== null) {
          word += String.fromCharCode(parseInt(hex[1]!, 16))
          at += 4
        } else if (char === "\\" && at + 1 < line.length && (quote === "\"" || line[at + 1] === "'")) {
          const next = line[at + 1]!
          word += quote === "\"" ? escapes[next] ?? next : next
          at += 2
        } else {
          word += char
          at++
        }
      }
      at++
      if (at < line.length && !isSpace(line[at])) return undefined
    }
    words.push(word)
  }
}
