// Checks the Lua files, and generates scripts.generated.ts beside each `lua` folder.
//
//   node scripts/lua.mjs            write
//   node scripts/lua.mjs --check    fail if a generated file is out of date
import { readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { folders, includesOf, scriptsOf } from "./lib/lua.mjs"
import { checkInclude, checkScript } from "./lib/luaCheck.mjs"
import { moduleOf } from "./lib/luaModule.mjs"
import { shown } from "./lib/workspace.mjs"

const check = process.argv.includes("--check")
const problems = []
const report = (path, problem) => problems.push(`${shown(path)}: ${problem}`)

for (const folder of folders()) {
  for (const path of includesOf(folder)) checkInclude(path, (problem) => report(path, problem))
  for (const path of scriptsOf(folder)) checkScript(path, (problem) => report(path, problem))
  if (problems.length > 0) continue

  const path = join(folder, "scripts.generated.ts")
  const wanted = moduleOf(folder)
  const present = statSync(path, { throwIfNoEntry: false }) === undefined ? undefined : readFileSync(path, "utf8")
  if (present === wanted) continue
  if (check) report(path, "does not match the Lua files: run `pnpm lua`")
  else {
    writeFileSync(path, wanted)
    console.log(`wrote ${shown(path)}`)
  }
}

for (const problem of problems) console.error(problem)
process.exitCode = problems.length > 0 ? 1 : 0
