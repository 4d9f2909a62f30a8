/** Formats results as tables for a terminal, and in Markdown. */
import type { Profile } from "../work/profile.ts"
import type { Other, Row } from "./row.ts"
import { inWords } from "./stolen.ts"
import { verdict } from "./verdict.ts"

const number = (value: number | undefined): string =>
  value === undefined || Number.isNaN(value)
    ? "-"
    : Math.abs(value) >= 1000
    ? Math.round(value).toLocaleString("en-GB")
    : String(Number(value.toPrecision(3)))

const ratio = (value: number | undefined): string =>
  value === undefined || Number.isNaN(value) ? "-" : value < 0.995 ? value.toPrecision(2) : number(value)

const range = ([least, most]: readonly [number, number]) => `${number(least)} to ${number(most)}`

/** Pads columns to the width of their longest cell. */
export const aligned = (lines: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  return lines
    .map((line) => line.map((text, column) => column === 0 ? text.padEnd(widths[0]!) : text.padStart(widths[column]!)))
    .map((cells) => cells.join("  ").trimEnd())
    .join("\n")
}

/** Old results have no quartiles, so their minimum and maximum are shown instead. */
const intervalOf = (row: Row) => row.quartiles === undefined ? "spread" : "IQR"

/** Formats one entrant's result, with the verdict on effect-simba compared with it. */
const cellsOf = (row: Row, name: string, value: Omit<Other, "role" | "name">): ReadonlyArray<string> => [
  name,
  value.value === undefined ? `failed: ${value.failure?.split("\n")[0]?.slice(0, 60) ?? ""}` : number(value.value),
  ratio(value.ratio),
  value.spread === undefined ? "" : range(value.quartiles ?? value.spread),
  ...(row.columns ?? []).map(({ values }) => number(values[name])),
  name === "ours" ? "" : verdict(row.better, row.quartiles?.ours, value.quartiles) ?? ""
]

const headOf = (row: Row, first: string) => [
  first,
  "median",
  `to ${row.against ?? "raw"}`,
  intervalOf(row),
  ...(row.columns ?? []).map(({ title }) => title),
  "ours is"
]

const bodyOf = (row: Row): ReadonlyArray<ReadonlyArray<string>> => [
  cellsOf(row, "ours", {
    value: row.ours,
    ratio: row.ratio,
    spread: row.spread.ours,
    quartiles: row.quartiles?.ours
  }),
  cellsOf(row, row.against ?? "raw", {
    value: row.raw,
    ratio: 1,
    spread: row.spread.raw,
    quartiles: row.quartiles?.raw
  }),
  ...row.others.map((other) => cellsOf(row, other.name, other))
]

export const readable = (rows: ReadonlyArray<Row>): string =>
  rows.map((row) => {
    const remark = inWords(row.stolen)
    const title = `${row.title} (${row.unit}, ${row.better} is better)`
    return [title, ...remark === undefined ? [] : [`(${remark})`], aligned([headOf(row, ""), ...bodyOf(row)])].join(
      "\n"
    )
  }).join("\n\n")

const cell = (text: string) => text.replaceAll("|", "\\|")

/** Formats one row as a Markdown table, with all entrants. */
export const markdownOf = (row: Row): string => {
  const head = headOf(row, `${row.unit}, ${row.better} is better`)
  const [ours, ...others] = bodyOf(row)
  const lines = [
    head,
    head.map((title) => title === head[0] || title === intervalOf(row) || title === "ours is" ? "---" : "---:"),
    ours!.map((text, column) => column < 3 ? `**${text}**` : text),
    ...others
  ]
  const remark = inWords(row.stolen)
  const table = lines.map((cells) => `| ${cells.map(cell).join(" | ")} |`).join("\n")
  return remark === undefined ? table : `${table}\n\n${remark}.`
}

/** Formats one profile as a Markdown table, which compares effect-simba with raw by part. */
export const markdownOfProfile = ({ each, figures, title }: Profile): string =>
  [
    `| ${title}, for each ${each} | ours | raw |`,
    "| --- | ---: | ---: |",
    ...figures.map(([name, ours, raw]) => `| ${name} | ${number(ours)} | ${number(raw)} |`)
  ].join("\n")

/**
 * Compares the rows with those of an earlier run, by their ratios to raw, because the figures themselves depend more on
 * the machine.
 */
export const compared = (rows: ReadonlyArray<Row>, earlier: ReadonlyArray<Row>): string => {
  const lines = rows.map((row) => {
    const before = earlier.find(({ id }) => id === row.id)
    if (before === undefined) return [row.id, ratio(row.ratio), "-", "new"]
    const change = 100 * (row.ratio / before.ratio - 1)
    const isBetter = row.better === "more" ? change > 0 : change < 0
    const verdict = Math.abs(change) < 10 ? "" : isBetter ? "better" : "worse"
    const sign = change < 0 ? "" : "+"
    return [row.id, ratio(row.ratio), ratio(before.ratio), `${sign}${change.toFixed(0)}% ${verdict}`]
  })
  return aligned([["ratio to raw", "now", "before", "change"], ...lines])
}
