/** Hash commands: fields, counters and iteration. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import { growHash } from "../data/encodings.ts"
import { isTable } from "../data/tables.ts"
import { addFloats, bigInteger, double, drawCount, MAX_INT64, MIN_INT64, parseBigInt } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, NOT_FLOAT, OK, syntaxError } from "../reply.ts"
import { removingFrom } from "./memberRemoval.ts"
import { scanPage } from "./scan.ts"

const read = (context: Context, key: string): Map<string, string> | undefined => context.db.readAs(key, "hash")?.value

const forWrite = (context: Context, key: string): Map<string, string> =>
  (context.db.writeAs(key, "hash") ?? context.db.put(key, "hash", new Map())).value

const setField = (context: Context, key: string, field: string, value: string): void => {
  const hash = forWrite(context, key).set(field, value)
  growHash(hash, context.server.config, [field, value])
}

const hset = (name: string, status: boolean) => (context: Context, args: ReadonlyArray<string>): Value => {
  if (args.length % 2 === 1) return fail(`ERR wrong number of arguments for '${name}' command`)
  const hash = forWrite(context, args[1]!)
  let created = 0
  for (let i = 2; i < args.length; i += 2) {
    if (!hash.has(args[i]!)) created++
    hash.set(args[i]!, args[i + 1]!)
  }
  growHash(hash, context.server.config, args.slice(2))
  context.changed(args[1]!, "h", "hset")
  return status ? OK : created
}

const hsetnx: Handler = (context, args) => {
  const hash = context.db.writeAs(args[1]!, "hash")?.value
  if (hash?.has(args[2]!) === true) return 0
  setField(context, args[1]!, args[2]!, args[3]!)
  context.changed(args[1]!, "h", "hset")
  return 1
}

const hmget: Handler = (context, args) => {
  const hash = read(context, args[1]!)
  return args.slice(2).map((field) => hash?.get(field) ?? null)
}

const hgetall: Handler = (context, args) => {
  const flat: Array<string> = []
  for (const [field, value] of read(context, args[1]!) ?? []) flat.push(field, value)
  return flat
}

const hincrby: Handler = (context, args) => {
  const [, key, field] = args as readonly [string, string, string, string]
  const increment = bigInteger(args[3]!)
  const old = context.db.writeAs(key, "hash")?.value.get(field)
  const current = old === undefined ? 0n : parseBigInt(old) ?? fail("ERR hash value is not an integer")
  const next = current + increment
  if (next > MAX_INT64 || next < MIN_INT64) return fail("ERR increment or decrement would overflow")
  setField(context, key, field, next.toString())
  context.changed(key, "h", "hincrby")
  return next
}

const hincrbyfloat: Handler = (context, args) => {
  const [, key, field, increment] = args as readonly [string, string, string, string]
  const size = double(increment)
  if (!Number.isFinite(size)) return fail("ERR value is NaN or Infinity")
  const old = context.db.writeAs(key, "hash")?.value.get(field)
  const next = addFloats(old ?? "0", increment, ["ERR hash value is not a float", NOT_FLOAT])
  setField(context, key, field, next)
  context.changed(key, "h", "hincrbyfloat")
  return next
}

const hscan: Handler = (context, args) => {
  if (!/^[+-]?[0-9]{1,20}$/.test(args[2]!)) return fail("ERR invalid cursor")
  const hash = read(context, args[1]!)
  if (hash === undefined) return ["0", []]
  const [cursor, page] = scanPage(Array.from(hash.keys()), args, 2, !isTable(hash))
  return [cursor, page.flatMap((field) => [field, hash.get(field)!])]
}

const hrandfield: Handler = (context, args) => {
  const withValues = args.length === 4 && args[3]!.toLowerCase() === "withvalues"
  const count = args.length > 2 ? drawCount(args[2]!, withValues) : undefined
  if (args.length > 3 && !withValues) return syntaxError()
  const fields = Array.from(read(context, args[1]!) ?? [])
  const draw = () => Math.floor(context.server.options.random() * fields.length)
  if (count === undefined) return fields.length === 0 ? null : fields[draw()]![0]
  const chosen: Array<[string, string]> = []
  if (fields.length > 0 && count < 0) { for (let i = 0; i < -count; i++) chosen.push(fields[draw()]!) }
  else while (fields.length > 0 && chosen.length < count) chosen.push(fields.splice(draw(), 1)[0]!)
  return withValues ? chosen.flat() : chosen.map(([field]) => field)
}

export const hashCommands: ReadonlyArray<Command> = [
  define("hset", hset("hset", false)),
  define("hmset", hset("hmset", true)),
  define("hsetnx", hsetnx),
  define("hget", (context, args) => read(context, args[1]!)?.get(args[2]!) ?? null),
  define("hmget", hmget),
  define("hgetall", hgetall),
  define("hkeys", (context, args) => Array.from(read(context, args[1]!)?.keys() ?? [])),
  define("hvals", (context, args) => Array.from(read(context, args[1]!)?.values() ?? [])),
  define("hlen", (context, args) => read(context, args[1]!)?.size ?? 0),
  define("hexists", (context, args) => read(context, args[1]!)?.has(args[2]!) === true ? 1 : 0),
  define("hstrlen", (context, args) => read(context, args[1]!)?.get(args[2]!)?.length ?? 0),
  define("hdel", removingFrom("hash", "hdel")),
  define("hincrby", hincrby),
  define("hincrbyfloat", hincrbyfloat),
  define("hscan", hscan),
  define("hrandfield", hrandfield)
]
