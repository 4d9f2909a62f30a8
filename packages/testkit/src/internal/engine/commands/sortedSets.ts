/**
 * Sorted set commands: adding, reading by rank, score or bytes, popping.
 */
import { blockUntil } from "../blocked.ts"
import { double, formatDouble, integer, parseDouble } from "../numbers.ts"
import type { Context } from "../registry.ts"
import { BLOCKED, define } from "../registry.ts"
import type { Value } from "../reply.ts"
import { fail, syntaxError } from "../reply.ts"
import type { Scored } from "../sortedSet.ts"
import { SortedSet } from "../sortedSet.ts"
import type { Entry } from "../values.ts"
import { scanPage } from "./scan.ts"

const read = (context: Context, key: string): SortedSet | undefined => context.db.readAs(key, "zset")?.value

const zadd = (context: Context, args: ReadonlyArray<string>, increments: boolean): Value => {
  const key = args[1]!
  let nx = false
  let xx = false
  let gt = false
  let lt = false
  let ch = false
  let incr = increments
  let at = 2
  for (; !increments && at < args.length; at++) {
    const option = args[at]!.toLowerCase()
    if (option === "nx") nx = true
    else if (option === "xx") xx = true
    else if (option === "gt") gt = true
    else if (option === "lt") lt = true
    else if (option === "ch") ch = true
    else if (option === "incr") incr = true
    else break
  }
  const pairs = args.slice(at)
  if (pairs.length === 0 || pairs.length % 2 === 1) return syntaxError()
  if (nx && xx) return fail("ERR XX and NX options at the same time are not compatible")
  if ((gt && nx) || (lt && nx) || (gt && lt)) {
    return fail("ERR GT, LT, and/or NX options at the same time are not compatible")
  }
  if (incr && pairs.length > 2) return fail("ERR INCR option supports a single increment-element pair")
  const scores: Array<number> = []
  for (let i = 0; i < pairs.length; i += 2) scores.push(double(pairs[i]!))
  const existing = context.db.writeAs(key, "zset")
  if (existing === undefined && xx) return incr ? null : 0
  const entry = existing ?? context.db.put(key, "zset", new SortedSet())
  const zset = entry.value
  let added = 0
  let updated = 0
  let score = 0
  let skipped = false
  for (let i = 0; i < scores.length; i++) {
    const member = pairs[i * 2 + 1]!
    const old = zset.scores.get(member)
    score = scores[i]!
    skipped = false
    if (old !== undefined) {
      if (nx) {
        skipped = true
        continue
      }
      if (incr) {
        score += old
        if (Number.isNaN(score)) {
          context.dropIfEmpty(key, entry as Entry)
          return fail("ERR resulting score is not a number (NaN)")
        }
      }
      if ((lt && score >= old) || (gt && score <= old)) {
        skipped = true
        continue
      }
      if (score !== old) {
        zset.set(member, score)
        updated++
      }
    } else if (xx) skipped = true
    else {
      zset.set(member, score)
      added++
    }
  }
  if (added > 0 || updated > 0) context.changed(key, "z", incr ? "zincr" : "zadd")
  if (zset.size === 0) context.db.remove(key)
  if (incr) return skipped ? null : formatDouble(score)
  return ch ? added + updated : added
}
define("zadd", -4, "w", (context, args) => zadd(context, args, false))
define("zincrby", 4, "w", (context, args) => zadd(context, args, true))

define("zrem", -3, "w", (context, args) => {
  const key = args[1]!
  const entry = context.db.writeAs(key, "zset")
  if (entry === undefined) return 0
  let count = 0
  for (let i = 2; i < args.length; i++) if (entry.value.delete(args[i]!)) count++
  if (count > 0) {
    context.changed(key, "z", "zrem")
    context.dropIfEmpty(key, entry as Entry)
  }
  return count
})

