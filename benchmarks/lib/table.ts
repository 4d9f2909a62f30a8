/** Results as tables: for a terminal, and for Markdown. */
import type { Other, Row } from "./row.ts"
import { inWords } from "./stolen.ts"

const number = (value: number | undefined): string =>
  value === undefined || Number.isNaN(value)
    ? "-"
    : Math.abs(value) >= 1000
    ? Math.round(value).toLocaleString("en-GB")
    : String(Number(value.toPrecision(3)))

const ratio = (value: number | undefined): string =>
  value === undefined || Number.isNaN(value) ? "-" : value < 0.995 ? value.toPrecision(2) : number(value)

const range = ([least, most]: readonly [number, number]) => `${number(least)} to ${number(most)}`

/** Columns as wide as what is in them. */
export const aligned = (lines: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  return lines
    .map((line) => line.map((text, column) => column === 0 ? text.padEnd(widths[0]!) : text.padStart(widths[column]!)))
    .map((cells) => cells.join("  ").trimEnd())
    .join("\n")
}

const remarkOf = ({ stolen }: Row) => {
  const remark = inWords(stolen)
  return remark === undefined ? [] : [[`  (${remark})`, "", "", ""]]
}

const linesOf = (row: Row): ReadonlyArray<ReadonlyArray<string>> => [
  [`${row.title} (${row.unit}, ${row.better} is better)`, "", "", ""],
  ...remarkOf(row),
  ["  ours", number(row.ours), ratio(row.ratio), range(row.spread.ours)],
  ["  raw", number(row.raw), "1", range(row.spread.raw)],
  ...row.others.map((other): ReadonlyArray<string> => [
    `  ${other.name}`,
    number(other.value),
    ratio(other.ratio),
    other.spread === undefined ? other.failure?.split("\n")[0]?.slice(0, 60) ?? "" : range(other.spread)
  ])
]

export const readable = (rows: ReadonlyArray<Row>): string =>
  aligned([["", "median", "to raw", "spread"], ...rows.flatMap(linesOf)])

const bold = (text: string) => `**${text}**`
const cell = (text: string) => text.replaceAll("|", "\\|")

const otherCells = (other: Other) => [
  cell(other.name),
  other.value === undefined ? `failed: ${cell(other.failure?.split("\n")[0] ?? "")}` : number(other.value),
  ratio(other.ratio),
  other.spread === undefined ? "" : range(other.spread)
]

/** One Markdown table for a row, with everybody in it. */
export const markdownOf = (row: Row): string => {
  const lines = [
    [`${row.unit}, ${row.better} is better`, "median", "to raw", "spread"],
    ["---", "---:", "---:", "---"],
    [bold("ours"), bold(number(row.ours)), bold(ratio(row.ratio)), range(row.spread.ours)],
    ["raw", number(row.raw), "1", range(row.spread.raw)],
    ...row.others.map(otherCells)
  ]
  const remark = inWords(row.stolen)
  const table = lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n")
  return remark === undefined ? table : `${table}\n\n${remark}.`
}

/** The rows beside those of an earlier run, by their ratios: figures drift with the machine, ratios hold better. */
export const compared = (rows: ReadonlyArray<Row>, earlier: ReadonlyArray<Row>): string => {
  const lines = rows.map((row) => {
    const before = earlier.find(({ id }) => id === row.id)
    if (before === undefined) return [row.id, ratio(row.ratio), "-", "new"]
    const change = 100 * (row.ratio / before.ratio - 1)
    const isBetter = row.better === "more" ? change > 0 : change < 0
    const verdict = Math.abs(change) < 10 ? "" : isBetter ? "better" : "worse"
    const sign = change < 0 ? "" : "+"
    return [row.id, ratio(row.ratio), ratio(before.ratio), `${sign}${change.toFixed(0)} % ${verdict}`]
  })
  return aligned([["ratio to raw", "now", "before", "change"], ...lines])
}
