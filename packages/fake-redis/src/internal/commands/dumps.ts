/**
 * DUMP and RESTORE. The payload format differs from Redis's: real servers and this one reject each other's payloads.
 */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import { SortedSet } from "../data/sortedSet.ts"
import type { Stream } from "../data/stream.ts"
import { cloneStream } from "../data/stream.ts"
import { isTable, toTable } from "../data/tables.ts"
import type { Entry, TypeName, ValueTypes } from "../data/values.ts"
import { integer } from "../numbers.ts"
import { fail, OK, syntaxError } from "../reply.ts"
import { sha1 } from "../sha1.ts"

const MARK = "fake-redis-1:"
const SUM = 40

/** Replaces values that JSON cannot represent with objects that contain the name of the type. */
const replacer = (_key: string, value: unknown): unknown => {
  if (value instanceof SortedSet) return { $: "zset", items: value.order.map((item) => [item.member, item.score]) }
  if (value instanceof Map) return { $: "map", items: Array.from(value) }
  if (value instanceof Set) return { $: "set", items: Array.from(value) }
  if (typeof value === "bigint") return { $: "integer", items: [String(value)] }
  return value === Infinity || value === -Infinity ? { $: value > 0 ? "inf" : "-inf" } : value
}

const reviver = (_key: string, value: unknown): unknown => {
  const { $: kind, items } = Object(value) as {
    readonly $?: string
    readonly items: Array<readonly [string, string & number] & string>
  }
  if (kind === "inf") return Infinity
  if (kind === "-inf") return -Infinity
  if (kind === "integer") return BigInt(items[0]!)
  if (kind === "map") return new Map(items)
  if (kind === "set") return new Set<unknown>(items)
  if (kind !== "zset") return value
  const zset = new SortedSet()
  for (const [member, score] of items) zset.set(member, score)
  return zset
}

const dump: Handler = (context, args) => {
  const entry = context.db.read(args[1]!)
  if (entry === undefined) return null
  const body = MARK +
    JSON.stringify([entry.type, entry.value, typeof entry.value !== "string" && isTable(entry.value)], replacer)
  return body + sha1(body)
}

const read = (payload: string): readonly [TypeName, ValueTypes[TypeName]] => {
  const body = payload.slice(0, -SUM)
  if (!body.startsWith(MARK) || sha1(body) !== payload.slice(-SUM)) {
    return fail("ERR DUMP payload version or checksum are wrong")
  }
  const [type, value, isOfTable] = JSON.parse(body.slice(MARK.length), reviver) as [
    TypeName,
    ValueTypes[TypeName],
    boolean
  ]
  if (isOfTable && typeof value !== "string") toTable(value)
  return [type, type === "stream" ? cloneStream(value as Stream) : value]
}

const restore: Handler = (context: Context, args) => {
  const [, key, ttl, payload] = args as readonly [string, string, string, string]
  let replace = false
  let absolute = false
  let idle: number | undefined
  let frequency: number | undefined
  for (let at = 4; at < args.length; at++) {
    const option = args[at]!.toLowerCase()
    if (option === "replace") replace = true
    else if (option === "absttl") absolute = true
    else if (option === "idletime" && at + 1 < args.length && frequency === undefined) {
      idle = integer(args[++at]!)
      if (idle < 0) return fail("ERR Invalid IDLETIME value, must be >= 0")
    } else if (option === "freq" && at + 1 < args.length && idle === undefined) {
      frequency = integer(args[++at]!)
      if (frequency < 0 || frequency > 255) return fail("ERR Invalid FREQ value, must be >= 0 and <= 255")
    } else return syntaxError()
  }
  const old = context.db.peek(key)
  if (old !== undefined && !replace) return fail("BUSYKEY Target key name already exists.")
  const millis = integer(ttl)
  if (millis < 0) return fail("ERR Invalid TTL value, must be >= 0")
  const [type, value] = read(payload)
  const expiresAt = millis === 0 ? Infinity : absolute ? millis : context.now + millis
  if (expiresAt <= context.now) {
    if (old !== undefined) {
      context.db.remove(key)
      context.changed(key, "g", "del")
    }
    return OK
  }
  if (old !== undefined) context.db.remove(key)
  const entry = context.db.put(key, type, value as Entry["value"] as never, expiresAt)
  if (idle !== undefined) entry.accessedAt = context.now - idle * 1000
  context.changed(key, "g", "restore")
  return OK
}

export const dumpCommands: ReadonlyArray<Command> = [
  define("dump", dump),
  define("restore", restore)
]
