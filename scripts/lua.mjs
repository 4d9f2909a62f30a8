// Writes scripts.generated.ts beside each folder `lua`: the texts of its scripts.
//
//   node scripts/lua.mjs            write
//   node scripts/lua.mjs --check    fail when it is not what would be written
import { readFileSync, statSync, writeFileSync } from "node:fs"
import { folders, moduleOf, modulePath } from "./lib/lua.mjs"
import { shown } from "./lib/workspace.mjs"

const check = process.argv.includes("--check")
const problems = []

for (const folder of folders()) {
  const path = modulePath(folder)
  const wanted = moduleOf(folder)
  const present = statSync(path, { throwIfNoEntry: false }) === undefined ? undefined : readFileSync(path, "utf8")
  if (present === wanted) continue
  if (check) problems.push(`${shown(path)} does not match the Lua files beside it: run \`pnpm lua\``)
  else {
    writeFileSync(path, wanted)
    console.log(`wrote ${shown(path)}`)
  }
}

for (const problem of problems) console.error(problem)
process.exitCode = problems.length > 0 ? 1 : 0
