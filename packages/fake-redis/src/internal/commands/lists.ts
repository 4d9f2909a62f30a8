/**
 * List commands, including the blocking ones.
 */
import { blockUntil } from "../blockedClients.ts"
import type { BLOCKED, Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import type { Entry } from "../data/values.ts"
import { integer, MIN_INT64, parseBigInt } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, NullList, OK, syntaxError } from "../reply.ts"

type End = "left" | "right"

const read = (context: Context, key: string): ReadonlyArray<string> | undefined => context.db.readAs(key, "list")?.value

const pushOn = (context: Context, key: string, end: End, items: ReadonlyArray<string>): number => {
  const list = (context.db.writeAs(key, "list") ?? context.db.put(key, "list", [])).value
  if (end === "right") { for (const item of items) list.push(item) }
  else list.unshift(...items.slice().reverse())
  context.changed(key, "l", end === "left" ? "lpush" : "rpush")
  return list.length
}

const pushing = (end: End, onlyExisting: boolean) => (context: Context, args: ReadonlyArray<string>): Value => {
  const key = args[1]!
  if (onlyExisting && context.db.writeAs(key, "list") === undefined) return 0
  return pushOn(context, key, end, args.slice(2))
}

const take = (context: Context, key: string, entry: Entry<"list">, end: End, count: number): Array<string> => {
  const list = entry.value
  const taken = end === "left"
    ? list.splice(0, count)
    : list.splice(Math.max(0, list.length - count)).reverse()
  context.changed(key, "l", end === "left" ? "lpop" : "rpop")
  context.dropIfEmpty(key, entry as Entry)
  return taken
}

const popping = (end: End) => (context: Context, args: ReadonlyArray<string>): Value => {
  const key = args[1]!
  if (args.length > 3) return fail(`ERR wrong number of arguments for '${args[0]!.toLowerCase()}' command`)
  let count: number | undefined
  if (args.length === 3) {
    count = integer(args[2]!, "ERR value is out of range, must be positive")
    if (count < 0) return fail("ERR value is out of range, must be positive")
  }
  const entry = context.db.writeAs(key, "list")
  if (entry === undefined) return null
  if (count === undefined) return take(context, key, entry, end, 1)[0]!
  return count === 0 ? [] : take(context, key, entry, end, count)
}

const range = (length: number, first: number, last: number): readonly [number, number] => {
  let from = first < 0 ? first + length : first
  const to = last < 0 ? last + length : last
  if (from < 0) from = 0
  return [from, Math.min(to, length - 1) + 1]
}

const lrange: Handler = (context, args) => {
  const first = integer(args[2]!)
  const last = integer(args[3]!)
  const list = read(context, args[1]!) ?? []
  const [from, to] = range(list.length, first, last)
  return from < to ? list.slice(from, to) : []
}

const lindex: Handler = (context, args) => {
  const list = read(context, args[1]!)
  if (list === undefined) return null
  return list.at(integer(args[2]!)) ?? null
}

const lset: Handler = (context, args) => {
  const entry = context.db.writeAs(args[1]!, "list")
  if (entry === undefined) return fail("ERR no such key")
  const index = integer(args[2]!)
  const at = index < 0 ? index + entry.value.length : index
  if (at < 0 || at >= entry.value.length) return fail("ERR index out of range")
  entry.value[at] = args[3]!
  context.changed(args[1]!, "l", "lset")
  return OK
}

const lrem: Handler = (context, args) => {
  const [, key, , item] = args as readonly [string, string, string, string]
  const count = integer(args[2]!)
  const entry = context.db.writeAs(key, "list")
  if (entry === undefined) return 0
  const list = entry.value
  let removed = 0
  const limit = count === 0 ? Infinity : Math.abs(count)
  for (let i = count < 0 ? list.length - 1 : 0; i >= 0 && i < list.length && removed < limit;) {
    if (list[i] === item) {
      list.splice(i, 1)
      removed++
      if (count < 0) i--
    } else i += count < 0 ? -1 : 1
  }
  if (removed > 0) {
    context.changed(key, "l", "lrem")
    context.dropIfEmpty(key, entry as Entry)
  }
  return removed
}

const ltrim: Handler = (context, args) => {
  const first = integer(args[2]!)
  const last = integer(args[3]!)
  const entry = context.db.writeAs(args[1]!, "list")
  if (entry === undefined) return OK
  const [from, to] = range(entry.value.length, first, last)
  entry.value = from < to ? entry.value.slice(from, to) : []
  context.changed(args[1]!, "l", "ltrim")
  context.dropIfEmpty(args[1]!, entry as Entry)
  return OK
}

const linsert: Handler = (context, args) => {
  const [, key, , pivot, item] = args as readonly [string, string, string, string, string]
  const where = args[2]!.toLowerCase()
  if (where !== "before" && where !== "after") return syntaxError()
  const list = context.db.writeAs(key, "list")?.value
  if (list === undefined) return 0
  const at = list.indexOf(pivot)
  if (at < 0) return -1
  list.splice(where === "before" ? at : at + 1, 0, item)
  context.changed(key, "l", "linsert")
  return list.length
}

