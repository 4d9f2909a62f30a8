/**
 * Stream commands without groups, and XREAD.
 */
import { integer } from "../numbers.ts"
import type { Context } from "../registry.ts"
import { define } from "../registry.ts"
import type { Value } from "../reply.ts"
import { fail, OK, syntaxError } from "../reply.ts"
import type { Stream, StreamEntry, StreamId } from "../stream.ts"
import {
  between,
  compareIds,
  findById,
  INVALID_ID,
  makeStream,
  MAX_ID,
  MAX_U64,
  MIN_ID,
  nextId,
  parseId,
  parseU64,
  position,
  previousId,
  printId,
  trim
} from "../stream.ts"

export const readStream = (context: Context, key: string): Stream | undefined => context.db.readAs(key, "stream")?.value

export const entryReply = (entry: StreamEntry): Value => [printId(entry.id), entry.fields]

interface Trimming {
  readonly keep: number
  readonly minId: StreamId | undefined
  readonly approximate: boolean
  readonly limit: number | undefined
}

interface TrimOptions {
  readonly trimming: Trimming | undefined
  readonly noMake: boolean
  readonly next: number
}

const trimOptions = (args: ReadonlyArray<string>, at: number, adding: boolean): TrimOptions => {
  let strategy: "maxlen" | "minid" | undefined
  let keep = Infinity
  let minId: StreamId | undefined
  let approximate = false
  let limit: number | undefined
  let noMake = false
  let i = at
  for (; i < args.length; i++) {
    const option = args[i]!.toLowerCase()
    const more = args.length - 1 - i
    if (adding && option === "*") break
    if ((option === "maxlen" || option === "minid") && more > 0) {
      if (strategy !== undefined) {
        return fail("ERR syntax error, MAXLEN and MINID options at the same time are not compatible")
      }
      approximate = false
      const sign = args[i + 1]!
      if (more >= 2 && (sign === "~" || sign === "=")) {
        approximate = sign === "~"
        i++
      }
      strategy = option
      i++
      if (option === "maxlen") {
        keep = integer(args[i]!)
        if (keep < 0) return fail("ERR The MAXLEN argument must be >= 0.")
      } else minId = parseId(args[i]!, 0)
    } else if (option === "limit" && more > 0) {
      i++
      limit = integer(args[i]!)
      if (limit < 0) return fail("ERR The LIMIT argument must be >= 0.")
    } else if (adding && option === "nomkstream") noMake = true
    else if (adding) break
    else return syntaxError()
  }
  if (limit !== undefined && strategy === undefined) {
    return fail("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")
  }
  if (!adding && strategy === undefined) {
    return fail("ERR syntax error, XTRIM must be called with a trimming strategy")
  }
  if (limit !== undefined && !approximate) {
    return fail("ERR syntax error, LIMIT cannot be used without the special ~ option")
  }
  const trimming = strategy === undefined ? undefined : { keep, minId, approximate, limit }
  return { trimming, noMake, next: i }
}

/** A node holds a hundred entries, and `~` removes whole nodes only. */
const NODE = 100

const trimStream = (stream: Stream, { approximate, keep, limit, minId }: Trimming): number => {
  if (!approximate) return trim(stream, keep, minId)
  let count = minId === undefined ? Math.max(0, stream.entries.length - keep) : position(stream.entries, minId)
  count -= count % NODE
  const most = limit === undefined ? NODE * 100 : limit === 0 ? Infinity : limit
  count = Math.min(count, most - (most % NODE || 0))
  return count > 0 ? trim(stream, stream.entries.length - count, undefined) : 0
}

