// What a public module exports, and whether each name is documented. A name has to have
//
// - a sentence in a doc comment of its own (a type beside a value of the same name shares it), with `@since` in each;
// - an example that uses it: in its own comment, in the header of its module, or in the comment of another export that
//   it names by `@see {@link Name}` or `@see {@link Module.Name}`.
//
// An example uses a value by importing it, and an error also by its tag. It uses a type by importing it, or by one of its
// members.
import { readFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { blankOut } from "./blank-out.mjs"
import { shown } from "./workspace.mjs"

const declaration =
  /^export (?:declare )?(?:abstract )?(const|let|function\*?|class|interface|type|namespace|enum) (\w+)/
const reExport = /^export (?:type )?\{([^}]*)\}(?: from "([^"]+)")?\n/
const beginning = /^(?:\/\*\*|\/\/|export\b|import\b|const\b|let\b|type\b|interface\b|class\b|function\b)/

/** The text of a comment without its stars. */
const textOf = (comment) => comment.map((line) => line.replace(/^\s*(?:\/\*\*|\*\/|\*) ?|\*\/$/g, "")).join("\n")

/** The comment that ends in the line above `index`. */
const commentAbove = (lines, index) => {
  if (!/\*\/\s*$/.test(lines[index - 1] ?? "")) return ""
  let first = index - 1
  while (first > 0 && !/^\s*\/\*\*/.test(lines[first])) first -= 1
  return textOf(lines.slice(first, index))
}

const examplesOf = (comment) =>
  comment.includes("**Example**") ? [...comment.matchAll(/^```ts\n([^]*?)^```$/gm)].map((match) => match[1]) : []

/** What comes before examples and tags. */
const proseOf = (comment) => comment.split(/^(?:@\w+|\*\*Example\*\*|```)/m)[0].trim()

/** What a type is made of, as an example of it must name: properties, tags and other literals. */
const membersOf = (text, code) => {
  const properties = [...code.matchAll(/\breadonly (\w+)\??:/g)].map((match) => match[1])
  const literals = [...text.replace(/\/\*[^]*?\*\//g, "").matchAll(/"(\w+)"/g)].map((match) => match[1])
  return { properties: properties.filter((name) => name !== "_tag"), literals }
}

const exportsOf = (path) => {
  const text = readFileSync(path, "utf8")
  const lines = text.split("\n")
  const code = blankOut(text).code.split("\n")
  const found = new Map()
  const unread = []
  const shared = []
  const add = (name, kind, comment, index, members) => {
    const entry = found.get(name) ?? { name, line: index + 1, comments: [], isType: true, members: [] }
    if (kind !== "type" && kind !== "interface") entry.isType = false
    // Further signatures of a function are described by the first
    if (kind !== "function" || entry.comments.length === 0) entry.comments.push(comment)
    entry.members.push(members)
    found.set(name, entry)
  }
  lines.forEach((line, index) => {
    if (!/^export\b/.test(code[index])) return
    const declared = declaration.exec(line)
    if (declared !== null) {
      let end = index + 1
      while (end < lines.length && !beginning.test(lines[end])) end += 1
      const whole = lines.slice(index, end).join("\n")
      const members = membersOf(whole, code.slice(index, end).join("\n"))
      add(declared[2], declared[1], commentAbove(lines, index), index, members)
      found.get(declared[2]).isError = /\bSchema\.TaggedError\b/.test(whole)
      return
    }
    const given = reExport.exec(`${lines.slice(index).join("\n")}\n`)
    if (given === null) return unread.push({ line: index + 1 })
    for (const name of given[1].split(",").map((part) => part.trim())) {
      const importing = new RegExp(`^import (?:type )?\\{[^}]*\\b${name}\\b[^}]*\\} from "([^"]+)"`, "m")
      const from = given[2] ?? importing.exec(text)?.[1]
      const isOwn = new RegExp(`^(?:const|class|function|type|interface) ${name}\\b`, "m").test(text)
      if (isOwn || from === undefined || !from.startsWith("./")) unread.push({ line: index + 1 })
      // A public module documents what it has; of a private one it is this one's part
      else if (/^\.\/\w+\.ts$/.test(from)) shared.push({ name, from: basename(from, ".ts") })
      else if (from.startsWith("./internal/")) {
        const origin = exportsOf(join(dirname(path), from)).found.get(name)
        if (origin === undefined) unread.push({ line: index + 1 })
        else found.set(name, { ...origin, line: index + 1 })
      }
    }
  })
  const header = text.startsWith("/**") ? textOf(text.slice(0, text.indexOf("*/")).split("\n")) : ""
  return { found, unread, shared, header }
}

