// Splits a TypeScript module by what its characters are, without a parser. Both results have the lines and columns of
// the module; everything that does not belong is blank:
//
// - `code`: no comments, no text of strings, templates and regular expressions
// - `lua`: the text of those strings and templates that look like Lua for Redis (they contain `redis.call`, `KEYS[` or
//   `ARGV[`, or are tagged `/* lua */`), without Lua's comments
export const blankOut = (text) => {
  const code = text.split("")
  const lua = text.replace(/[^\n]/g, " ").split("")
  const blank = (from, to) => {
    for (let i = from; i < to; i++) if (code[i] !== "\n") code[i] = " "
  }
  const string = (from, to, start) => {
    blank(from, to)
    const content = text.slice(from, to)
    if (!/redis\.p?call|KEYS\[|ARGV\[/.test(content) && !/\/\*\s*lua\s*\*\/\s*$/.test(text.slice(0, start))) return
    const uncommented = content.replace(/--[^\n]*/g, (comment) => " ".repeat(comment.length))
    for (let i = 0; i < uncommented.length; i++) lua[from + i] = uncommented[i]
  }

  // Each open brace of code, true for one that was opened by `${` in a template.
  const braces = []
  let significant = ""
  let i = 0
  const template = (start) => {
    const from = i
    while (i < text.length) {
      if (text[i] === "\\") i += 2
      else if (text[i] === "`") {
        string(from, i, start)
        i += 1
        return
      } else if (text.startsWith("${", i)) {
        string(from, i, start)
        i += 2
        braces.push(true)
        significant = "{"
        return
      } else i += 1
    }
  }

  while (i < text.length) {
    const c = text[i]
    if (text.startsWith("//", i)) {
      const end = text.indexOf("\n", i)
      blank(i, end === -1 ? text.length : end)
      i = end === -1 ? text.length : end
    } else if (text.startsWith("/*", i)) {
      const end = text.indexOf("*/", i + 2)
      const to = end === -1 ? text.length : end + 2
      blank(i, to)
      i = to
    } else if (c === "\"" || c === "'") {
      const start = i
      i += 1
      while (i < text.length && text[i] !== c && text[i] !== "\n") i += text[i] === "\\" ? 2 : 1
      string(start + 1, i, start)
      i += 1
      significant = "\""
    } else if (c === "`") {
      const start = i
      i += 1
      significant = "\""
      template(start)
    } else if (c === "/" && !/[\w$)\]}"]/.test(significant)) {
      const start = i
      let inClass = false
      i += 1
      while (i < text.length && text[i] !== "\n" && (text[i] !== "/" || inClass)) {
        if (text[i] === "[") inClass = true
        else if (text[i] === "]") inClass = false
        i += text[i] === "\\" ? 2 : 1
      }
      blank(start + 1, i)
      i += 1
      significant = "\""
    } else if (c === "{") {
      braces.push(false)
      significant = c
      i += 1
    } else if (c === "}") {
      i += 1
      significant = c
      if (braces.pop() === true) {
        significant = "\""
        template(i - 1)
      }
    } else {
      if (!/\s/.test(c)) significant = c
      i += 1
    }
  }
  return { code: code.join(""), lua: lua.join("") }
}