define("xadd", -5, "w", (context, args) => {
  const key = args[1]!
  const { next, noMake, trimming } = trimOptions(args, 2, true)
  const idText = args[next]
  if (idText === undefined) return fail("ERR wrong number of arguments for 'xadd' command")
  let id: StreamId | undefined
  let auto: "all" | "seq" | undefined
  if (idText === "*") auto = "all"
  else if (idText.endsWith("-*")) {
    auto = "seq"
    const ms = parseU64(idText.slice(0, -2))
    id = ms === undefined ? fail(INVALID_ID) : { ms, seq: 0 }
  } else id = parseId(idText, 0)
  const fields = args.slice(next + 1)
  if (fields.length === 0 || fields.length % 2 === 1) return fail("ERR wrong number of arguments for 'xadd' command")
  if (auto === undefined && compareIds(id!, MIN_ID) === 0) {
    return fail("ERR The ID specified in XADD must be greater than 0-0")
  }
  const existing = context.db.writeAs(key, "stream")
  if (existing === undefined && noMake) return null
  const stream = existing?.value ?? makeStream()
  if (compareIds(stream.lastId, MAX_ID) === 0) {
    return fail("ERR The stream has exhausted the last possible ID, unable to add more items")
  }
  const tooSmall = "ERR The ID specified in XADD is equal or smaller than the target stream top item"
  if (auto === "all") {
    id = context.now > stream.lastId.ms ? { ms: context.now, seq: 0 } : nextId(stream.lastId)!
  } else if (auto === "seq") {
    const last = stream.lastId
    if (id!.ms === last.ms) id = last.seq === MAX_U64 ? fail(tooSmall) : { ms: last.ms, seq: last.seq + 1 }
  }
  if (compareIds(id!, stream.lastId) <= 0) {
    if (existing === undefined) context.db.put(key, "stream", stream)
    return fail(tooSmall)
  }
  if (existing === undefined) context.db.put(key, "stream", stream)
  stream.entries.push({ id: id!, fields })
  stream.lastId = id!
  stream.entriesAdded++
  context.changed(key, "t", "xadd")
  if (trimming !== undefined && trimStream(stream, trimming) > 0) context.server.notify(context.db, key, "t", "xtrim")
  context.server.blocked.mark(context.db, key)
  return printId(id!)
})

define("xtrim", -4, "w", (context, args) => {
  const { trimming } = trimOptions(args, 2, false)
  const entry = context.db.writeAs(args[1]!, "stream")
  if (entry === undefined) return 0
  const count = trimStream(entry.value, trimming!)
  if (count > 0) context.changed(args[1]!, "t", "xtrim")
  return count
})

define("xlen", 2, "", (context, args) => readStream(context, args[1]!)?.entries.length ?? 0)

export interface IdRange {
  readonly from: StreamId
  readonly to: StreamId
}

export const startId = (text: string): StreamId => {
  if (text === "-") return MIN_ID
  if (text === "+") return MAX_ID
  if (!text.startsWith("(")) return parseId(text, 0)
  return nextId(parseId(text.slice(1), 0)) ?? fail("ERR invalid start ID for the interval")
}

export const endId = (text: string): StreamId => {
  if (text === "-") return MIN_ID
  if (text === "+") return MAX_ID
  if (!text.startsWith("(")) return parseId(text, MAX_U64)
  return previousId(parseId(text.slice(1), MAX_U64)) ?? fail("ERR invalid end ID for the interval")
}

const xrange = (reverse: boolean) => (context: Context, args: ReadonlyArray<string>): Value => {
  const from = startId(args[reverse ? 3 : 2]!)
  const to = endId(args[reverse ? 2 : 3]!)
  let count = -1
  for (let i = 4; i < args.length; i += 2) {
    if (args[i]!.toLowerCase() !== "count" || args[i + 1] === undefined) return syntaxError()
    count = Math.max(0, integer(args[i + 1]!))
  }
  const stream = readStream(context, args[1]!)
  if (stream === undefined) return []
  if (count === 0) return null
  const limit = count < 0 ? Infinity : count
  const entries = reverse ? between(stream, from, to).reverse().slice(0, limit) : between(stream, from, to, limit)
  return entries.map(entryReply)
}
define("xrange", -4, "", xrange(false))
define("xrevrange", -4, "", xrange(true))

define("xdel", -3, "w", (context, args) => {
  const entry = context.db.writeAs(args[1]!, "stream")
  if (entry === undefined) return 0
  const stream = entry.value
  const ids = args.slice(2).map((text) => parseId(text, 0))
  let count = 0
  for (const id of ids) {
    if (findById(stream.entries, id) === undefined) continue
    stream.entries.splice(position(stream.entries, id), 1)
    count++
    if (compareIds(id, stream.maxDeletedId) > 0) stream.maxDeletedId = id
  }
  if (count > 0) context.changed(args[1]!, "t", "xdel")
  return count
})

