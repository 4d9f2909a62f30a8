/** Sorted set commands for members: add, remove, read scores and ranks, draw random members, iterate. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import { growSortedSet } from "../data/encodings.ts"
import type { Scored } from "../data/sortedSet.ts"
import { SortedSet } from "../data/sortedSet.ts"
import { isTable, toTable } from "../data/tables.ts"
import type { Entry } from "../data/values.ts"
import { double, drawCount, formatDouble } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, syntaxError } from "../reply.ts"
import { removingFrom } from "./memberRemoval.ts"
import { scanPage } from "./scan.ts"

export const readSorted = (context: Context, key: string): SortedSet | undefined =>
  context.db.readAs(key, "zset")?.value

/** The members, each followed by its score if scores are requested. */
export const itemsReply = (items: ReadonlyArray<Scored>, withScores: boolean): Array<string> =>
  withScores ? items.flatMap((item) => [item.member, formatDouble(item.score)]) : items.map((item) => item.member)

/**
 * Stores a computed sorted set under a key, or removes the key if the set is empty. For commands that add one member at
 * a time, `expected` is the number of members that Redis expects, which determines the initial encoding.
 */
export const storeSorted = (
  context: Context,
  key: string,
  items: ReadonlyArray<Scored>,
  event: string,
  expected?: number
): number => {
  if (items.length === 0) {
    if (context.db.peek(key) !== undefined) {
      context.db.remove(key)
      context.changed(key, "g", "del")
    }
    return 0
  }
  const zset = new SortedSet()
  const { config } = context.server
  if (expected === undefined) growSortedSet(zset, config, items.map(({ member }) => member))
  else if (expected > config.number("zset-max-listpack-entries")) toTable(zset)
  for (const { member, score } of items) {
    if (expected !== undefined) growSortedSet(zset, config, [member])
    zset.set(member, score)
  }
  context.db.put(key, "zset", zset)
  context.changed(key, "z", event)
  return items.length
}

export const zadd = (context: Context, args: ReadonlyArray<string>, increments: boolean): Value => {
  const key = args[1]!
  let nx = false
  let xx = false
  let gt = false
  let lt = false
  let ch = false
  let incr = increments
  let at = 2
  for (; at < args.length; at++) {
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
      growSortedSet(zset, context.server.config, [member])
      zset.set(member, score)
      added++
    }
  }
  if (added > 0 || updated > 0) context.changed(key, "z", incr ? "zincr" : "zadd")
  if (zset.size === 0) context.db.remove(key)
  if (incr) return skipped ? null : formatDouble(score)
  return ch ? added + updated : added
}

const scoreOf = (zset: SortedSet | undefined, member: string): string | null => {
  const score = zset?.scores.get(member)
  return score === undefined ? null : formatDouble(score)
}

const zmscore: Handler = (context, args) => {
  const zset = readSorted(context, args[1]!)
  return args.slice(2).map((member) => scoreOf(zset, member))
}

const rank = (reverse: boolean) => (context: Context, args: ReadonlyArray<string>): Value => {
  const zset = readSorted(context, args[1]!)
  const at = zset?.rank(args[2]!)
  if (zset === undefined || at === undefined) return null
  return reverse ? zset.size - 1 - at : at
}

const zscan: Handler = (context, args) => {
  if (!/^[+-]?[0-9]{1,20}$/.test(args[2]!)) return fail("ERR invalid cursor")
  const zset = readSorted(context, args[1]!)
  if (zset === undefined) return ["0", []]
  const [cursor, page] = scanPage(
    zset.order.map((item) => item.member),
    args,
    2,
    !isTable(zset)
  )
  return [cursor, page.flatMap((member) => [member, formatDouble(zset.scores.get(member)!)])]
}

const zrandmember: Handler = (context, args) => {
  const withScores = args.length === 4 && args[3]!.toLowerCase() === "withscores"
  const count = args.length > 2 ? drawCount(args[2]!, withScores) : undefined
  if (args.length > 3 && !withScores) return syntaxError()
  const items = readSorted(context, args[1]!)?.order.slice() ?? []
  const draw = () => Math.floor(context.server.options.random() * items.length)
  if (count === undefined) return items.length === 0 ? null : items[draw()]!.member
  const chosen: Array<Scored> = []
  if (items.length > 0 && count < 0) { for (let i = 0; i < -count; i++) chosen.push(items[draw()]!) }
  else while (items.length > 0 && chosen.length < count) chosen.push(items.splice(draw(), 1)[0]!)
  return itemsReply(chosen, withScores)
}

export const sortedSetCommands: ReadonlyArray<Command> = [
  define("zadd", (context, args) => zadd(context, args, false)),
  define("zincrby", (context, args) => zadd(context, args, true)),
  define("zrem", removingFrom("zset", "zrem")),
  define("zscore", (context, args) => scoreOf(readSorted(context, args[1]!), args[2]!)),
  define("zmscore", zmscore),
  define("zcard", (context, args) => readSorted(context, args[1]!)?.size ?? 0),
  define("zrank", rank(false)),
  define("zrevrank", rank(true)),
  define("zscan", zscan),
  define("zrandmember", zrandmember)
]
