/** Unions, intersections and differences of sorted sets. Plain sets are also accepted. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import type { Scored } from "../data/sortedSet.ts"
import { SortedSet } from "../data/sortedSet.ts"
import { toTable } from "../data/tables.ts"
import { integer, parseDouble } from "../numbers.ts"
import { fail, syntaxError, WRONGTYPE } from "../reply.ts"
import { itemsReply, storeSorted } from "./sortedSets.ts"

type How = "union" | "inter" | "diff"

const scoresOf = (context: Context, key: string): ReadonlyMap<string, number> => {
  const entry = context.db.read(key)
  if (entry === undefined) return new Map()
  if (entry.value instanceof SortedSet) return entry.value.scores
  if (entry.value instanceof Set) return new Map(Array.from(entry.value, (member) => [member, 1]))
  return fail(WRONGTYPE)
}

const combine = (
  context: Context,
  name: string,
  how: How,
  args: ReadonlyArray<string>,
  at: number,
  store: boolean
): { readonly items: ReadonlyArray<Scored>; readonly withScores: boolean } => {
  const number = integer(args[at]!)
  if (number < 1) return fail(`ERR at least 1 input key is needed for '${name}' command`)
  if (number > args.length - at - 1) return syntaxError()
  const sources = args.slice(at + 1, at + 1 + number).map((key) => scoresOf(context, key))
  const weights = sources.map(() => 1)
  let aggregate = "sum"
  let withScores = false
  for (let i = at + 1 + number; i < args.length; i++) {
    const option = args[i]!.toLowerCase()
    if (how !== "diff" && option === "weights" && i + number < args.length) {
      for (let j = 0; j < number; j++) {
        weights[j] = parseDouble(args[++i]!) ?? fail("ERR weight value is not a float")
      }
    } else if (how !== "diff" && option === "aggregate" && i + 1 < args.length) {
      aggregate = args[++i]!.toLowerCase()
      if (!["sum", "min", "max"].includes(aggregate)) return syntaxError()
    } else if (!store && option === "withscores") withScores = true
    else return syntaxError()
  }
  const weigh = (index: number, score: number): number => {
    const value = weights[index]! * score
    return Number.isNaN(value) ? 0 : value
  }
  const join = (a: number, b: number): number => {
    if (aggregate === "min") return Math.min(a, b)
    if (aggregate === "max") return Math.max(a, b)
    const sum = a + b
    return Number.isNaN(sum) ? 0 : sum
  }
  const result = new SortedSet()
  toTable(result)
  if (how === "union") {
    const sums = new Map<string, number>()
    sources.forEach((source, index) => {
      for (const [member, score] of source) {
        const own = weigh(index, score)
        const old = sums.get(member)
        sums.set(member, old === undefined ? own : join(old, own))
      }
    })
    for (const [member, score] of sums) result.set(member, score)
  } else {
    const order = how === "inter" ? sources.map((_, i) => i).sort((a, b) => sources[a]!.size - sources[b]!.size) : [0]
    const first = order[0]!
    for (const [member, score] of sources[first]!) {
      if (how === "diff") {
        if (!sources.slice(1).some((source) => source.has(member))) result.set(member, score)
      } else if (sources.every((source) => source.has(member))) {
        let total = weigh(first, score)
        for (const index of order.slice(1)) total = join(total, weigh(index, sources[index]!.get(member)!))
        result.set(member, total)
      }
    }
  }
  return { items: result.order, withScores }
}

const combined = (how: How): Handler => (context, args) => {
  const { items, withScores } = combine(context, `z${how}`, how, args, 1, false)
  return itemsReply(items, withScores)
}

const storeCombined = (how: How): Handler => (context, args) => {
  const name = `z${how}store`
  return storeSorted(context, args[1]!, combine(context, name, how, args, 2, true).items, name)
}

const zintercard: Handler = (context, args) => {
  const number = integer(args[1]!)
  if (number < 1) return fail("ERR at least 1 input key is needed for 'zintercard' command")
  if (number > args.length - 2) return syntaxError()
  const sources = args.slice(2, 2 + number).map((key) => scoresOf(context, key))
  let limit = Infinity
  for (let i = 2 + number; i < args.length; i += 2) {
    if (args[i]!.toLowerCase() !== "limit" || args[i + 1] === undefined) return syntaxError()
    const count = integer(args[i + 1]!, "ERR LIMIT can't be negative")
    if (count < 0) return fail("ERR LIMIT can't be negative")
    limit = count === 0 ? Infinity : count
  }
  let size = 0
  for (const member of sources[0]!.keys()) if (sources.every((source) => source.has(member))) size++
  return Math.min(size, limit)
}

export const sortedSetAlgebraCommands: ReadonlyArray<Command> = [
  define("zunion", combined("union")),
  define("zunionstore", storeCombined("union")),
  define("zinter", combined("inter")),
  define("zinterstore", storeCombined("inter")),
  define("zintercard", zintercard),
  define("zdiff", combined("diff")),
  define("zdiffstore", storeCombined("diff"))
]