const scoreOf = (zset: SortedSet | undefined, member: string): string | null => {
  const score = zset?.scores.get(member)
  return score === undefined ? null : formatDouble(score)
}
define("zscore", 3, "", (context, args) => scoreOf(read(context, args[1]!), args[2]!))
define("zmscore", -3, "", (context, args) => {
  const zset = read(context, args[1]!)
  return args.slice(2).map((member) => scoreOf(zset, member))
})
define("zcard", 2, "", (context, args) => read(context, args[1]!)?.size ?? 0)

const rank = (reverse: boolean) => (context: Context, args: ReadonlyArray<string>): Value => {
  const zset = read(context, args[1]!)
  const at = zset?.rank(args[2]!)
  if (zset === undefined || at === undefined) return null
  return reverse ? zset.size - 1 - at : at
}
define("zrank", 3, "", rank(false))
define("zrevrank", 3, "", rank(true))

/** A range of positions in the ascending order, the end excluded. */
type Span = readonly [from: number, to: number]

const rankSpan = (length: number, first: number, last: number, reverse: boolean): Span => {
  let from = first < 0 ? first + length : first
  let to = last < 0 ? last + length : last
  if (from < 0) from = 0
  if (from > to || from >= length) return [0, 0]
  if (to >= length) to = length - 1
  return reverse ? [length - 1 - to, length - from] : [from, to + 1]
}

interface Bounds {
  readonly before: (item: Scored) => boolean
  readonly within: (item: Scored) => boolean
}

const scoreBound = (text: string): { readonly value: number; readonly exclusive: boolean } => {
  const exclusive = text.startsWith("(")
  const digits = exclusive ? text.slice(1) : text
  // strtod reads an empty string as zero.
  const value = digits === "" ? 0 : parseDouble(digits)
  return value === undefined ? fail("ERR min or max is not a float") : { value, exclusive }
}

const scoreBounds = (min: string, max: string): Bounds => {
  const low = scoreBound(min)
  const high = scoreBound(max)
  return {
    before: ({ score }) => low.exclusive ? score <= low.value : score < low.value,
    within: ({ score }) => high.exclusive ? score < high.value : score <= high.value
  }
}

const LEX = "ERR min or max not valid string range item"

const lexBound = (text: string): { readonly value: string; readonly exclusive: boolean; readonly infinite: number } => {
  if (text === "-" || text === "+") return { value: "", exclusive: true, infinite: text === "-" ? -1 : 1 }
  if (text[0] === "(" || text[0] === "[") return { value: text.slice(1), exclusive: text[0] === "(", infinite: 0 }
  return fail(LEX)
}

const lexBounds = (min: string, max: string): Bounds => {
  const low = lexBound(min)
  const high = lexBound(max)
  return {
    before: ({ member }) =>
      low.infinite !== 0 ? low.infinite > 0 : low.exclusive ? member <= low.value : member < low.value,
    within: ({ member }) =>
      high.infinite !== 0 ? high.infinite > 0 : high.exclusive ? member < high.value : member <= high.value
  }
}

/** As Redis walks: with mixed scores an order by bytes has gaps, and the direction matters. */
const boundsSpan = (zset: SortedSet, { before, within }: Bounds, reverse = false): Span => {
  if (zset.size === 0 || before(zset.order[zset.size - 1]!) || !within(zset.order[0]!)) return [0, 0]
  if (reverse) {
    let end = zset.size
    while (end > 0 && !within(zset.order[end - 1]!)) end--
    let start = end
    while (start > 0 && !before(zset.order[start - 1]!)) start--
    return [start, end]
  }
  let from = 0
  while (from < zset.size && before(zset.order[from]!)) from++
  let to = from
  while (to < zset.size && within(zset.order[to]!)) to++
  return [from, to]
}

interface Query {
  readonly by: "rank" | "score" | "lex"
  readonly reverse: boolean
  readonly min: string
  readonly max: string
  readonly offset: number
  readonly limit: number
}

