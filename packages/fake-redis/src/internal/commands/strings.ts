/**
 * String commands and counters.
 */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import { addFloats, bigInteger, integer, MAX_INT64, MIN_INT64, parseBigInt } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, NOT_FLOAT, NOT_INTEGER, OK, syntaxError } from "../reply.ts"
import { deadline } from "./keys.ts"

const get = (context: Context, key: string): string | null => context.db.readAs(key, "string")?.value ?? null

interface Expiry {
  readonly unit: "s" | "ms"
  readonly absolute: boolean
  readonly text: string
}

const EXPIRY: Readonly<Record<string, Omit<Expiry, "text">>> = {
  ex: { unit: "s", absolute: false },
  px: { unit: "ms", absolute: false },
  exat: { unit: "s", absolute: true },
  pxat: { unit: "ms", absolute: true }
}

const positiveDeadline = (context: Context, name: string, expiry: Expiry): number => {
  const value = bigInteger(expiry.text)
  if (value <= 0n) return fail(`ERR invalid expire time in '${name}' command`)
  return deadline(context, name, expiry.text, expiry.unit, expiry.absolute)
}

/** Stores a string as SET does, and publishes the events. */
const store = (
  context: Context,
  key: string,
  value: string,
  expiresAt: number,
  announce = expiresAt !== Infinity
): void => {
  context.db.put(key, "string", value, expiresAt)
  context.changed(key, "$", "set")
  if (announce) context.server.notify(context.db, key, "g", "expire")
}

const set: Handler = (context, args) => {
  const [, key, value] = args as readonly [string, string, string]
  let nx = false
  let xx = false
  let keep = false
  let returnOld = false
  let expiry: Expiry | undefined
  for (let i = 3; i < args.length; i++) {
    const option = args[i]!.toLowerCase()
    const unit = EXPIRY[option]
    if (option === "nx" && !xx) nx = true
    else if (option === "xx" && !nx) xx = true
    else if (option === "get") returnOld = true
    else if (option === "keepttl" && expiry === undefined) keep = true
    else if (unit !== undefined && !keep && expiry === undefined && i + 1 < args.length) {
      expiry = { ...unit, text: args[++i]! }
    } else return syntaxError()
  }
  const at = expiry === undefined ? Infinity : positiveDeadline(context, "set", expiry)
  const old = returnOld ? get(context, key) : null
  const current = context.db.peek(key)
  if ((nx && current !== undefined) || (xx && current === undefined)) return returnOld ? old : null
  store(context, key, value, keep && current !== undefined ? current.expiresAt : at, expiry !== undefined)
  return returnOld ? old : OK
}

const setnx: Handler = (context, args) => {
  if (context.db.peek(args[1]!) !== undefined) return 0
  store(context, args[1]!, args[2]!, Infinity)
  return 1
}

const setWithExpiry = (unit: "s" | "ms") => (context: Context, args: ReadonlyArray<string>): Value => {
  const at = positiveDeadline(context, args[0]!.toLowerCase(), { unit, absolute: false, text: args[2]! })
  store(context, args[1]!, args[3]!, at)
  return OK
}

const getset: Handler = (context, args) => {
  const old = get(context, args[1]!)
  store(context, args[1]!, args[2]!, Infinity)
  return old
}

const getdel: Handler = (context, args) => {
  const old = get(context, args[1]!)
  if (old !== null) {
    context.db.remove(args[1]!)
    context.changed(args[1]!, "g", "del")
  }
  return old
}

const getex: Handler = (context, args) => {
  const key = args[1]!
  let persist = false
  let expiry: Expiry | undefined
  for (let i = 2; i < args.length; i++) {
    const option = args[i]!.toLowerCase()
    const unit = EXPIRY[option]
    if (option === "persist" && expiry === undefined && !persist) persist = true
    else if (unit !== undefined && !persist && expiry === undefined && i + 1 < args.length) {
      expiry = { ...unit, text: args[++i]! }
    } else return syntaxError()
  }
  const entry = context.db.readAs(key, "string")
  if (entry === undefined) return null
  const value = entry.value
  if (expiry !== undefined) {
    const at = positiveDeadline(context, "getex", expiry)
    if (at <= context.now) {
      context.db.remove(key)
      context.changed(key, "g", "del")
    } else {
      context.db.setExpiry(key, entry, at)
      context.changed(key, "g", "expire")
    }
  } else if (persist && entry.expiresAt !== Infinity) {
    context.db.setExpiry(key, entry, Infinity)
    context.changed(key, "g", "persist")
  }
  return value
}