/** Names that an example has imported, and what it does with them: text without imports, comments and string texts. */
const readExample = (text) => {
  const pattern = /^import (?:type )?(?:\* as (\w+)|\{([^}]*)\}) from "([^"]+)"$/gm
  const imports = [...text.matchAll(pattern)].flatMap(([, namespace, names, from]) =>
    namespace !== undefined ? [{ local: namespace, imported: "*", from }] : names.split(",").map((part) => {
      const [imported, local = imported] = part.trim().replace(/^type /, "").split(" as ")
      return { local, imported, from }
    })
  )
  const body = text.replace(/^import .*$/gm, "")
  return { imports, body, code: blankOut(body).code }
}

const isWord = (code, word) => new RegExp(`(?<![\\w$.])${word}\\b`).test(code)

/** Whether an example imports `name` of a module and does something with it. */
const imports = (example, { module, name, scope }) =>
  example.imports.some(({ from, imported, local }) =>
    from === dirname(`${scope}/${module}`) && imported === basename(module) ||
      from === `${scope}/${module}` && imported === "*"
      ? new RegExp(`(?<![\\w$.])${local}\\.${name}\\b`).test(example.code)
      : from === `${scope}/${module}` && imported === name && isWord(example.code, local)
  )

const namesMember = (example, members) =>
  members.some(({ literals, properties }) =>
    properties.some((name) => new RegExp(`\\.${name}\\b|\\b${name}:|[{,]\\s*${name}\\s*[,}]`).test(example.code)) ||
    literals.some((text) => example.body.includes(`"${text}"`) || new RegExp(`\\.${text}\\b`).test(example.code))
  )

const isCovered = (text, target) => {
  const example = readExample(text)
  return target.places.some((module) => imports(example, { ...target, module })) ||
    target.isError && example.body.includes(`"${target.name}"`) ||
    target.isType && namesMember(example, target.members)
}

/** What an example imports and does not use. */
const unused = (text) => {
  const { code, imports } = readExample(text)
  return imports.filter(({ local }) => !isWord(code, local)).map(({ local }) => local)
}

/** What is missing in the documentation of these packages, one line each, and how many names were looked at. */
export const undocumented = (packageFolders, publicModules) => {
  const problems = []
  const modules = packageFolders.flatMap((folder) =>
    publicModules(folder).map((module) => {
      const path = join(folder, "src", `${module}.ts`)
      return { path, module, scope: `@effect-simba/${basename(folder)}`, ...exportsOf(path) }
    })
  )
  const linked = (from, link) => {
    const [name, module = basename(from.module)] = link.split(".").reverse()
    return modules.filter((other) =>
      basename(other.module) === module && (module !== basename(from.module) || other === from)
    )
      .map((other) => other.found.get(name)).find((entry) => entry !== undefined)
  }
  let names = 0
  for (const module of modules) {
    const { found, header, path, scope, shared, unread } = module
    const report = (line, message) => problems.push(`${shown(path)}:${line}: ${message}`)
    for (const { line } of unread) report(line, "an export of this form cannot be checked for its documentation")
    for (const { from, name } of shared) {
      const origin = modules.find((other) => other.scope === scope && other.module === from)
      if (origin?.found.has(name) !== true) report(1, `${name} comes from ${from}, which does not declare it`)
    }
    if (proseOf(header) === "" || !/^@since \S/m.test(header)) report(1, "a module begins with a sentence and `@since`")
    for (const example of examplesOf(header)) {
      for (const name of unused(example)) report(1, `an example imports ${name} and does not use it`)
    }
    for (const { comments, isError, isType, line, members, name } of found.values()) {
      if (comments.some((comment) => /^@internal\b/m.test(comment))) continue
      names += 1
      if (comments.every((comment) => proseOf(comment) === "")) report(line, `${name} has no description`)
      if (comments.some((comment) => !/^@since \S/m.test(comment))) report(line, `${name} has no \`@since\``)
      const own = comments.flatMap(examplesOf)
      for (const example of own) {
        for (const imported of unused(example)) report(line, `an example imports ${imported} and does not use it`)
      }
      const alsoIn = modules.filter((other) =>
        other.scope === scope && other.shared.some((item) => item.name === name && item.from === module.module)
      )
      const places = [module, ...alsoIn].map((place) => place.module)
      const target = { places, scope, name, isError, isType, members }
      const links = [...comments.join("\n").matchAll(/@see \{@link ([\w.]+)\}/g)].map(([, link]) => link)
      const elsewhere = links.flatMap((link) => {
        const entry = linked(module, link)
        if (entry === undefined) report(line, `${name} refers to ${link}, which is not exported`)
        return entry === undefined ? [] : entry.comments.flatMap(examplesOf)
      })
      // A header is everybody's: there a type counts only by its name
      const isShown = [...own, ...elsewhere].some((example) => isCovered(example, target)) ||
        examplesOf(header).some((example) => isCovered(example, { ...target, isType: false }))
      if (!isShown) {
        report(
          line,
          own.length > 0
            ? `the example of ${name} does not use it`
            : links.length > 0
            ? `${name} is not used in the example of ${links.join(" or ")}`
            : `${name} has no example`
        )
      }
    }
  }
  return { names, problems }
}
