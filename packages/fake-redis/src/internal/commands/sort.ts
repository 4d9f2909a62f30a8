/** SORT and SORT_RO, which sort the elements of a list, set or sorted set by their own values or by other keys. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import { SortedSet } from "../data/sortedSet.ts"
import { toTable } from "../data/tables.ts"
import { integer, parseInteger, strtod } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, syntaxError, WRONGTYPE } from "../reply.ts"

interface Query {
  readonly by: string | undefined
  readonly get: ReadonlyArray<string>
  readonly offset: number
  readonly count: number
  readonly descending: boolean
  readonly alpha: boolean
  readonly store: string | undefined
}

const parse = (args: ReadonlyArray<string>, mayStore: boolean): Query => {
  const query = {
    by: undefined as string | undefined,
    get: [] as Array<string>,
    offset: 0,
    count: -1,
    descending: false,
    alpha: false,
    store: undefined as string | undefined
  }
  for (let at = 2; at < args.length; at++) {
    const left = args.length - at - 1
    const option = args[at]!.toLowerCase()
    if (option === "asc") query.descending = false
    else if (option === "desc") query.descending = true
    else if (option === "alpha") query.alpha = true
    else if (option === "limit" && left >= 2) {
      query.offset = integer(args[++at]!)
      query.count = integer(args[++at]!)
    } else if (option === "store" && left >= 1 && mayStore) query.store = args[++at]!
    else if (option === "by" && left >= 1) query.by = args[++at]!
    else if (option === "get" && left >= 1) query.get.push(args[++at]!)
    else return syntaxError()
  }
  return query
}

/** The value that a BY or GET pattern refers to. `hash_*->field` refers to a hash field. */
const valueOf = ({ db }: Context, pattern: string, element: string): string | undefined => {
  if (pattern === "#") return element
  const star = pattern.indexOf("*")
  if (star < 0) return undefined
  const arrow = pattern.indexOf("->", star + 1)
  const hasField = arrow >= 0 && arrow + 2 < pattern.length
  const end = hasField ? arrow : pattern.length
  const entry = db.read(pattern.slice(0, star) + element + pattern.slice(star + 1, end))
  if (entry === undefined) return undefined
  if (!hasField) return typeof entry.value === "string" ? entry.value : undefined
  return entry.value instanceof Map ? entry.value.get(pattern.slice(arrow + 2)) : undefined
}

/** The elements in their stored order. */
const elementsOf = (context: Context, key: string): ReadonlyArray<string> => {
  const value = context.db.read(key)?.value
  if (value === undefined) return []
  if (Array.isArray(value)) return value.slice()
  if (value instanceof SortedSet) {
    toTable(value)
    return value.order.map(({ member }) => member)
  }
  if (!(value instanceof Set)) return fail(WRONGTYPE)
  const members = Array.from(value)
  const numbers = members.map(parseInteger)
  return numbers.every((number) => number !== undefined) ? members.sort((a, b) => Number(a) - Number(b)) : members
}

const compare = (a: string, b: string): number => a < b ? -1 : a > b ? 1 : 0

const scoreOf = (text: string): number => {
  const score = strtod(text)
  return score === undefined ? fail("ERR One or more scores can't be converted into double") : score
}

const byNumber = (weights: ReadonlyMap<string, string | undefined>) => {
  const scores = new Map(
    Array.from(weights, ([element, weight]) => [element, weight === undefined ? 0 : scoreOf(weight)])
  )
  return (a: string, b: string) => scores.get(a)! - scores.get(b)! || compare(a, b)
}

const byText = (weights: ReadonlyMap<string, string | undefined>) => (a: string, b: string) => {
  const [first, second] = [weights.get(a), weights.get(b)]
  if (first === undefined || second === undefined) return Number(first !== undefined) - Number(second !== undefined)
  return compare(first, second)
}

const ordered = (context: Context, key: string, query: Query): ReadonlyArray<string> => {
  const elements = elementsOf(context, key).slice()
  const isUnsorted = query.by !== undefined && !query.by.includes("*")
  const type = context.db.peek(key)?.type
  // Sets are unordered. If the result is stored or a script runs, sort it anyway, because it must be deterministic
  if (isUnsorted && !(type === "set" && (query.store !== undefined || context.script))) {
    return type === "zset" && query.descending ? elements.reverse() : elements
  }
  const weights = new Map(elements.map((element) => [
    element,
    query.by === undefined || isUnsorted ? element : valueOf(context, query.by, element)
  ]))
  const order = query.alpha || isUnsorted ? byText(weights) : byNumber(weights)
  elements.sort(query.descending ? (a, b) => order(b, a) : order)
  return elements
}

const page = (items: ReadonlyArray<string>, { count, offset }: Query): ReadonlyArray<string> => {
  const from = Math.max(0, offset)
  return items.slice(from, count < 0 ? items.length : from + count)
}

const store = (context: Context, key: string, items: Array<string>): number => {
  if (items.length > 0) {
    context.db.put(key, "list", items)
    context.changed(key, "l", "sortstore")
  } else if (context.db.peek(key) !== undefined) {
    context.db.remove(key)
    context.changed(key, "g", "del")
  }
  return items.length
}

const sort = (mayStore: boolean): Handler => (context, args): Value => {
  const query = parse(args, mayStore)
  const found = page(ordered(context, args[1]!, query), query)
  const values = query.get.length === 0
    ? found
    : found.flatMap((element) => query.get.map((pattern) => valueOf(context, pattern, element) ?? null))
  return query.store === undefined ? values : store(context, query.store, values.map((value) => value ?? ""))
}

export const sortCommands: ReadonlyArray<Command> = [
  define("sort", sort(true)),
  define("sort_ro", sort(false))
]
