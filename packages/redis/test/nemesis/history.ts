/** Writes and reads a nemesis run's histories: the lines that processes log, and what MONITOR prints. */
import { openSync, readFileSync, writeSync } from "node:fs"

/**
 * A clock in milliseconds since `epoch`, which is in nanoseconds. Both are on CLOCK_MONOTONIC, which all processes on a
 * machine share.
 */
export const clockSince = (epoch: string) => {
  const start = BigInt(epoch)
  return () => Number(process.hrtime.bigint() - start) / 1e6
}

export type Fields = Readonly<Record<string, string | number>>

/** One line in a process's history. */
export type Line = readonly [at: number, client: string, generation: number, kind: string, fields: Fields]

/** Appends lines to a file. Writes are synchronous, so that a killed process loses none of them. */
export const writer = (path: string) => {
  const file = openSync(path, "a")
  return (line: Line) => void writeSync(file, `${JSON.stringify(line)}\n`)
}

const parse = (text: string) => text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Line)

/** Reads the complete lines of a file to which a process is still writing. */
export const readFinished = (path: string): ReadonlyArray<Line> => {
  const text = readFileSync(path, "utf8")
  return parse(text.slice(0, text.lastIndexOf("\n") + 1))
}

/** Reads the lines of a finished history. Throws if the last line is incomplete. */
export const readLines = (path: string): ReadonlyArray<Line> => {
  const text = readFileSync(path, "utf8")
  if (text !== "" && !text.endsWith("\n")) throw new Error(`${path} ends in the middle of a line`)
  return parse(text)
}

/** One command that a server executed. */
export interface Observed {
  /** Milliseconds since the start of the run. */
  readonly at: number
  readonly node: string
  readonly isScript: boolean
  /** The client's address, or `lua` for a command that a script ran. */
  readonly source: string
  readonly args: ReadonlyArray<string>
}

const escapes: Record<string, string> = { n: "\n", r: "\r", t: "\t", a: "\u0007", b: "\b" }

/** Valkey 8.1.1 does not escape quotes, so a quote ends an argument only before the next argument or the line's end. */
const quoted = /"((?:[^"\\]|\\x[0-9a-f]{2}|\\[^x]|"(?! "|$))*)"/g

const unescape = (text: string) =>
  text.includes("\\")
    ? Buffer.from(
      text.replace(/\\x([0-9a-f]{2})|\\(.)/g, (_, hex: string | undefined, char: string) =>
        hex === undefined ? escapes[char] ?? char : String.fromCharCode(parseInt(hex, 16))),
      "latin1"
    ).toString("utf8")
    : text

/** Parses a MONITOR line: `<seconds>.<micros> [<db> <address or lua>] "<arg>" ...`. */
export const parseMonitor = (node: string, line: string, wallEpoch: number): Observed | undefined => {
  const head = /^\+?(\d+\.\d{6}) \[\d+ (\S+)\] /.exec(line)
  if (head === null) return undefined
  const args = [...line.slice(head[0].length).matchAll(quoted)].map(([, text]) => unescape(text!))
  args[0] = args[0]!.toUpperCase()
  return { at: Number(head[1]) * 1000 - wallEpoch, node, isScript: head[2] === "lua", source: head[2]!, args }
}