const mset = (name: string, onlyNew: boolean) => (context: Context, args: ReadonlyArray<string>): Value => {
  if (args.length % 2 === 0) return fail(`ERR wrong number of arguments for '${name}' command`)
  if (onlyNew) {
    for (let i = 1; i < args.length; i += 2) if (context.db.peek(args[i]!) !== undefined) return 0
  }
  for (let i = 1; i < args.length; i += 2) store(context, args[i]!, args[i + 1]!, Infinity)
  return onlyNew ? 1 : OK
}

/** Replaces the string under a key and keeps the key's deadline. */
const rewrite = (context: Context, key: string, value: string): void => {
  const entry = context.db.writeAs(key, "string")
  if (entry === undefined) context.db.put(key, "string", value)
  else entry.value = value
}

const MAX_STRING = 512 * 1024 * 1024

const append: Handler = (context, args) => {
  const value = (context.db.writeAs(args[1]!, "string")?.value ?? "") + args[2]!
  rewrite(context, args[1]!, value)
  context.changed(args[1]!, "$", "append")
  return value.length
}

const getRange = (context: Context, args: ReadonlyArray<string>): Value => {
  let start = integer(args[2]!)
  let end = integer(args[3]!)
  const text = get(context, args[1]!) ?? ""
  if (start < 0 && end < 0 && start > end) return ""
  if (start < 0) start = Math.max(0, text.length + start)
  if (end < 0) end = Math.max(0, text.length + end)
  return text.slice(start, Math.min(end, text.length - 1) + 1)
}

const setrange: Handler = (context, args) => {
  const [, key, , value] = args as readonly [string, string, string, string]
  const offset = integer(args[2]!)
  if (offset < 0) return fail("ERR offset is out of range")
  const entry = context.db.writeAs(key, "string")
  const text = entry?.value ?? ""
  if (value === "") return text.length
  if (offset + value.length > MAX_STRING) return fail("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
  const result = text.padEnd(offset, "\0").slice(0, offset) + value + text.slice(offset + value.length)
  rewrite(context, key, result)
  context.changed(key, "$", "setrange")
  return result.length
}

const increase = (context: Context, key: string, increment: bigint): Value => {
  const entry = context.db.writeAs(key, "string")
  const old = entry === undefined ? 0n : parseBigInt(entry.value) ?? fail(NOT_INTEGER)
  const next = old + increment
  if (next > MAX_INT64 || next < MIN_INT64) return fail("ERR increment or decrement would overflow")
  rewrite(context, key, next.toString())
  context.changed(key, "$", "incrby")
  return next >= -9007199254740991n && next <= 9007199254740991n ? Number(next) : next
}

const decrby: Handler = (context, args) => {
  const increment = bigInteger(args[2]!)
  return increment === MIN_INT64 ? fail("ERR decrement would overflow") : increase(context, args[1]!, -increment)
}

const incrbyfloat: Handler = (context, args) => {
  const entry = context.db.writeAs(args[1]!, "string")
  const value = addFloats(entry?.value ?? "0", args[2]!, [NOT_FLOAT, NOT_FLOAT])
  rewrite(context, args[1]!, value)
  context.changed(args[1]!, "$", "incrbyfloat")
  return value
}

export const stringCommands: ReadonlyArray<Command> = [
  define("get", (context, args) => get(context, args[1]!)),
  define("set", set),
  define("setnx", setnx),
  define("setex", setWithExpiry("s")),
  define("psetex", setWithExpiry("ms")),
  define("getset", getset),
  define("getdel", getdel),
  define("getex", getex),
  define("mget", (context, args) =>
    args.slice(1).map((key) => {
      const entry = context.db.read(key)
      return entry?.type === "string" ? entry.value as string : null
    })),
  define("mset", mset("mset", false)),
  define("msetnx", mset("msetnx", true)),
  define("append", append),
  define("strlen", (context, args) => get(context, args[1]!)?.length ?? 0),
  define("getrange", getRange),
  define("substr", getRange),
  define("setrange", setrange),
  define("incr", (context, args) => increase(context, args[1]!, 1n)),
  define("decr", (context, args) => increase(context, args[1]!, -1n)),
  define("incrby", (context, args) => increase(context, args[1]!, bigInteger(args[2]!))),
  define("decrby", decrby),
  define("incrbyfloat", incrbyfloat)
]
