/** Commands for keys of any type: check, expire, rename, copy and iterate. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import { encodingOf } from "../data/encodings.ts"
import { cloneValue } from "../data/values.ts"
import { globMatch } from "../glob.ts"
import { DATABASES } from "../keyspace.ts"
import { bigInteger, MAX_INT64, MIN_INT64, smallInteger } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, OK, Status, syntaxError } from "../reply.ts"
import { touchWatchers } from "../watches.ts"
import { scanPage } from "./scan.ts"

const del = (context: Context, args: ReadonlyArray<string>): Value => {
  let count = 0
  for (let i = 1; i < args.length; i++) {
    const key = args[i]!
    if (context.db.peek(key) === undefined) continue
    context.db.remove(key)
    context.changed(key, "g", "del")
    count++
  }
  return count
}

const count = (find: (context: Context, key: string) => unknown): Handler => (context, args) =>
  args.slice(1).filter((key) => find(context, key) !== undefined).length

/** The deadline that an expiry command sets, in milliseconds. Relative arguments are added to the current time. */
export const deadline = (context: Context, name: string, text: string, unit: "s" | "ms", absolute: boolean): number => {
  const invalid = () => fail(`ERR invalid expire time in '${name}' command`)
  let value = bigInteger(text)
  if (unit === "s") {
    if (value > MAX_INT64 / 1000n || value < MIN_INT64 / 1000n) return invalid()
    value *= 1000n
  }
  if (!absolute) {
    value += BigInt(context.now)
    if (value > MAX_INT64) return invalid()
  }
  return Number(value)
}

const expire = (unit: "s" | "ms", absolute: boolean) => (context: Context, args: ReadonlyArray<string>): Value => {
  const key = args[1]!
  let nx = false
  let xx = false
  let gt = false
  let lt = false
  const name = args[0]!.toLowerCase()
  for (let i = 3; i < args.length; i++) {
    const option = args[i]!.toLowerCase()
    if (option === "nx") nx = true
    else if (option === "xx") xx = true
    else if (option === "gt") gt = true
    else if (option === "lt") lt = true
    else return fail(`ERR Unsupported option ${args[i]!}`)
  }
  if (nx && (xx || gt || lt)) return fail("ERR NX and XX, GT or LT options at the same time are not compatible")
  if (gt && lt) return fail("ERR GT and LT options at the same time are not compatible")
  const at = deadline(context, name, args[2]!, unit, absolute)
  const entry = context.db.write(key)
  if (entry === undefined) return 0
  const current = entry.expiresAt
  if (nx && current !== Infinity) return 0
  if (xx && current === Infinity) return 0
  if (gt && (current === Infinity || at <= current)) return 0
  if (lt && current !== Infinity && at >= current) return 0
  if (at <= context.now) {
    context.db.remove(key)
    context.changed(key, "g", "del")
    return 1
  }
  context.db.setExpiry(key, entry, at)
  context.changed(key, "g", "expire")
  return 1
}

const ttl = (render: (at: number, now: number) => number) => (context: Context, args: ReadonlyArray<string>): Value => {
  const entry = context.db.inspect(args[1]!)
  if (entry === undefined) return -2
  return entry.expiresAt === Infinity ? -1 : Math.max(0, render(entry.expiresAt, context.now))
}

const persist: Handler = (context, args) => {
  const entry = context.db.write(args[1]!)
  if (entry === undefined || entry.expiresAt === Infinity) return 0
  context.db.setExpiry(args[1]!, entry, Infinity)
  context.changed(args[1]!, "g", "persist")
  return 1
}

const rename = (onlyNew: boolean) => (context: Context, args: ReadonlyArray<string>): Value => {
  const [, from, to] = args as readonly [string, string, string]
  const { db } = context
  const entry = db.write(from)
  if (entry === undefined) return fail("ERR no such key")
  if (from === to) return onlyNew ? 0 : OK
  if (db.write(to) !== undefined) {
    if (onlyNew) return 0
    db.remove(to)
  }
  db.remove(from)
  db.put(to, entry.type, entry.value, entry.expiresAt)
  context.changed(from, "g", "rename_from")
  context.changed(to, "g", "rename_to")
  return onlyNew ? 1 : OK
}

const keys: Handler = (context, args) => {
  const found: Array<string> = []
  for (const [key, entry] of context.db.entries) {
    if (!context.db.isExpired(entry) && globMatch(args[1]!, key)) found.push(key)
  }
  return found
}

