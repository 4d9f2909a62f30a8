/** Set commands: members, random members, unions, intersections and differences. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import { growSet } from "../data/encodings.ts"
import { isTable } from "../data/tables.ts"
import type { Entry } from "../data/values.ts"
import { drawCount, integer } from "../numbers.ts"
import { fail, syntaxError } from "../reply.ts"
import { removingFrom } from "./memberRemoval.ts"
import { scanPage } from "./scan.ts"

const read = (context: Context, key: string): Set<string> | undefined => context.db.readAs(key, "set")?.value

const sadd: Handler = (context, args) => {
  const set = (context.db.writeAs(args[1]!, "set") ?? context.db.put(args[1]!, "set", new Set())).value
  const before = set.size
  for (let i = 2; i < args.length; i++) set.add(args[i]!)
  const added = set.size - before
  if (added > 0) {
    growSet(set, context.server.config, args.slice(2))
    context.changed(args[1]!, "s", "sadd")
  }
  return added
}

const smismember: Handler = (context, args) => {
  const set = read(context, args[1]!)
  return args.slice(2).map((member) => set?.has(member) === true ? 1 : 0)
}

const draw = (context: Context, length: number): number => Math.floor(context.server.options.random() * length)

const spop: Handler = (context, args) => {
  if (args.length > 3) return syntaxError()
  const key = args[1]!
  const count = args.length === 3 ? integer(args[2]!, "ERR value is out of range, must be positive") : undefined
  if (count !== undefined && count < 0) return fail("ERR value is out of range, must be positive")
  const entry = context.db.writeAs(key, "set")
  if (entry === undefined) return count === undefined ? null : []
  if (count === 0) return []
  const members = Array.from(entry.value)
  const taken: Array<string> = []
  if (count !== undefined && count >= members.length) taken.push(...members)
  else while (taken.length < (count ?? 1)) taken.push(members.splice(draw(context, members.length), 1)[0]!)
  for (const member of taken) entry.value.delete(member)
  context.changed(key, "s", "spop")
  context.dropIfEmpty(key, entry as Entry)
  return count === undefined ? taken[0]! : taken
}

const srandmember: Handler = (context, args) => {
  if (args.length > 3) return syntaxError()
  const count = args.length === 3 ? drawCount(args[2]!, false) : undefined
  const members = Array.from(read(context, args[1]!) ?? [])
  if (count === undefined) return members.length === 0 ? null : members[draw(context, members.length)]!
  const chosen: Array<string> = []
  if (members.length > 0) {
    for (let i = 0; i < -count; i++) chosen.push(members[draw(context, members.length)]!)
  }
  while (members.length > 0 && chosen.length < count) {
    chosen.push(members.splice(draw(context, members.length), 1)[0]!)
  }
  return chosen
}

const smove: Handler = (context, args) => {
  const [, from, to, member] = args as readonly [string, string, string, string]
  const source = context.db.writeAs(from, "set")
  if (source === undefined) return 0
  const target = context.db.writeAs(to, "set")
  if (from === to) return source.value.has(member) ? 1 : 0
  if (!source.value.delete(member)) return 0
  context.changed(from, "s", "srem")
  context.dropIfEmpty(from, source as Entry)
  const set = (target ?? context.db.put(to, "set", new Set())).value
  if (!set.has(member)) {
    set.add(member)
    growSet(set, context.server.config, [member])
    context.changed(to, "s", "sadd")
  }
  return 1
}

type Combine = "inter" | "union" | "diff"

const combine = (context: Context, how: Combine, keys: ReadonlyArray<string>): Set<string> => {
  const sets = keys.map((key) => read(context, key))
  if (how === "union") return new Set(sets.flatMap((set) => Array.from(set ?? [])))
  const [first = new Set<string>(), ...others] = sets
  return new Set(
    Array.from(first).filter((member) => others.every((set) => (set?.has(member) === true) === (how === "inter")))
  )
}

const combined = (how: Combine): Handler => (context, args) => Array.from(combine(context, how, args.slice(1)))

const storeCombined = (how: Combine): Handler => (context, args) => {
  const key = args[1]!
  const result = combine(context, how, args.slice(2))
  if (result.size === 0) {
    if (context.db.peek(key) !== undefined) {
      context.db.remove(key)
      context.changed(key, "g", "del")
    }
    return 0
  }
  growSet(result, context.server.config, result)
  context.db.put(key, "set", result)
  context.changed(key, "s", `s${how}store`)
  return result.size
}

const sintercard: Handler = (context, args) => {
  const number = integer(args[1]!, "ERR numkeys should be greater than 0")
  if (number <= 0) return fail("ERR numkeys should be greater than 0")
  if (number > args.length - 2) return fail("ERR Number of keys can't be greater than number of args")
  let limit = 0
  for (let i = 2 + number; i < args.length; i += 2) {
    if (args[i]!.toLowerCase() !== "limit" || args[i + 1] === undefined) return syntaxError()
    limit = integer(args[i + 1]!, "ERR LIMIT can't be negative")
    if (limit < 0) return fail("ERR LIMIT can't be negative")
  }
  const size = combine(context, "inter", args.slice(2, 2 + number)).size
  return limit === 0 ? size : Math.min(limit, size)
}

const sscan: Handler = (context, args) => {
  if (!/^[+-]?[0-9]{1,20}$/.test(args[2]!)) return fail("ERR invalid cursor")
  const set = read(context, args[1]!)
  if (set === undefined) return ["0", []]
  return scanPage(Array.from(set), args, 2, !isTable(set))
}

export const setCommands: ReadonlyArray<Command> = [
  define("sadd", sadd),
  define("srem", removingFrom("set", "srem")),
  define("smembers", (context, args) => Array.from(read(context, args[1]!) ?? [])),
  define("sismember", (context, args) => read(context, args[1]!)?.has(args[2]!) === true ? 1 : 0),
  define("smismember", smismember),
  define("scard", (context, args) => read(context, args[1]!)?.size ?? 0),
  define("spop", spop),
  define("srandmember", srandmember),
  define("smove", smove),
  define("sinter", combined("inter")),
  define("sinterstore", storeCombined("inter")),
  define("sunion", combined("union")),
  define("sunionstore", storeCombined("union")),
  define("sdiff", combined("diff")),
  define("sdiffstore", storeCombined("diff")),
  define("sintercard", sintercard),
  define("sscan", sscan)
]
