/** MEMORY, LATENCY, SLOWLOG and MONITOR. Memory sizes are estimates, because the data lives on the JavaScript heap. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import { SortedSet } from "../data/sortedSet.ts"
import type { Stream } from "../data/stream.ts"
import type { Entry } from "../data/values.ts"
import { integer, parseInteger } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { Dictionary, fail, OK, syntaxError } from "../reply.ts"

/** The estimated overhead per element and per key, in bytes. */
const PER_ELEMENT = 16
const PER_KEY = 56

/** Redis's memory report for an almost empty server, and its latency report when monitoring is off. */
const ALMOST_EMPTY =
  "Hi Sam, this instance is empty or is using very little memory, my issues detector can't be used in these " +
  "conditions. Please, leave for your mission on Earth and fill it with some data. The new Sam and I will be back to " +
  "our programming as soon as I finished rebooting.\n"
const NOT_MONITORED =
  "I'm sorry, Dave, I can't do that. Latency monitoring is disabled in this Redis instance. You may use \"CONFIG SET " +
  "latency-monitor-threshold <milliseconds>.\" in order to enable it. If we weren't in a deep space mission I'd " +
  "suggest to take a look at https://redis.io/topics/latency-monitor.\n"

const sizeOf = (texts: Iterable<string>): number => {
  let size = 0
  for (const text of texts) size += text.length + PER_ELEMENT
  return size
}

const usage = (key: string, { value }: Entry): number => {
  const own = PER_KEY + key.length
  if (typeof value === "string") return own + value.length
  if (Array.isArray(value)) return own + sizeOf(value)
  if (value instanceof Set) return own + sizeOf(value)
  if (value instanceof Map) return own + sizeOf(value.keys()) + sizeOf(value.values())
  if (value instanceof SortedSet) return own + sizeOf(value.scores.keys()) + 8 * value.size
  return own + sizeOf((value as Stream).entries.flatMap((entry) => entry.fields))
}

const memory: Handler = (context, args) => {
  switch (args[1]!.toLowerCase()) {
    case "usage": {
      for (let at = 3; at < args.length; at += 2) {
        if (args[at]!.toLowerCase() !== "samples" || args[at + 1] === undefined) return syntaxError()
        if (integer(args[at + 1]!) < 0) return syntaxError()
      }
      const entry = context.db.read(args[2]!)
      return entry === undefined ? null : usage(args[2]!, entry)
    }
    case "doctor":
      return ALMOST_EMPTY
    case "stats":
      return ["keys.count", context.server.dbs.reduce((count, db) => count + db.entries.size, 0)]
    default:
      return OK
  }
}

const latency: Handler = ({ server }, args) => {
  switch (args[1]!.toLowerCase()) {
    case "reset":
      return 0
    case "doctor":
      return NOT_MONITORED
    case "graph":
      return fail(`ERR No samples available for event '${args[2]!}'`)
    case "histogram":
      return new Dictionary(
        args.slice(2).flatMap((name): ReadonlyArray<Value> => {
          const calls = server.statistics.callsOf(name.toLowerCase())
          const histogram = new Dictionary(["calls", calls ?? 0, "histogram_usec", new Dictionary([1, calls ?? 0])])
          return calls === undefined ? [] : [name.toLowerCase(), histogram]
        })
      )
    default:
      return []
  }
}

const slowlog: Handler = ({ server }, args) => {
  const { statistics } = server
  switch (args[1]!.toLowerCase()) {
    case "len":
      return statistics.slow.length
    case "reset":
      statistics.slow = []
      return OK
    default: { // This must be GET, because HELP and unknown subcommands are handled earlier
      const count = args[2] === undefined ? 10 : parseInteger(args[2])
      if (count === undefined || count < -1) return fail("ERR count should be greater than or equal to -1")
      const entries = count === -1 ? statistics.slow : statistics.slow.slice(0, count)
      return entries.map(({ address, args, at, id, name }): Value => [id, at, 0, args, address, name])
    }
  }
}

const monitor: Handler = ({ client, server }) => {
  if (server.monitors.clients.has(client)) return OK
  client.isMonitor = true
  server.monitors.clients.add(client)
  return OK
}

export const diagnosticCommands: ReadonlyArray<Command> = [
  define("memory", memory),
  define("latency", latency),
  define("slowlog", slowlog),
  define("monitor", monitor)
]
