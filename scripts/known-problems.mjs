// Compares docs/known-problems.md with the tests. Each problem must have one row. Each file that the row links to must
// contain a test with the problem's number, as a tag or, in testkit's suites, in the title. Each property (H, L) must
// have a test and a row in docs/protocol.md.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import config from "../vitest.config.ts"
import { filesBelow, packageFolders, root, shown } from "./lib/workspace.mjs"

const suites = ["packages/testkit/src/internal/suite", "packages/testkit/src/streams/internal/suite"]
const files = [
  ...packageFolders.flatMap((folder) => filesBelow(join(folder, "test"), (name) => name.endsWith(".test.ts"))),
  ...suites.flatMap((folder) => filesBelow(join(root, folder), (name) => name.endsWith(".ts")))
]
const numbersIn = (text) =>
  [...text.matchAll(/tags: \[([^\]]*)\]|\(\s*"([A-Z]\d+(?:, [A-Z]\d+)*):|\(([A-Z]\d+(?:, [A-Z]\d+)*)\)"/g)]
    .flatMap(([text]) => text.match(/[A-Z]\d+/g) ?? [])
const tested = new Map(files.map((path) => [shown(path), new Set(numbersIn(readFileSync(path, "utf8")))]))
const isTestedIn = (names, number) => names.some((name) => tested.get(name)?.has(number))

const problems = []
const rows = new Map()
let isInScope = true
for (const line of readFileSync(join(root, "docs/known-problems.md"), "utf8").split("\n")) {
  if (line.startsWith("## ")) isInScope = line !== "## Out of scope"
  const numbers = /^\| *([A-Z]\d+(?:, [A-Z]\d+)*) *\|/.exec(line)?.[1].split(", ") ?? []
  const named = [...line.matchAll(/\]\(\.\.\/([^)]+\.ts)\)/g)].map(([, file]) => file)
  for (const number of numbers) {
    if (rows.has(number)) problems.push(`${number} has two rows`)
    if (isInScope && !isTestedIn(named, number)) {
      problems.push(`${number}: no test in ${named.join(", ")} has this number`)
    }
    if (!isInScope && isTestedIn([...tested.keys()], number)) {
      problems.push(`${number} is "Out of scope", but has a test`)
    }
    rows.set(number, isInScope)
  }
  for (const name of named.filter((name) => !numbers.some((number) => isTestedIn([name], number)))) {
    problems.push(`${numbers.join(", ")}: ${name} has no test for it`)
  }
}

const protocol = readFileSync(join(root, "docs/protocol.md"), "utf8")
const known = config.test.tags.map(({ name }) => name).filter((name) => /^[A-Z]\d+$/.test(name))
for (const number of known) {
  const isProperty = /^[HL]/.test(number)
  if (isProperty && !isTestedIn([...tested.keys()], number)) problems.push(`no test has the property ${number}`)
  if (isProperty && !new RegExp(`^\\| ${number} +\\|`, "m").test(protocol)) {
    problems.push(`docs/protocol.md lacks ${number}`)
  }
  if (!isProperty && !rows.has(number)) problems.push(`${number} has no row`)
}
for (const number of rows.keys()) if (!known.includes(number)) problems.push(`vitest.config.ts has no tag ${number}`)

for (const problem of problems) console.error(`docs/known-problems.md: ${problem}`)
const inScope = [...rows.values()].filter(Boolean).length
console.log(`known problems: ${inScope} tested, ${rows.size - inScope} out of scope; ${problems.length} problem(s)`)
process.exitCode = problems.length > 0 ? 1 : 0
