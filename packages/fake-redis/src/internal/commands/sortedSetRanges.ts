/** Sorted set commands for ranges: read, store, count and remove by rank, score or member. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import type { Scored, SortedSet } from "../data/sortedSet.ts"
import type { By } from "../data/sortedSetBounds.ts"
import { boundsSpan, parseBounds, parseSpan } from "../data/sortedSetBounds.ts"
import type { Entry } from "../data/values.ts"
import { integer } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, syntaxError } from "../reply.ts"
import { itemsReply, readSorted, storeSorted } from "./sortedSets.ts"

interface Query {
  readonly by: By
  readonly reverse: boolean
  readonly min: string
  readonly max: string
  readonly offset: number
  readonly limit: number
}

/** Parses the bounds before the key is read, so that invalid bounds fail even without a key. */
const select = (query: Query): (zset: SortedSet | undefined) => ReadonlyArray<Scored> => {
  if (query.by === "rank") {
    const find = parseSpan("rank", query.min, query.max, query.reverse)
    return (zset) => {
      if (zset === undefined) return []
      const [from, to] = find(zset)
      const items = zset.order.slice(from, to)
      return query.reverse ? items.reverse() : items
    }
  }
  const bounds = parseBounds(query.by, query.min, query.max)
  return (zset) => {
    if (zset === undefined) return []
    const [from, to] = boundsSpan(zset, bounds, query.reverse)
    if (from >= to || query.offset < 0) return []
    const step = query.reverse ? -1 : 1
    const items: Array<Scored> = []
    // Skip the offset before testing the far bound, as Redis does.
    for (let i = (query.reverse ? to - 1 : from) + step * query.offset; items.length !== query.limit; i += step) {
      const item = zset.order[i]
      if (item === undefined || (query.reverse ? bounds.before(item) : !bounds.within(item))) break
      items.push(item)
    }
    return items
  }
}

/** The options that the command's name implies. */
interface Fixed {
  readonly by?: By
  readonly reverse?: boolean
  readonly store?: boolean
}

/** Parses a query. The bounds are `args[at]` and the next argument; the options follow. */
const parseQuery = (
  args: ReadonlyArray<string>,
  at: number,
  fixed: Fixed
): Query & { readonly withScores: boolean } => {
  let by = fixed.by
  let reverse = fixed.reverse
  let withScores = false
  let offset = 0
  let limit = -1
  let limited = false
  for (let i = at + 2; i < args.length; i++) {
    const option = args[i]!.toLowerCase()
    if (fixed.store !== true && option === "withscores") withScores = true
    else if (option === "limit" && i + 2 < args.length) {
      offset = integer(args[i + 1]!)
      limit = integer(args[i + 2]!)
      limited = true
      i += 2
    } else if (fixed.reverse === undefined && option === "rev") reverse = true
    else if (by === undefined && option === "bylex") by = "lex"
    else if (by === undefined && option === "byscore") by = "score"
    else return syntaxError()
  }
  const kind = by ?? "rank"
  if (limited && limit !== -1 && kind === "rank") {
    return fail("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
  }
  if (withScores && kind === "lex") return fail("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
  const swap = reverse === true && kind !== "rank"
  return {
    by: kind,
    reverse: reverse === true,
    min: swap ? args[at + 1]! : args[at]!,
    max: swap ? args[at]! : args[at + 1]!,
    offset,
    limit,
    withScores
  }
}

const ranged = (fixed: Fixed) => (context: Context, args: ReadonlyArray<string>): Value => {
  const query = parseQuery(args, 2, fixed)
  const find = select(query)
  return itemsReply(find(readSorted(context, args[1]!)), query.withScores)
}

const zrangestore: Handler = (context, args) => {
  const query = parseQuery(args, 3, { store: true })
  const find = select(query)
  const items = find(readSorted(context, args[2]!))
  return storeSorted(context, args[1]!, items, "zrangestore", query.by === "rank" ? items.length : -1)
}

const counted = (by: "score" | "lex") => (context: Context, args: ReadonlyArray<string>): Value => {
  const find = parseSpan(by, args[2]!, args[3]!)
  const zset = readSorted(context, args[1]!)
  if (zset === undefined) return 0
  const [from, to] = find(zset)
  return to - from
}

const removing = (by: By, event: string) => (context: Context, args: ReadonlyArray<string>): Value => {
  const key = args[1]!
  const find = parseSpan(by, args[2]!, args[3]!)
  const entry = context.db.writeAs(key, "zset")
  if (entry === undefined) return 0
  const zset = entry.value
  const [from, to] = find(zset)
  const removed = zset.removeRange(from, to)
  if (removed > 0) {
    context.changed(key, "z", event)
    context.dropIfEmpty(key, entry as Entry)
  }
  return removed
}

export const sortedSetRangeCommands: ReadonlyArray<Command> = [
  define("zrange", ranged({})),
  define("zrevrange", ranged({ by: "rank", reverse: true })),
  define("zrangebyscore", ranged({ by: "score", reverse: false })),
  define("zrevrangebyscore", ranged({ by: "score", reverse: true })),
  define("zrangebylex", ranged({ by: "lex", reverse: false })),
  define("zrevrangebylex", ranged({ by: "lex", reverse: true })),
  define("zrangestore", zrangestore),
  define("zcount", counted("score")),
  define("zlexcount", counted("lex")),
  define("zremrangebyrank", removing("rank", "zremrangebyrank")),
  define("zremrangebyscore", removing("score", "zremrangebyscore")),
  define("zremrangebylex", removing("lex", "zremrangebylex"))
]
