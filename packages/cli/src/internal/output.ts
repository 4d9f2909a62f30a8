/** Prints results as JSON, or as lines for people, with colours on a terminal. */
import * as TerminalCapabilities from "effect/cli/TerminalCapabilities"
import * as Console from "effect/Console"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { Partly } from "./exitCodes.ts"
import { Json } from "./settings.ts"

const styles = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36 } as const

export type Style = keyof typeof styles
export type Paint = (style: Style, text: string) => string

export const paint: Effect.Effect<Paint> = Effect.map(
  TerminalCapabilities.TerminalCapabilities,
  ({ canColor }) => (style, text) => canColor ? `\u001B[${styles[style]}m${text}\u001B[0m` : text
)

/** Prints `value` as one line of JSON if `--json` is set, and the lines otherwise. */
export const print = Effect.fnUntraced(function*(value: unknown, lines: (paint: Paint) => ReadonlyArray<string>) {
  if (yield* Json) return yield* Console.log(JSON.stringify(value))
  for (const line of lines(yield* paint)) yield* Console.log(line)
})

/** Runs a command's steps in sequence. If a step fails or a signal arrives, `show` prints the results so far. */
export const inTurn = <A, B, E, R, R2>(
  steps: Iterable<A>,
  run: (each: A) => Effect.Effect<B, E, R>,
  show: (done: ReadonlyArray<B>) => Effect.Effect<void, never, R2>
): Effect.Effect<ReadonlyArray<B>, E | Partly, R | R2> =>
  Effect.suspend(() => {
    const done: Array<B> = []
    const step = (each: A) => Effect.map(run(each), (result) => void done.push(result))
    return Effect.forEach(steps, step, { discard: true }).pipe(
      Effect.onError(() => done.length === 0 ? Effect.void : show(done)),
      Effect.mapError((cause) => done.length === 0 ? cause : new Partly({ cause })),
      Effect.as(done)
    )
  })

/**
 * Removes control characters, and joins lines. Names and ids come from other programs, and a control character in them
 * could rewrite the screen.
 */
export const printable = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- this function removes control characters
  text.replace(/\s*\n\s*/g, " ").replace(/[\u0000-\u001F\u007F-\u009F]/g, "\uFFFD")

type Columns<Row> = Readonly<Record<string, (row: Row) => string | number | null | undefined>>

/** Formats a table. Each column is as wide as its widest cell, and a missing value is shown as a dash. */
export const table = <Row>(rows: ReadonlyArray<Row>, columns: Columns<Row>, paint: Paint): ReadonlyArray<string> => {
  const cells = Object.values(columns)
  const lines = [Object.keys(columns), ...rows.map((row) => cells.map((cell) => printable(String(cell(row) ?? "-"))))]
  const widths = cells.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  const [header, ...rest] = lines.map((line) =>
    line.map((cell, column) => cell.padEnd(widths[column]!)).join("  ").trimEnd()
  )
  return [paint("dim", header!), ...rest]
}

/** Formats one line of a description: a title and a value. */
export const field = (title: string, value: string, paint: Paint): string =>
  `${paint("dim", title.padEnd(11))}${printable(value)}`

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
