// Checks that docs/monitoring.md lists every log line and metric of core and redis, and none that do not exist.
//
//   node scripts/log-lines.mjs
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { filesBelow, root, shown } from "./lib/workspace.mjs"

const page = readFileSync(join(root, "docs/monitoring.md"), "utf8")
const problems = []
const sources = ["core", "redis"].flatMap((name) =>
  filesBelow(join(root, "packages", name, "src"), (file) => file.endsWith(".ts"))
)

/** The constant parts of a template that are long enough to search for. Cuts the template off at a nested template. */
const partsOf = (template) =>
  template.split(/\$\{(?:[^{}]|\{[^}]*\})*\}/).map((part) => part.replace(/\$\{[\s\S]*$/, "").trim())
    .filter((part) => part.length >= 8)

const call = /\blog\.(?:error|warning|info|debug|at\([\w.]+\))\(\s*("[^"\n]*"|`(?:[^`])*?`)/g
let lines = 0
for (const path of sources) {
  const text = readFileSync(path, "utf8")
  for (const { 1: literal, index } of text.matchAll(call)) {
    lines += 1
    const parts = partsOf(literal.slice(1, -1))
    const longest = parts.toSorted((a, b) => b.length - a.length)[0]
    if (longest === undefined || page.includes(longest.slice(0, 40))) continue
    problems.push(`${shown(path)}:${text.slice(0, index).split("\n").length}: docs/monitoring.md lacks ${literal}`)
  }
}

const all = sources.map((path) => readFileSync(path, "utf8")).join("\n").replace(
  /"\s*\+\s*"|`\s*\+\s*`|"\s*\+\s*`|`\s*\+\s*"/g,
  ""
)
const sections = page.split(/^##+ /m).filter((section) => section.startsWith("Log lines"))
for (const section of sections) {
  for (const [row, text] of section.matchAll(/^\| `([^`]+)`/gm)) {
    const words = text.replace(/<[^>]+>|\.\.\.|"\w"/g, "|").split("|").map((part) => part.trim().split(/\s+/))
    const runs = words.flatMap((part) =>
      part.map((_, at) => part.slice(at, at + 3).join(" ")).slice(0, Math.max(1, part.length - 2))
    )
    if (!runs.some((run) => run.length >= 8 && all.includes(run))) {
      problems.push(`docs/monitoring.md: no log line has ${row}`)
    }
  }
}

const metricsIn = (text) => new Set(text.match(/(?<![\w-])simba_(?!fences)[a-z_]+[a-z]/g))
const written = metricsIn(sources.map((path) => readFileSync(path, "utf8")).join("\n"))
const described = metricsIn(page)
for (const name of written.difference(described)) problems.push(`docs/monitoring.md lacks the metric ${name}`)
for (const name of described.difference(written)) problems.push(`docs/monitoring.md: there is no metric ${name}`)

for (const problem of problems) console.error(problem)
console.log(`${lines} log lines and ${written.size} metrics in docs/monitoring.md: ${problems.length} problem(s)`)
process.exitCode = problems.length > 0 ? 1 : 0