/** Bounds are read, and refused, before the key is looked at. */
const select = (query: Query): (zset: SortedSet | undefined) => ReadonlyArray<Scored> => {
  const bounds = query.by === "score"
    ? scoreBounds(query.min, query.max)
    : query.by === "lex"
    ? lexBounds(query.min, query.max)
    : undefined
  const ranks = bounds === undefined ? [integer(query.min), integer(query.max)] as const : undefined
  return (zset) => {
    if (zset === undefined) return []
    if (ranks !== undefined) {
      const [from, to] = rankSpan(zset.size, ranks[0], ranks[1], query.reverse)
      const items = zset.order.slice(from, to)
      return query.reverse ? items.reverse() : items
    }
    const [from, to] = boundsSpan(zset, bounds!, query.reverse)
    if (from >= to || query.offset < 0) return []
    const step = query.reverse ? -1 : 1
    const items: Array<Scored> = []
    // The offset is skipped before the far bound is looked at.
    for (let i = (query.reverse ? to - 1 : from) + step * query.offset; items.length !== query.limit; i += step) {
      const item = zset.order[i]
      if (item === undefined || (query.reverse ? bounds!.before(item) : !bounds!.within(item))) break
      items.push(item)
    }
    return items
  }
}

const flat = (items: ReadonlyArray<Scored>, withScores: boolean): Array<string> =>
  withScores ? items.flatMap((item) => [item.member, formatDouble(item.score)]) : items.map((item) => item.member)

type By = Query["by"]

