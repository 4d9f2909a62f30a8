/** Output of commands: JSON, or lines for people with colours on a terminal. */
import * as TerminalCapabilities from "effect/cli/TerminalCapabilities"
import * as Console from "effect/Console"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { Json } from "./settings.ts"

const styles = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36 } as const

export type Style = keyof typeof styles
export type Paint = (style: Style, text: string) => string

export const paint: Effect.Effect<Paint> = Effect.map(
  TerminalCapabilities.TerminalCapabilities,
  ({ canColor }) => (style, text) => canColor ? `\u001B[${styles[style]}m${text}\u001B[0m` : text
)

/** Prints `value` as JSON on one line where that was asked for, and the lines otherwise. */
export const print = Effect.fnUntraced(function*(value: unknown, lines: (paint: Paint) => ReadonlyArray<string>) {
  if (yield* Json) return yield* Console.log(JSON.stringify(value))
  for (const line of lines(yield* paint)) yield* Console.log(line)
})

/** Names and ids come from others: a control character in one could rewrite the screen. */
// oxlint-disable-next-line no-control-regex -- these are the characters that it is about
export const printable = (text: string): string => text.replace(/[\u0000-\u001F\u007F-\u009F]/g, "\uFFFD")

/** Columns that are as wide as their widest cell. The last one is not padded. */
export const table = (header: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>, paint: Paint) => {
  const shown = rows.map((row) => row.map(printable))
  const widths = header.map((title, column) => Math.max(title.length, ...shown.map((row) => row[column]!.length)))
  const line = (cells: ReadonlyArray<string>) =>
    cells.map((cell, column) => column === cells.length - 1 ? cell : cell.padEnd(widths[column]!)).join("  ").trimEnd()
  return [paint("dim", line(header)), ...shown.map(line)]
}

export const formatDuration = (duration: Duration.Duration): string => {
  const millis = Duration.toMillis(duration)
  if (millis < 1000) return `${Math.round(millis)}ms`
  if (millis < 60_000) return `${(millis / 1000).toFixed(1)}s`
  const seconds = Math.floor(millis / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, "0")}s`
  const hours = Math.floor(seconds / 3600)
  if (hours < 48) return `${hours}h${String(Math.floor(seconds / 60) % 60).padStart(2, "0")}m`
  return `${Math.floor(hours / 24)}d${String(hours % 24).padStart(2, "0")}h`
}

export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`
