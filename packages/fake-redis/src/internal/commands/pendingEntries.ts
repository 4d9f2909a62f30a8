/**
 * Commands for pending entries: XACK, XPENDING, XCLAIM and XAUTOCLAIM. A pending entry has been delivered to a consumer
 * but not acknowledged.
 */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Consumer, Group, Stream, StreamId } from "../data/stream.ts"
import { addPending, compareIds, findById, MIN_ID, parseId, position, printId, removePending } from "../data/stream.ts"
import { integer, parseInteger } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, syntaxError } from "../reply.ts"
import { consumerOf } from "./streamGroups.ts"
import { endId, entryReply, readStream, startId } from "./streams.ts"

const xack: Handler = (context, args) => {
  const stream = context.db.writeAs(args[1]!, "stream")?.value
  const group = stream?.groups.get(args[2]!)
  if (group === undefined) return 0
  const ids = args.slice(3).map((text) => parseId(text, 0n))
  let count = 0
  for (const id of ids) {
    const item = findById(group.pending, id)
    if (item === undefined) continue
    removePending(group, item)
    count++
  }
  return count
}

interface Found {
  readonly stream: Stream
  readonly group: Group
}

const groupIn = (stream: Stream | undefined, key: string, name: string): Found => {
  const group = stream?.groups.get(name)
  return stream === undefined || group === undefined
    ? fail(`NOGROUP No such key '${key}' or consumer group '${name}'`)
    : { stream, group }
}

const xpending: Handler = (context, args) => {
  const [, key, name] = args as readonly [string, string, string]
  if (args.length !== 3 && (args.length < 6 || args.length > 9)) return syntaxError()
  let minIdle = 0
  let at = 3
  if (args.length >= 6) {
    if (args[3]!.toLowerCase() === "idle") {
      minIdle = integer(args[4]!)
      if (args.length < 8) return syntaxError()
      at = 5
    }
    const count = Math.max(0, integer(args[at + 2]!))
    const from = startId(args[at]!)
    const to = endId(args[at + 1]!)
    const consumerName = args[at + 3]
    const { group } = groupIn(readStream(context, key), key, name)
    const consumer = consumerName === undefined ? undefined : group.consumers.get(consumerName)
    if (consumerName !== undefined && consumer === undefined) return []
    const found: Array<Value> = []
    for (let i = position(group.pending, from); i < group.pending.length && found.length < count; i++) {
      const item = group.pending[i]!
      if (compareIds(item.id, to) > 0) break
      if (consumer !== undefined && item.consumer !== consumer) continue
      const idle = Math.max(0, context.now - item.deliveredAt)
      if (minIdle > 0 && idle < minIdle) continue
      found.push([printId(item.id), item.consumer.name, idle, item.deliveries])
    }
    return found
  }
  const { group } = groupIn(readStream(context, key), key, name)
  if (group.pending.length === 0) return [0, null, null, null]
  const consumers = Array.from(group.consumers.values()).filter((consumer) => consumer.pending > 0)
    .sort((a, b) => a.name < b.name ? -1 : 1)
  return [
    group.pending.length,
    printId(group.pending[0]!.id),
    printId(group.pending[group.pending.length - 1]!.id),
    consumers.map((consumer) => [consumer.name, String(consumer.pending)])
  ]
}

