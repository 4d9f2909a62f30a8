/**
 * Matches glob patterns like Redis's `stringmatchlen`: `*`, `?`, `[a-z]`, `[^a]` and backslash escapes. On a mismatch,
 * only the last star takes one more character. A longer match for an earlier star would only leave less text for the
 * rest of the pattern. The time is therefore at most proportional to the product of both lengths.
 */
export const globMatch = (pattern: string, text: string): boolean => {
  // In Redis, only an empty pattern matches an empty text
  if (text === "") return pattern === ""
  let at = 0
  let pi = 0
  let star = -1
  let starAt = 0
  while (at < text.length) {
    if (pattern[pi] === "*") {
      while (pattern[pi + 1] === "*") pi++
      if (pi + 1 === pattern.length) return true
      star = ++pi
      starAt = at
      continue
    }
    const next = pi < pattern.length ? matchOne(pattern, pi, text[at]!) : -1
    if (next >= 0) {
      pi = next
      at++
      if (at < text.length) continue
      while (pattern[pi] === "*") pi++
      if (pi >= pattern.length) return true
    }
    if (star < 0) return false
    pi = star
    at = ++starAt
  }
  return false
}

/** Matches one character. Returns the index at which the pattern continues, or -1. */
const matchOne = (pattern: string, at: number, character: string): number => {
  const first = pattern[at]!
  if (first === "?") return at + 1
  if (first === "[") return matchClass(pattern, at + 1, character)
  const literal = first === "\\" && at + 1 < pattern.length ? at + 1 : at
  return pattern[literal] === character ? literal + 1 : -1
}

/**
 * Matches a class that starts after the bracket at `start - 1`. An unclosed class extends to the end of the pattern.
 */
const matchClass = (pattern: string, start: number, character: string): number => {
  let at = start
  const not = pattern[at] === "^"
  if (not) at++
  let found = false
  for (; at < pattern.length && pattern[at] !== "]"; at++) {
    if (pattern[at] === "\\" && at + 1 < pattern.length) {
      at++
      if (pattern[at] === character) found = true
    } else if (at + 2 < pattern.length && pattern[at + 1] === "-") {
      const [low, high] = [signed(pattern[at]!), signed(pattern[at + 2]!)]
      at += 2
      const code = signed(character)
      if (code >= Math.min(low, high) && code <= Math.max(low, high)) found = true
    } else if (pattern[at] === character) found = true
  }
  return found === not ? -1 : at + 1
}

/** Redis compares bytes as signed chars if its compiler makes them signed, as on x86. */
const signed = (character: string): number => (character.charCodeAt(0) << 24) >> 24
