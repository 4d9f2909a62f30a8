/**
 * Arguments of the command line, and what is wrong with them.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { parseArgs } from "node:util"
import type { LinkFaults } from "../client/link.ts"

export class UsageError extends Data.TaggedError("UsageError")<{ readonly problem: string }> {
  override get message(): string {
    return this.problem
  }
}

export interface Settings {
  readonly address: { readonly port: number; readonly host?: string } | { readonly path: string }
  readonly seed: string
  readonly faults: LinkFaults
}

export const help = `fake-redis: a Redis 7.0 in memory

  --port N         the port to listen on; 0, the default, takes a free one
  --host H         the address to listen on; 127.0.0.1 by default
  --path P         a Unix socket, instead of a port
  --seed S         decides what is left to chance
  --faults F       what the network does to every connection, such as
                   requestDelay=1-20,replyDelay=5,loseReply=0.01,hang=0.001:30000
                   Delays are in milliseconds: requestDelay, replyDelay, messageDelay, straggle.
                   Probabilities: loseRequest, loseReply, reset.
                   Both: hang, lateMessage; the probability, a colon, the milliseconds.
  --help           shows this

The first line of the output is the address. SIGINT and SIGTERM end the server.`

const delays: ReadonlySet<string> = new Set(["requestDelay", "replyDelay", "messageDelay", "straggle"])
const probabilities: ReadonlySet<string> = new Set(["loseRequest", "loseReply", "reset"])

const fault = (text: string): readonly [string, unknown] => {
  const [, name = "", probability, low = "", high] =
    /^([a-zA-Z]+)=(?:([0-9.]+):)?([0-9.]+)(?:-([0-9.]+))?$/.exec(text) ?? []
  const from = Number(low)
  const to = Number(high ?? low)
  const chance = Number(probability)
  if (delays.has(name) && probability === undefined && from <= to) return [name, [from, to]]
  if (probabilities.has(name) && probability === undefined && high === undefined && from <= 1) return [name, from]
  if (name === "hang" && high === undefined && chance <= 1 && from >= 0) return [name, { chance, lasts: from }]
  if (name === "lateMessage" && chance <= 1 && from <= to) return [name, { chance, by: [from, to] }]
  throw new UsageError({ problem: `--faults: "${text}" is no fault` })
}

const portOf = (text: string): number => {
  const port = Number(text)
  if (/^[0-9]+$/.test(text) && port < 65536) return port
  throw new UsageError({ problem: `--port: "${text}" is no port` })
}

const read = (args: ReadonlyArray<string>): Settings | "help" => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: "string", default: "0" },
      host: { type: "string" },
      path: { type: "string" },
      seed: { type: "string", default: "fake-redis" },
      faults: { type: "string", default: "" },
      help: { type: "boolean", default: false }
    }
  })
  if (values.help) return "help"
  return {
    address: values.path !== undefined
      ? { path: values.path }
      : { port: portOf(values.port), ...(values.host === undefined ? {} : { host: values.host }) },
    seed: values.seed,
    faults: Object.fromEntries(values.faults.split(",").filter((text) => text !== "").map(fault))
  }
}

export const parse = (args: ReadonlyArray<string>): Effect.Effect<Settings | "help", UsageError> =>
  Effect.try({
    try: () => read(args),
    catch: (error) =>
      error instanceof UsageError
        ? error
        : new UsageError({ problem: error instanceof Error ? error.message : String(error) })
  })