const xclaim: Handler = (context, args) => {
  const [, key, name, consumerName] = args as readonly [string, string, string, string]
  const { group, stream } = groupIn(context.db.writeAs(key, "stream")?.value, key, name)
  const minIdle = Math.max(0, integer(args[4]!, "ERR Invalid min-idle-time argument for XCLAIM"))
  let at = 5
  const ids: Array<StreamId> = []
  for (; at < args.length; at++) {
    try {
      ids.push(parseId(args[at]!, 0n))
    } catch {
      break
    }
  }
  let deliveredAt = -1
  let retry: number | undefined
  let force = false
  let justId = false
  let lastId: StreamId = MIN_ID
  for (; at < args.length; at++) {
    const option = args[at]!.toLowerCase()
    const more = args.length - 1 - at
    if (option === "force") force = true
    else if (option === "justid") justId = true
    else if (option === "idle" && more > 0) {
      deliveredAt = context.now - integer(args[++at]!, "ERR Invalid IDLE option argument for XCLAIM")
    } else if (option === "time" && more > 0) {
      deliveredAt = integer(args[++at]!, "ERR Invalid TIME option argument for XCLAIM")
    } else if (option === "retrycount" && more > 0) {
      retry = integer(args[++at]!, "ERR Invalid RETRYCOUNT option argument for XCLAIM")
    } else if (option === "lastid" && more > 0) lastId = parseId(args[++at]!, 0n)
    else return fail(`ERR Unrecognized XCLAIM option '${args[at]!}'`)
  }
  if (compareIds(lastId, group.lastId) > 0) group.lastId = lastId
  if (deliveredAt !== -1) {
    if (deliveredAt < 0 || deliveredAt > context.now) deliveredAt = context.now
  } else deliveredAt = context.now
  // Creates the consumer on demand: a claim that finds nothing must not create one.
  const claimant = (): Consumer => consumerOf(context, group, key, consumerName)
  const reply: Array<Value> = []
  for (const id of ids) {
    let item = findById(group.pending, id)
    const entry = findById(stream.entries, id)
    if (entry === undefined) {
      if (item !== undefined) removePending(group, item)
      continue
    }
    if (item === undefined && force) {
      item = { id, consumer: claimant(), deliveredAt: context.now, deliveries: 1 }
      addPending(group, item)
    } else if (item !== undefined && minIdle > 0 && context.now - item.deliveredAt < minIdle) continue
    if (item === undefined) continue
    item.consumer.pending--
    item.consumer = claimant()
    item.consumer.pending++
    item.deliveredAt = deliveredAt
    if (retry !== undefined) item.deliveries = retry
    else if (!justId) item.deliveries++
    reply.push(justId ? printId(id) : entryReply(entry))
  }
  return reply
}

/** The maximum number of ids that Redis can allocate. */
const MAX_COUNT = 2 ** 59

const xautoclaim: Handler = (context, args) => {
  const [, key, name, consumerName] = args as readonly [string, string, string, string]
  const minIdle = Math.max(0, integer(args[4]!, "ERR Invalid min-idle-time argument for XAUTOCLAIM"))
  const from = startId(args[5]!)
  let count = 100
  let justId = false
  for (let i = 6; i < args.length; i++) {
    const option = args[i]!.toLowerCase()
    if (option === "count" && i + 1 < args.length) {
      const value = parseInteger(args[++i]!)
      if (value === undefined || value < 1 || value > MAX_COUNT) return fail("ERR COUNT must be > 0")
      count = value
    } else if (option === "justid") justId = true
    else return syntaxError()
  }
  const { group, stream } = groupIn(context.db.writeAs(key, "stream")?.value, key, name)
  let attempts = count * 10
  let left = count
  // Creates the consumer on demand: a claim that finds nothing must not create one.
  const claimant = (): Consumer => consumerOf(context, group, key, consumerName)
  const claimed: Array<Value> = []
  const deleted: Array<Value> = []
  let i = position(group.pending, from)
  for (; attempts-- > 0 && left > 0 && i < group.pending.length;) {
    const item = group.pending[i]!
    const entry = findById(stream.entries, item.id)
    if (entry === undefined) {
      removePending(group, item)
      deleted.push(printId(item.id))
      left--
      continue
    }
    i++
    if (minIdle > 0 && context.now - item.deliveredAt < minIdle) continue
    item.consumer.pending--
    item.consumer = claimant()
    item.consumer.pending++
    item.deliveredAt = context.now
    if (!justId) item.deliveries++
    claimed.push(justId ? printId(item.id) : entryReply(entry))
    left--
  }
  return [printId(group.pending[i]?.id ?? MIN_ID), claimed, deleted]
}

export const streamPendingCommands: ReadonlyArray<Command> = [
  define("xack", xack),
  define("xpending", xpending),
  define("xclaim", xclaim),
  define("xautoclaim", xautoclaim)
]
