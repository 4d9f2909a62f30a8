// Writes the table of mutation scores into docs/how-it-is-tested.md. Areas that were not run keep their rows.
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../lib/workspace.mjs"

const path = join(root, "docs/how-it-is-tested.md")
const [begin, end] = ["<!-- scores of mutants: pnpm mutants --write -->", "<!-- end of scores -->"]

const percent = (part, whole) => whole === 0 ? "-" : `${(100 * part / whole).toFixed(1)}%`

export const writeScores = (reports, longest) => {
  const text = readFileSync(path, "utf8")
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)]
  const rows = new Map(
    text.slice(from, to).split("\n").filter((line) => line.startsWith("| `")).map((line) => [line.split("`")[1], line])
  )
  for (const { area, equivalent, killed, left, listed, mutants, uncovered } of reports) {
    if (left > 0) continue
    const covered = mutants - uncovered
    const cells = [
      `\`${area}\``,
      mutants === listed ? mutants : `${mutants} of ${listed}`,
      uncovered,
      killed,
      equivalent,
      covered - killed - equivalent,
      percent(killed + equivalent, covered)
    ]
    rows.set(area, `| ${cells.join(" | ")} | ${longest} ms |`)
  }
  const table = [
    "| area | mutants | not covered | killed | equivalent | survive | score of covered | tests up to |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ...rows.values()
  ]
  writeFileSync(path, `${text.slice(0, from)}\n\n${table.join("\n")}\n\n${text.slice(to)}`)
}