const lpos: Handler = (context, args) => {
  let rank = 1
  let isLeast = false
  let count: number | undefined
  let limit = 0
  for (let i = 3; i < args.length; i += 2) {
    const option = args[i]!.toLowerCase()
    const value = args[i + 1]
    if (value === undefined) return syntaxError()
    if (option === "rank") {
      rank = integer(value)
      isLeast = parseBigInt(value) === MIN_INT64
      if (rank === 0) {
        return fail(
          "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... " +
            "or use negative to start from the end of the list"
        )
      }
    } else if (option === "count") {
      count = integer(value, "ERR COUNT can't be negative")
      if (count < 0) return fail("ERR COUNT can't be negative")
    } else if (option === "maxlen") {
      limit = integer(value, "ERR MAXLEN can't be negative")
      if (limit < 0) return fail("ERR MAXLEN can't be negative")
    } else return syntaxError()
  }
  const list = read(context, args[1]!)
  if (list === undefined) return count === undefined ? null : []
  const found: Array<number> = []
  const wanted = count === undefined ? 1 : count === 0 ? Infinity : count
  // The smallest integer cannot be negated, so Redis skips nothing
  let skip = isLeast ? 0 : Math.abs(rank) - 1
  const end = limit === 0 ? list.length : Math.min(limit, list.length)
  for (let i = 0; i < end && found.length < wanted; i++) {
    const at = rank < 0 ? list.length - 1 - i : i
    if (list[at] !== args[2]) continue
    if (skip > 0) skip--
    else found.push(at)
  }
  return count === undefined ? found[0] ?? null : found
}

const end = (text: string): End => {
  const lower = text.toLowerCase()
  return lower === "left" || lower === "right" ? lower : syntaxError()
}

const move = (context: Context, from: string, to: string, wherefrom: End, whereto: End): Value => {
  const entry = context.db.writeAs(from, "list")
  if (entry === undefined) return null
  context.db.writeAs(to, "list")
  const list = entry.value
  const item = wherefrom === "left" ? list.shift()! : list.pop()!
  pushOn(context, to, whereto, [item])
  context.changed(from, "l", wherefrom === "left" ? "lpop" : "rpop")
  context.dropIfEmpty(from, entry as Entry)
  return item
}

const blockingPop = (side: End) => (context: Context, args: ReadonlyArray<string>): Value | typeof BLOCKED => {
  const keys = args.slice(1, -1)
  const deadline = blockUntil(args[args.length - 1]!, context.server.micros)
  for (const key of keys) {
    const entry = context.db.writeAs(key, "list")
    if (entry !== undefined) return [key, take(context, key, entry, side, 1)[0]!]
  }
  if (context.atomic) return null
  return context.server.block(context, {
    type: "list",
    keys,
    deadline,
    timedOut: null,
    serve: (later, key) => [key, take(later, key, later.db.writeAs(key, "list")!, side, 1)[0]!]
  })
}

const blockingMove = (
  context: Context,
  from: string,
  to: string,
  wherefrom: End,
  whereto: End,
  timeout: string
): Value | typeof BLOCKED => {
  const deadline = blockUntil(timeout, context.server.micros)
  if (context.db.writeAs(from, "list") !== undefined) return move(context, from, to, wherefrom, whereto)
  if (context.atomic) return null
  return context.server.block(context, {
    type: "list",
    keys: [from],
    deadline,
    timedOut: new NullList(),
    serve: (later) => move(later, from, to, wherefrom, whereto)
  })
}

interface Multi {
  readonly keys: ReadonlyArray<string>
  readonly side: End
  readonly count: number
}

const parseMulti = (args: ReadonlyArray<string>, at: number): Multi => {
  const number = integer(args[at]!, "ERR numkeys should be greater than 0")
  if (number <= 0) return fail("ERR numkeys should be greater than 0")
  const keys = args.slice(at + 1, at + 1 + number)
  const where = args[at + 1 + number]
  if (where === undefined) return syntaxError()
  const side = end(where)
  let count: number | undefined
  for (let i = at + 2 + number; i < args.length; i += 2) {
    if (args[i]!.toLowerCase() !== "count" || count !== undefined || args[i + 1] === undefined) return syntaxError()
    count = integer(args[i + 1]!, "ERR count should be greater than 0")
    if (count <= 0) return fail("ERR count should be greater than 0")
  }
  return { keys, side, count: count ?? 1 }
}

const popFirst = (context: Context, { count, keys, side }: Multi): Value | undefined => {
  for (const key of keys) {
    const entry = context.db.writeAs(key, "list")
    if (entry !== undefined) return [key, take(context, key, entry, side, count)]
  }
  return undefined
}

const blmpop: Handler = (context, args) => {
  const multi = parseMulti(args, 2)
  const deadline = blockUntil(args[1]!, context.server.micros)
  const now = popFirst(context, multi)
  if (now !== undefined || context.atomic) return now ?? null
  return context.server.block(context, {
    type: "list",
    keys: multi.keys,
    deadline,
    timedOut: null,
    serve: (later, key) => popFirst(later, { ...multi, keys: [key] })
  })
}

export const listCommands: ReadonlyArray<Command> = [
  define("lpush", pushing("left", false)),
  define("rpush", pushing("right", false)),
  define("lpushx", pushing("left", true)),
  define("rpushx", pushing("right", true)),
  define("lpop", popping("left")),
  define("rpop", popping("right")),
  define("llen", (context, args) => read(context, args[1]!)?.length ?? 0),
  define("lrange", lrange),
  define("lindex", lindex),
  define("lset", lset),
  define("lrem", lrem),
  define("ltrim", ltrim),
  define("linsert", linsert),
  define("lpos", lpos),
  define("lmove", (context, args) => move(context, args[1]!, args[2]!, end(args[3]!), end(args[4]!))),
  define("rpoplpush", (context, args) => move(context, args[1]!, args[2]!, "right", "left")),
  define("blpop", blockingPop("left")),
  define("brpop", blockingPop("right")),
  define(
    "blmove",
    (context, args) => blockingMove(context, args[1]!, args[2]!, end(args[3]!), end(args[4]!), args[5]!)
  ),
  define("brpoplpush", (context, args) => blockingMove(context, args[1]!, args[2]!, "right", "left", args[3]!)),
  define("lmpop", (context, args) => popFirst(context, parseMulti(args, 1)) ?? null),
  define("blmpop", blmpop)
]