const parseQuery = (
  args: ReadonlyArray<string>,
  at: number,
  fixed: { readonly by?: By; readonly reverse?: boolean; readonly store?: boolean }
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
    else if (fixed.by === undefined && option === "bylex") by = "lex"
    else if (fixed.by === undefined && option === "byscore") by = "score"
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

const ranged = (fixed: { readonly by?: By; readonly reverse?: boolean }) =>
(
  context: Context,
  args: ReadonlyArray<string>
): Value => {
  const query = parseQuery(args, 2, fixed)
  const find = select(query)
  return flat(find(read(context, args[1]!)), query.withScores)
}
define("zrange", -4, "", ranged({}))
define("zrevrange", -4, "", ranged({ by: "rank", reverse: true }))
define("zrangebyscore", -4, "", ranged({ by: "score", reverse: false }))
define("zrevrangebyscore", -4, "", ranged({ by: "score", reverse: true }))
define("zrangebylex", -4, "", ranged({ by: "lex", reverse: false }))
define("zrevrangebylex", -4, "", ranged({ by: "lex", reverse: true }))

export const storeSorted = (context: Context, key: string, items: ReadonlyArray<Scored>, event: string): number => {
  if (items.length === 0) {
    if (context.db.peek(key) !== undefined) {
      context.db.remove(key)
      context.changed(key, "g", "del")
    }
    return 0
  }
  const zset = new SortedSet()
  for (const { member, score } of items) zset.set(member, score)
  context.db.put(key, "zset", zset)
  context.changed(key, "z", event)
  return items.length
}

define("zrangestore", -5, "w", (context, args) => {
  const query = parseQuery(args, 3, { store: true })
  const find = select(query)
  return storeSorted(context, args[1]!, find(read(context, args[2]!)), "zrangestore")
})

const counted = (by: "score" | "lex") => (context: Context, args: ReadonlyArray<string>): Value => {
  const bounds = by === "score" ? scoreBounds(args[2]!, args[3]!) : lexBounds(args[2]!, args[3]!)
  const zset = read(context, args[1]!)
  if (zset === undefined) return 0
  const [from, to] = boundsSpan(zset, bounds)
  return to - from
}
define("zcount", 4, "", counted("score"))
define("zlexcount", 4, "", counted("lex"))

const removing = (by: By, event: string) => (context: Context, args: ReadonlyArray<string>): Value => {
  const key = args[1]!
  const ranks = by === "rank" ? [integer(args[2]!), integer(args[3]!)] as const : undefined
  const bounds = by === "score"
    ? scoreBounds(args[2]!, args[3]!)
    : by === "lex"
    ? lexBounds(args[2]!, args[3]!)
    : undefined
  const entry = context.db.writeAs(key, "zset")
  if (entry === undefined) return 0
  const zset = entry.value
  const [from, to] = ranks !== undefined ? rankSpan(zset.size, ranks[0], ranks[1], false) : boundsSpan(zset, bounds!)
  const removed = zset.removeRange(from, to)
  if (removed > 0) {
    context.changed(key, "z", event)
    context.dropIfEmpty(key, entry as Entry)
  }
  return removed
}
define("zremrangebyrank", 4, "w", removing("rank", "zremrangebyrank"))
define("zremrangebyscore", 4, "w", removing("score", "zremrangebyscore"))
define("zremrangebylex", 4, "w", removing("lex", "zremrangebylex"))

type Edge = "min" | "max"

const pop = (context: Context, key: string, entry: Entry<"zset">, edge: Edge, count: number): Array<Scored> => {
  const zset = entry.value
  const items = edge === "min" ? zset.order.slice(0, count) : zset.order.slice(-count).reverse()
  for (const item of items) zset.delete(item.member)
  context.changed(key, "z", edge === "min" ? "zpopmin" : "zpopmax")
  context.dropIfEmpty(key, entry as Entry)
  return items
}

const popping = (edge: Edge) => (context: Context, args: ReadonlyArray<string>): Value => {
  if (args.length > 3) return syntaxError()
  const count = args.length === 3 ? integer(args[2]!, "ERR value is out of range, must be positive") : 1
  if (count < 0) return fail("ERR value is out of range, must be positive")
  const entry = context.db.writeAs(args[1]!, "zset")
  return entry === undefined || count === 0 ? [] : flat(pop(context, args[1]!, entry, edge, count), true)
}
define("zpopmin", -2, "w", popping("min"))
define("zpopmax", -2, "w", popping("max"))

const blockingPop = (edge: Edge) => (context: Context, args: ReadonlyArray<string>): Value | typeof BLOCKED => {
  const keys = args.slice(1, -1)
  const deadline = blockUntil(args[args.length - 1]!, context.server.micros)
  const serve = (key: string): Value | undefined => {
    const entry = context.db.writeAs(key, "zset")
    return entry === undefined ? undefined : [key, ...flat(pop(context, key, entry, edge, 1), true)]
  }
  for (const key of keys) {
    const value = serve(key)
    if (value !== undefined) return value
  }
  if (context.atomic) return null
  return context.server.block(context, { type: "zset", keys, deadline, timedOut: null, serve })
}
define("bzpopmin", -3, "ws", blockingPop("min"))
define("bzpopmax", -3, "ws", blockingPop("max"))

define("zscan", -3, "", (context, args) => {
  if (!/^[+-]?[0-9]{1,20}$/.test(args[2]!)) return fail("ERR invalid cursor")
  const zset = read(context, args[1]!)
  if (zset === undefined) return ["0", []]
  const [cursor, page] = scanPage(zset.order.map((item) => item.member), args, 2, 128)
  return [cursor, page.flatMap((member) => [member, formatDouble(zset.scores.get(member)!)])]
})

define("zrandmember", -2, "", (context, args) => {
  if (args.length > 4 || (args.length === 4 && args[3]!.toLowerCase() !== "withscores")) return syntaxError()
  const count = args.length > 2 ? integer(args[2]!) : undefined
  const items = read(context, args[1]!)?.order.slice() ?? []
  const draw = () => Math.floor(context.server.options.random() * items.length)
  if (count === undefined) return items.length === 0 ? null : items[draw()]!.member
  const chosen: Array<Scored> = []
  if (items.length > 0 && count < 0) { for (let i = 0; i < -count; i++) chosen.push(items[draw()]!) }
  else while (items.length > 0 && chosen.length < count) chosen.push(items.splice(draw(), 1)[0]!)
  return flat(chosen, args.length === 4)
})
