/**
 * Glob patterns as `stringmatchlen` of Redis understands them: `*`, `?`, `[a-z]`, `[^a]` and backslash escapes.
 */
export const globMatch = (pattern: string, text: string): boolean => match(pattern, 0, text, 0)

const match = (p: string, pi: number, s: string, si: number): boolean => {
  while (pi < p.length && si < s.length) {
    const c = p[pi]
    if (c === "*") {
      while (p[pi + 1] === "*") pi++
      if (pi + 1 >= p.length) return true
      for (let i = si; i <= s.length; i++) {
        if (match(p, pi + 1, s, i)) return true
      }
      return false
    }
    if (c === "[") {
      let i = pi + 1
      const not = p[i] === "^"
      if (not) i++
      let found = false
      for (;;) {
        if (i >= p.length) {
          i--
          break
        }
        if (p[i] === "\\" && i + 1 < p.length) {
          i++
          if (p[i] === s[si]) found = true
        } else if (p[i] === "]") break
        else if (i + 2 < p.length && p[i + 1] === "-") {
          const low = p[i]! < p[i + 2]! ? p[i]! : p[i + 2]!
          const high = p[i]! < p[i + 2]! ? p[i + 2]! : p[i]!
          i += 2
          if (s[si]! >= low && s[si]! <= high) found = true
        } else if (p[i] === s[si]) found = true
        i++
      }
      if (found === not) return false
      pi = i
    } else if (c !== "?") {
      if (c === "\\" && pi + 1 < p.length) pi++
      if (p[pi] !== s[si]) return false
    }
    si++
    pi++
    if (si >= s.length) {
      while (p[pi] === "*") pi++
      break
    }
  }
  if (si === 0 && s.length === 0) {
    while (p[pi] === "*") pi++
  }
  return pi >= p.length && si >= s.length
}
