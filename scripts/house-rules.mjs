// The rules of the house that the linter has no words for. Run by `pnpm lint`.
//
// A line is excused by a comment on it, or on a line of its own above it, that says why:
//
//   // house-rule-ok: the client library takes a callback
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { blankOut } from "./lib/blank-out.mjs"
import { filesBelow, packageFolders, root, shown } from "./lib/workspace.mjs"

const maximumLines = 400
const warnedLines = 300

const isCode = (name) => /\.(ts|mts|mjs|js)$/.test(name)
const sources = packageFolders.flatMap((folder) => filesBelow(join(folder, "src"), isCode))
const everything = ["packages", "examples", "benchmarks", "scripts"]
  .flatMap((name) => filesBelow(join(root, name), isCode))
  .filter((path) => !shown(path).includes("/dist/"))

const problems = []
const warnings = []

const excuse = /\/\/\s*house-rule-ok:(.*)$/
const isExcused = (lines, index) => {
  const here = excuse.exec(lines[index])
  const above = /^\s*\/\//.test(lines[index - 1] ?? "") ? excuse.exec(lines[index - 1]) : null
  const reason = (here ?? above)?.[1].trim()
  return reason !== undefined && reason !== ""
}

/** Reports each line of `text` that matches, where `text` has the same lines as the file. */
const forbid = (path, text, pattern, message) => {
  const original = readFileSync(path, "utf8").split("\n")
  text.split("\n").forEach((line, index) => {
    if (pattern.test(line) && !isExcused(original, index)) {
      problems.push(`${shown(path)}:${index + 1}: ${message}`)
    }
  })
}

for (const path of sources) {
  const text = readFileSync(path, "utf8")
  const { code, lua } = blankOut(text)
  forbid(
    path,
    code,
    /(?<![.\w$])(?:async|await)(?![\w$]|\s*[:,}\]])/,
    "no async/await in library code: write an Effect"
  )
  forbid(
    path,
    lua,
    /\bformat\s*\(.*%[-+ #0]*\d*d/,
    "no %d in string.format of Lua: it cuts off at 32 bits on some builds; use %.0f"
  )
  forbid(
    path,
    lua,
    /math\.random/,
    "no math.random in Lua text: scripts must give the same result when they are run again"
  )

  if (path.endsWith(".generated.ts")) continue
  const length = text.split("\n").length - 1
  if (length > maximumLines) problems.push(`${shown(path)}: ${length} lines; split it, ${maximumLines} is the limit`)
  else if (length > warnedLines) warnings.push(`${shown(path)}: ${length} lines, ${maximumLines} is the limit`)
}

const marks = new RegExp(`\\b(?:${["TO" + "DO", "FIX" + "ME", "X".repeat(3)].join("|")})\\b`)
for (const path of everything) {
  const text = readFileSync(path, "utf8")
  forbid(path, text, marks, "no marks for later: do it or leave it out")
  forbid(
    path,
    text,
    /\/[/*]\s*oxlint-disable(?!.*\s--\s+\S)/,
    "say why the linter is wrong here: `-- the reason` at the end"
  )
  forbid(path, text, /house-rule-ok:\s*$/, "say why the rule does not apply here")
}

for (const warning of warnings) console.warn(`warning: ${warning}`)
for (const problem of problems) console.error(problem)
if (problems.length > 0) console.error(`\n${problems.length} problem(s)`)
process.exitCode = problems.length > 0 ? 1 : 0
