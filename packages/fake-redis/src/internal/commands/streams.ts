/** Commands that add, read and delete a stream's entries, and XSETID. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import type { Stream, StreamEntry, StreamId } from "../data/stream.ts"
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
  removeAt
} from "../data/stream.ts"
import { appendToNodes } from "../data/streamNodes.ts"
import { integer } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, NullList, OK, syntaxError } from "../reply.ts"
import { checkTrimming, NODE_ENTRIES, trimOptions, trimStream } from "./streamTrim.ts"

export const readStream = (context: Context, key: string): Stream | undefined => context.db.readAs(key, "stream")?.value

export const entryReply = (entry: StreamEntry): Value => [printId(entry.id), entry.fields]

const xadd: Handler = (context, args) => {
  const key = args[1]!
  const options = trimOptions(args, 2, true)
  const idText = args[options.next]
  let id: StreamId | undefined
  let auto: "all" | "seq" | undefined
  if (idText === "*") auto = "all"
  else if (idText?.endsWith("-*") === true) {
    auto = "seq"
    const ms = parseU64(idText.slice(0, -2))
    id = ms === undefined ? fail(INVALID_ID) : { ms, seq: 0n }
  } else if (idText !== undefined) id = parseId(idText, 0n)
  checkTrimming(options, true)
  const fields = args.slice(options.next + 1)
  if (fields.length === 0 || fields.length % 2 === 1) return fail("ERR wrong number of arguments for 'xadd' command")
  if (auto === undefined && compareIds(id!, MIN_ID) === 0) {
    return fail("ERR The ID specified in XADD must be greater than 0-0")
  }
  const existing = context.db.writeAs(key, "stream")
  if (existing === undefined && options.noMake) return null
  const stream = existing?.value ?? makeStream()
  if (compareIds(stream.lastId, MAX_ID) === 0) {
    return fail("ERR The stream has exhausted the last possible ID, unable to add more items")
  }
  const tooSmall = "ERR The ID specified in XADD is equal or smaller than the target stream top item"
  if (auto === "all") {
    const now = BigInt(context.now)
    id = now > stream.lastId.ms ? { ms: now, seq: 0n } : nextId(stream.lastId)!
  } else if (auto === "seq") {
    const last = stream.lastId
    if (id!.ms === last.ms) id = last.seq === MAX_U64 ? fail(tooSmall) : { ms: last.ms, seq: last.seq + 1n }
  }
  if (compareIds(id!, stream.lastId) <= 0) {
    if (existing === undefined) context.db.put(key, "stream", stream)
    return fail(tooSmall)
  }
  if (existing === undefined) context.db.put(key, "stream", stream)
  stream.entries.push({ id: id!, fields })
  appendToNodes(stream.nodes, id!, fields, context.server.config)
  stream.lastId = id!
  stream.entriesAdded++
  context.changed(key, "t", "xadd")
  if (trimStream(stream, options, context.server.config.number(NODE_ENTRIES)) > 0) {
    context.server.notify(context.db, key, "t", "xtrim")
  }
  context.server.blocked.mark(context.db, key)
  return printId(id!)
}

/** Parses the start of an interval: an id, or `(` and an id to exclude it. */
export const startId = (text: string): StreamId => {
  if (text === "-") return MIN_ID
  if (text === "+") return MAX_ID
  if (!text.startsWith("(")) return parseId(text, 0n)
  return nextId(parseId(text.slice(1), 0n)) ?? fail("ERR invalid start ID for the interval")
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
  if (count === 0) return new NullList()
  const limit = count < 0 ? Infinity : count
  const entries = reverse ? between(stream, from, to).reverse().slice(0, limit) : between(stream, from, to, limit)
  return entries.map(entryReply)
}

const xdel: Handler = (context, args) => {
  const entry = context.db.writeAs(args[1]!, "stream")
  if (entry === undefined) return 0
  const stream = entry.value
  const ids = args.slice(2).map((text) => parseId(text, 0n))
  let count = 0
  for (const id of ids) {
    if (findById(stream.entries, id) === undefined) continue
    removeAt(stream, position(stream.entries, id))
    count++
    if (compareIds(id, stream.maxDeletedId) > 0) stream.maxDeletedId = id
  }
  if (count > 0) context.changed(args[1]!, "t", "xdel")
  return count
}

const xsetid: Handler = (context, args) => {
  const id = parseId(args[2]!, 0n)
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
      deleted = parseId(value, 0n)
      if (compareIds(id, deleted) < 0) {
        return fail("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")
      }
    } else return syntaxError()
  }
  const entry = context.db.write(args[1]!)
  if (entry === undefined) return fail("ERR no such key")
  const stream = context.db.writeAs(args[1]!, "stream")!.value
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
  // Publishes the event, but does not abort the transactions that watch the key.
  context.server.notify(context.db, args[1]!, "t", "xsetid")
  return OK
}

export const streamCommands: ReadonlyArray<Command> = [
  define("xadd", xadd),
  define("xlen", (context, args) => readStream(context, args[1]!)?.entries.length ?? 0),
  define("xrange", xrange(false)),
  define("xrevrange", xrange(true)),
  define("xdel", xdel),
  define("xsetid", xsetid)
]