define("xsetid", -3, "w", (context, args) => {
  const id = parseId(args[2]!, 0)
  let added = -1
  let deleted: StreamId | undefined
  for (let i = 3; i < args.length; i += 2) {
    const option = args[i]!.toLowerCase()
    const value = args[i + 1]
    if (value === undefined) return syntaxError()
    if (option === "entriesadded") {
      added = integer(value)
      if (added < 0) return fail("ERR entries_added must be positive")
    } else if (option === "maxdeletedid") {
      deleted = parseId(value, 0)
      if (compareIds(id, deleted) < 0) {
        return fail("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")
      }
    } else return syntaxError()
  }
  const entry = context.db.write(args[1]!)
  if (entry === undefined) return fail("ERR no such key")
  const stream = context.db.writeAs(args[1]!, "stream")!.value
  if (compareIds(id, stream.maxDeletedId) < 0) {
    return fail("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id")
  }
  const last = stream.entries.at(-1)
  if (last !== undefined) {
    if (compareIds(id, last.id) < 0) {
      return fail("ERR The ID specified in XSETID is smaller than the target stream top item")
    }
    if (added !== -1 && stream.entries.length > added) {
      return fail("ERR The entries_added specified in XSETID is smaller than the target stream length")
    }
  }
  stream.lastId = id
  if (added !== -1) stream.entriesAdded = added
  if (deleted !== undefined && compareIds(deleted, MIN_ID) !== 0) stream.maxDeletedId = deleted
  context.changed(args[1]!, "t", "xsetid")
  return OK
})

define("xread", -4, "", (context, args) => {
  let count = Infinity
  let block: number | undefined
  let at = -1
  for (let i = 1; i < args.length; i++) {
    const option = args[i]!.toLowerCase()
    const more = args.length - 1 - i
    if (option === "block" && more > 0) block = blockMillis(args[++i]!)
    else if (option === "count" && more > 0) {
      count = integer(args[++i]!)
      if (count <= 0) count = Infinity
    } else if (option === "streams" && more > 0) {
      at = i + 1
      break
    } else if (option === "group") {
      return fail("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.")
    } else if (option === "noack") {
      return fail("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.")
    } else return syntaxError()
  }
  const { ids: texts, keys } = streamArguments(args, at)
  const after = texts.map((text, index): StreamId => {
    const stream = readStream(context, keys[index]!)
    if (text === "$") return stream?.lastId ?? MIN_ID
    if (text === ">") {
      return fail(
        "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
      )
    }
    return parseId(text, 0)
  })
  const readFrom = (key: string, index: number): Value | undefined => {
    const stream = readStream(context, key)
    if (stream === undefined || compareIds(stream.lastId, after[index]!) <= 0) return undefined
    const from = nextId(after[index]!)
    const entries = from === undefined ? [] : between(stream, from, MAX_ID, count)
    return entries.length === 0 ? undefined : [key, entries.map(entryReply)]
  }
  const found = keys.map(readFrom).filter((value) => value !== undefined)
  if (found.length > 0) return found
  if (block === undefined || context.atomic) return null
  return context.server.block(context, {
    type: "stream",
    keys,
    deadline: block === 0 ? Infinity : context.server.micros + block * 1000,
    timedOut: null,
    serve: (key) => {
      const value = readFrom(key, keys.indexOf(key))
      return value === undefined ? undefined : [value]
    }
  })
})

export const blockMillis = (text: string): number => {
  const value = integer(text, "ERR timeout is not an integer or out of range")
  return value < 0 ? fail("ERR timeout is negative") : value
}

export const streamArguments = (
  args: ReadonlyArray<string>,
  at: number
): { readonly keys: ReadonlyArray<string>; readonly ids: ReadonlyArray<string> } => {
  if (at < 0) return syntaxError()
  const rest = args.length - at
  if (rest % 2 !== 0) {
    return fail(
      `ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.`
    )
  }
  return { keys: args.slice(at, at + rest / 2), ids: args.slice(at + rest / 2) }
}
