// Checks that each name that a public module exports has:
//
// - a sentence in its doc comment, `@since`, and one of Effect's `@category` values;
// - an example, unless it is a model, options or a metric. The example is in the name's comment or in the module's
//   header.
//
// Also checks that a module declares what it exports and begins with a sentence and `@since`, and that examples use
// what they import.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fencedBlocks } from "./doc-blocks.mjs"
import { shown } from "./workspace.mjs"

const declaration =
  /^export (?:declare )?(?:abstract )?(?:const|let|function\*?|class|interface|type|namespace|enum) (\w+)/

/** The categories of Effect's own modules. */
const categories = new Set([
  "combinators",
  "configuration",
  "constants",
  "constructors",
  "errors",
  "formatting",
  "getters",
  "guards",
  "layers",
  "metrics",
  "models",
  "options",
  "ordering",
  "references",
  "running",
  "schemas",
  "services",
  "testing"
])

const withoutExample = new Set(["metrics", "models", "options"])

/** The text of the doc comment directly above a line, or at the start of the file. */
const commentAbove = (lines, index) => {
  if (!/\*\/\s*$/.test(lines[index - 1] ?? "")) return ""
  let first = index - 1
  while (first > 0 && !/^\s*\/\*\*/.test(lines[first])) first -= 1
  return lines.slice(first, index).map((line) => line.replace(/^\s*(?:\/\*\*|\*\/|\*) ?|\*\/$/g, "")).join("\n")
}

const proseOf = (comment) => comment.split(/^(?:@\w+|\*\*|```)/m)[0].trim()

const examplesOf = (comment) =>
  comment.includes("**Example**")
    ? fencedBlocks(comment).filter(({ language }) => language === "ts").map(({ code }) => code)
    : []

const isWord = (code, word) => new RegExp(`(?<![\\w$])${word}\\b`).test(code)

/** The names that an example imports and does not use. */
const unused = (example) => {
  const body = example.replace(/^import .*$|\/\/.*$/gm, "")
  const imported = [...example.matchAll(/^import (?:type )?(?:\* as (\w+)|\{([^}]*)\})/gm)]
    .flatMap(([, namespace, names]) => namespace ?? names.split(",").map((part) => part.trim().split(" ").at(-1)))
  return imported.filter((name) => !isWord(body, name))
}

const check = (path, report) => {
  const text = readFileSync(path, "utf8")
  const lines = text.split("\n")
  const header = commentAbove(lines, lines.indexOf(" */") + 1)
  if (proseOf(header) === "" || !/^@since \S/m.test(header)) report(1, "a module begins with a sentence and `@since`")
  const names = new Set()
  let called = 0
  let members = 0
  const checkComment = (comment, line) => {
    for (const name of examplesOf(comment).flatMap(unused)) {
      report(line, `an example imports ${name} and does not use it`)
    }
  }
  checkComment(header, 1)
  // A type and a value with the same name share an example
  const own = new Set(
    lines.flatMap((line, index) => {
      const name = /^export\b/.test(line) ? declaration.exec(line)?.[1] : undefined
      return name !== undefined && examplesOf(commentAbove(lines, index)).length > 0 ? [name] : []
    })
  )
  lines.forEach((line, index) => {
    if (!/^export\b/.test(line)) return
    const name = declaration.exec(line)?.[1]
    if (name === undefined) return report(index + 1, "a public module declares what it exports")
    names.add(name)
    members += membersOf(lines, index)
    const comment = commentAbove(lines, index)
    const category = /^@category (.+)$/m.exec(comment)?.[1]
    if (proseOf(comment) === "") report(index + 1, `${name} has no description`)
    if (!/^@since \S/m.test(comment)) report(index + 1, `${name} has no \`@since\``)
    if (!categories.has(category)) report(index + 1, `${name} has none of Effect's \`@category\` values`)
    const isShown = own.has(name) || examplesOf(header).some((example) => isWord(example, name))
    if (!withoutExample.has(category)) called += 1
    if (!withoutExample.has(category) && !isShown) report(index + 1, `${name} has no example`)
    checkComment(comment, index + 1)
  })
  return { names: names.size, called, members }
}

/** Counts the members of a constant that is a record, such as a group of metrics. */
const membersOf = (lines, index) => {
  if (!/^export const \w+(?:: \{| = \{)$/.test(lines[index])) return 0
  const end = lines.findIndex((line, at) => at > index && line.startsWith("}"))
  return lines.slice(index, end).filter((line) => /^ {2}(?:readonly )?\w+: /.test(line)).length
}

/**
 * Checks these packages. Returns the problems, one line each, and counts: names, names that need an example, and
 * members of records.
 */
export const undocumented = (packageFolders, publicModules) => {
  const problems = []
  const total = { names: 0, called: 0, members: 0 }
  for (const folder of packageFolders) {
    for (const module of publicModules(folder)) {
      const path = join(folder, "src", `${module}.ts`)
      const counts = check(path, (line, message) => problems.push(`${shown(path)}:${line}: ${message}`))
      total.names += counts.names
      total.called += counts.called
      total.members += counts.members
    }
  }
  return { ...total, problems }
}
