// Writes the table of broken rules into docs/how-it-is-tested.md.
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../lib/workspace.mjs"

const path = join(root, "docs/how-it-is-tested.md")
const [begin, end] = ["<!-- broken rules: pnpm rules --write -->", "<!-- end of rules -->"]

const cell = (result, none) =>
  result === undefined ? "not run" : result.found ? result.by : result.found === false ? none(result) : result.by

export const writeRules = (rules) => {
  const text = readFileSync(path, "utf8")
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)]
  const rows = rules.map(({ results: { explorer, seeds, tests }, rule }) =>
    `| ${rule} | ${cell(explorer, ({ schedules }) => `none of ${schedules} schedules`)} | ${
      cell(seeds, ({ seeds }) => `none of ${seeds}`)
    } | ${cell(tests, () => "none")} |`
  )
  const table = ["| rule | explorer | seeds | the module's tests |", "| --- | --- | --- | --- |", ...rows]
  writeFileSync(path, `${text.slice(0, from)}\n\n${table.join("\n")}\n\n${text.slice(to)}`)
}