const scan: Handler = (context, args) => {
  let type: string | undefined
  const rest: Array<string> = [args[0]!, args[1]!]
  for (let i = 2; i < args.length; i++) {
    if (args[i]!.toLowerCase() === "type" && i + 1 < args.length) {
      type = args[++i]!.toLowerCase()
    } else rest.push(args[i]!)
  }
  const [cursor, page] = scanPage(Array.from(context.db.entries.keys()), rest, 1, false)
  const found = page.filter((key) => {
    const entry = context.db.entries.get(key)
    if (entry === undefined) return false
    // Compare the type before checking the expiry, as Redis does: an expired key is not removed if its type differs.
    if (type !== undefined && entry.type !== type) return false
    return context.db.peek(key) !== undefined
  })
  return [cursor, found]
}

const randomkey: Handler = (context) => {
  const keys = Array.from(context.db.entries.keys())
  while (keys.length > 0) {
    const at = Math.floor(context.server.options.random() * keys.length)
    const key = keys[at]!
    if (context.db.peek(key) !== undefined) return key
    keys.splice(at, 1)
  }
  return null
}

const flushDb = (context: Context, index: number): void => {
  const db = context.server.dbs[index]!
  for (const key of Array.from(db.entries.keys())) {
    touchWatchers(context.server, index, key, false)
    db.remove(key)
  }
  db.clear()
}

const flush = (all: boolean) => (context: Context, args: ReadonlyArray<string>): Value => {
  if (args.length > 2) return syntaxError()
  if (args.length === 2 && !/^(?:sync|async)$/i.test(args[1]!)) return syntaxError()
  if (all) context.server.dbs.forEach((_, index) => flushDb(context, index))
  else flushDb(context, context.client.db)
  context.server.tracker.flushed(context.client)
  return OK
}

const dbIndex = (text: string, message = "ERR DB index is out of range"): number => {
  const index = smallInteger(text)
  return index < 0 || index >= DATABASES ? fail(message) : index
}

const copy: Handler = (context, args) => {
  const [, from, to] = args as readonly [string, string, string]
  let target = context.client.db
  let replace = false
  for (let i = 3; i < args.length; i++) {
    const option = args[i]!.toLowerCase()
    if (option === "replace") replace = true
    else if (option === "db" && i + 1 < args.length) target = dbIndex(args[++i]!)
    else return syntaxError()
  }
  if (target === context.client.db && from === to) return fail("ERR source and destination objects are the same")
  const entry = context.db.read(from)
  if (entry === undefined) return 0
  const db = context.server.dbs[target]!
  if (db.peek(to) !== undefined) {
    if (!replace) return 0
    db.remove(to)
  }
  db.put(to, entry.type, cloneValue(entry), entry.expiresAt)
  context.changed(to, "g", "copy_to", db)
  return 1
}

const move: Handler = (context, args) => {
  const key = args[1]!
  const target = smallInteger(args[2]!)
  if (target < 0 || target >= DATABASES) return fail("ERR DB index is out of range")
  if (target === context.client.db) return fail("ERR source and destination objects are the same")
  const entry = context.db.write(key)
  if (entry === undefined) return 0
  const db = context.server.dbs[target]!
  if (db.peek(key) !== undefined) return 0
  context.db.remove(key)
  db.put(key, entry.type, entry.value, entry.expiresAt)
  context.changed(key, "g", "move_from")
  context.changed(key, "g", "move_to", db)
  return 1
}

const object: Handler = (context, args) => {
  const what = args[1]!.toLowerCase()
  const entry = context.db.inspect(args[2]!)
  if (entry === undefined) return null
  if (what === "idletime") return Math.floor((context.now - entry.accessedAt) / 1000)
  if (what === "encoding") return encodingOf(entry.type, entry.value)
  if (what === "freq") {
    return fail(
      "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching " +
        "between policies at runtime LRU and LFU data will take some time to adjust."
    )
  }
  return what === "refcount" ? 1 : 0
}

export const keyCommands: ReadonlyArray<Command> = [
  define("del", del),
  define("unlink", del),
  define("exists", count(({ db }, key) => db.inspect(key))),
  define("touch", count(({ db }, key) => db.read(key))),
  define("type", (context, args) => new Status(context.db.inspect(args[1]!)?.type ?? "none")),
  define("expire", expire("s", false)),
  define("pexpire", expire("ms", false)),
  define("expireat", expire("s", true)),
  define("pexpireat", expire("ms", true)),
  define("ttl", ttl((at, now) => Math.floor((Math.max(0, at - now) + 500) / 1000))),
  define("pttl", ttl((at, now) => at - now)),
  define("expiretime", ttl((at) => Math.floor((at + 500) / 1000))),
  define("pexpiretime", ttl((at) => at)),
  define("persist", persist),
  define("rename", rename(false)),
  define("renamenx", rename(true)),
  define("keys", keys),
  define("scan", scan),
  define("randomkey", randomkey),
  define("dbsize", (context) => context.db.entries.size),
  define("flushdb", flush(false)),
  define("flushall", flush(true)),
  define("copy", copy),
  define("move", move),
  define("object", object)
]
