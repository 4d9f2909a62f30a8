/** XTRIM, and XADD's trimming options. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Stream, StreamId } from "../data/stream.ts"
import { parseId, position, trim } from "../data/stream.ts"
import { integer } from "../numbers.ts"
import { fail, syntaxError } from "../reply.ts"

interface Trimming {
  readonly strategy: "maxlen" | "minid" | undefined
  readonly keep: number
  readonly minId: StreamId | undefined
  readonly approximate: boolean
  readonly limit: number | undefined
}

interface TrimOptions extends Trimming {
  readonly noMake: boolean
  /** The index of the first argument after the options. */
  readonly next: number
}

/** Parses the options that start at `args[at]`. `checkTrimming` checks that they can be combined. */
export const trimOptions = (args: ReadonlyArray<string>, at: number, adding: boolean): TrimOptions => {
  let strategy: "maxlen" | "minid" | undefined
  let keep = Infinity
  let minId: StreamId | undefined
  let approximate = false
  let limit: number | undefined
  let noMake = false
  let i = at
  for (; i < args.length; i++) {
    const option = args[i]!.toLowerCase()
    const more = args.length - 1 - i
    if (adding && option === "*") break
    if ((option === "maxlen" || option === "minid") && more > 0) {
      if (strategy !== undefined) {
        return fail("ERR syntax error, MAXLEN and MINID options at the same time are not compatible")
      }
      approximate = false
      const sign = args[i + 1]!
      if (more >= 2 && (sign === "~" || sign === "=")) {
        approximate = sign === "~"
        i++
      }
      strategy = option
      i++
      if (option === "maxlen") {
        keep = integer(args[i]!)
        if (keep < 0) return fail("ERR The MAXLEN argument must be >= 0.")
      } else minId = parseId(args[i]!, 0n)
    } else if (option === "limit" && more > 0) {
      i++
      limit = integer(args[i]!)
      if (limit < 0) return fail("ERR The LIMIT argument must be >= 0.")
    } else if (adding && option === "nomkstream") noMake = true
    else if (adding) break
    else return syntaxError()
  }
  return { strategy, keep, minId, approximate, limit, noMake, next: i }
}

export const checkTrimming = ({ approximate, limit, strategy }: Trimming, adding: boolean): void => {
  if (limit !== undefined && limit > 0 && strategy === undefined) {
    return fail("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")
  }
  if (!adding && strategy === undefined) {
    return fail("ERR syntax error, XTRIM must be called with a trimming strategy")
  }
  if (limit !== undefined && !approximate) {
    return fail("ERR syntax error, LIMIT cannot be used without the special ~ option")
  }
}

/** The setting that `trimStream` takes as an argument. */
export const NODE_ENTRIES = "stream-node-max-entries"

const defaultLimit = (nodeEntries: number): number => {
  const limit = 100 * nodeEntries
  return limit <= 0 ? 10_000 : Math.min(limit, 1_000_000)
}

/**
 * Trims a stream. `~` removes only whole nodes. If there is no LIMIT, it removes at most as many entries as fit in a
 * hundred nodes.
 */
export const trimStream = (
  stream: Stream,
  { approximate, keep, limit, minId }: Trimming,
  nodeEntries: number
): number => {
  if (!approximate) return trim(stream, keep, minId)
  const { length } = stream.entries
  const wanted = minId === undefined ? length - keep : position(stream.entries, minId)
  const most = Math.min(wanted, limit === undefined ? defaultLimit(nodeEntries) : limit === 0 ? Infinity : limit)
  let count = 0
  for (const { live } of stream.nodes) {
    if (count + live > most) break
    count += live
  }
  return trim(stream, length - count, undefined)
}

const xtrim: Handler = (context, args) => {
  const options = trimOptions(args, 2, false)
  checkTrimming(options, false)
  const entry = context.db.writeAs(args[1]!, "stream")
  if (entry === undefined) return 0
  const count = trimStream(entry.value, options, context.server.config.number(NODE_ENTRIES))
  if (count > 0) context.changed(args[1]!, "t", "xtrim")
  return count
}

export const streamTrimmingCommands: ReadonlyArray<Command> = [
  define("xtrim", xtrim)
]
