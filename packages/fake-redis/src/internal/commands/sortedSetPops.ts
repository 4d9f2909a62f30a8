/** Sorted set commands that pop members from either end. The blocking commands wait until there are members. */
import { blockUntil } from "../blockedClients.ts"
import type { BLOCKED, Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import type { Scored } from "../data/sortedSet.ts"
import type { Entry } from "../data/values.ts"
import { formatDouble, integer } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, syntaxError } from "../reply.ts"
import { itemsReply } from "./sortedSets.ts"

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
  return entry === undefined || count === 0 ? [] : itemsReply(pop(context, args[1]!, entry, edge, count), true)
}

type Serve = (context: Context, key: string) => Value | undefined

/** Pops from the first key that has members, or blocks until one does. */
const popOrWait = (
  context: Context,
  keys: ReadonlyArray<string>,
  timeout: string,
  serve: Serve
): Value | typeof BLOCKED => {
  const deadline = blockUntil(timeout, context.server.micros)
  for (const key of keys) {
    const value = serve(context, key)
    if (value !== undefined) return value
  }
  if (context.atomic) return null
  return context.server.block(context, { type: "zset", keys, deadline, timedOut: null, serve })
}

const blockingPop = (edge: Edge) => (context: Context, args: ReadonlyArray<string>): Value | typeof BLOCKED =>
  popOrWait(context, args.slice(1, -1), args[args.length - 1]!, (at, key) => {
    const entry = at.db.writeAs(key, "zset")
    return entry === undefined ? undefined : [key, ...itemsReply(pop(at, key, entry, edge, 1), true)]
  })

const parseMulti = (
  args: ReadonlyArray<string>,
  at: number
): { readonly keys: Array<string>; readonly serve: Serve } => {
  const number = integer(args[at]!, "ERR numkeys should be greater than 0")
  if (number <= 0) return fail("ERR numkeys should be greater than 0")
  const edge = args[at + 1 + number]?.toLowerCase()
  if (edge !== "min" && edge !== "max") return syntaxError()
  let count: number | undefined
  for (let i = at + 2 + number; i < args.length; i += 2) {
    if (args[i]!.toLowerCase() !== "count" || count !== undefined || args[i + 1] === undefined) return syntaxError()
    count = integer(args[i + 1]!, "ERR count should be greater than 0")
    if (count <= 0) return fail("ERR count should be greater than 0")
  }
  return {
    keys: args.slice(at + 1, at + 1 + number),
    serve: (context, key) => {
      const entry = context.db.writeAs(key, "zset")
      if (entry === undefined) return undefined
      return [key, pop(context, key, entry, edge, count ?? 1).map((item) => [item.member, formatDouble(item.score)])]
    }
  }
}

const zmpop: Handler = (context, args) => {
  const { keys, serve } = parseMulti(args, 1)
  for (const key of keys) {
    const value = serve(context, key)
    if (value !== undefined) return value
  }
  return null
}

const bzmpop: Handler = (context, args) => {
  const { keys, serve } = parseMulti(args, 2)
  return popOrWait(context, keys, args[1]!, serve)
}

export const sortedSetPopCommands: ReadonlyArray<Command> = [
  define("zpopmin", popping("min")),
  define("zpopmax", popping("max")),
  define("bzpopmin", blockingPop("min")),
  define("bzpopmax", blockingPop("max")),
  define("zmpop", zmpop),
  define("bzmpop", bzmpop)
]
