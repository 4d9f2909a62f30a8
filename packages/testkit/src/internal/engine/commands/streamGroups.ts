/**
 * Consumer groups: reading, acknowledging and claiming.
 */
import { integer, parseInteger } from "../numbers.ts"
import type { Context } from "../registry.ts"
import { define } from "../registry.ts"
import type { Value } from "../reply.ts"
import { Fail, fail, OK, syntaxError } from "../reply.ts"
import type { Consumer, Group, Pending, Stream, StreamEntry, StreamId } from "../stream.ts"
import {
  advance,
  between,
  compareIds,
  findById,
  lastEntryId,
  makeStream,
  MAX_ID,
  MIN_ID,
  nextId,
  parseId,
  position,
  printId
} from "../stream.ts"
import { blockMillis, endId, entryReply, readStream, startId, streamArguments } from "./streams.ts"

const NO_KEY = "ERR The XGROUP subcommand requires the key to exist. " +
  "Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically."

const noGroup = (key: string, group: string): never =>
  fail(`NOGROUP No such consumer group '${group}' for key name '${key}'`)

const createConsumer = (context: Context, group: Group, key: string, name: string): Consumer => {
  const consumer: Consumer = { name, seenAt: context.now, pending: 0 }
  group.consumers.set(name, consumer)
  context.changed(key, "t", "xgroup-createconsumer")
  return consumer
}

const addPending = (group: Group, item: Pending): void => {
  group.pending.splice(position(group.pending, item.id), 0, item)
  item.consumer.pending++
}

const removePending = (group: Group, item: Pending): void => {
  group.pending.splice(position(group.pending, item.id), 1)
  item.consumer.pending--
}

define("xgroup", -2, "w", (context, args) => {
  const sub = args[1]!.toLowerCase()
  if (sub === "help") return ["XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"]
  const key = args[2]!
  const name = args[3]!
  let make = false
  let entriesRead = -1
  if (sub === "create" || sub === "setid") {
    for (let i = 5; i < args.length; i++) {
      const option = args[i]!.toLowerCase()
      if (sub === "create" && option === "mkstream") make = true
      else if (option === "entriesread" && i + 1 < args.length) {
        entriesRead = integer(args[++i]!)
        if (entriesRead < 0 && entriesRead !== -1) return fail("ERR value for ENTRIESREAD must be positive or -1")
      } else return subcommandError(args)
    }
  }
  const entry = context.db.writeAs(key, "stream")
  if (entry === undefined && !make) return fail(NO_KEY)
  const stream = entry?.value
  const group = stream?.groups.get(name)
  if (sub !== "create" && sub !== "destroy" && group === undefined) return noGroup(key, name)
  switch (sub) {
    case "create": {
      const id = args[4] === "$" ? stream?.lastId ?? MIN_ID : rangeId(args[4]!)
      const target = stream ?? context.db.put(key, "stream", makeStream()).value
      if (group !== undefined) return fail("BUSYGROUP Consumer Group name already exists")
      target.groups.set(name, { name, lastId: id, entriesRead, consumers: new Map(), pending: [] })
      context.changed(key, "t", "xgroup-create")
      return OK
    }
    case "setid": {
      group!.lastId = args[4] === "$" ? stream!.lastId : rangeId(args[4]!)
      group!.entriesRead = entriesRead
      context.changed(key, "t", "xgroup-setid")
      return OK
    }
    case "destroy": {
      if (group === undefined) return 0
      stream!.groups.delete(name)
      context.changed(key, "t", "xgroup-destroy")
      context.server.blocked.mark(context.db, key)
      return 1
    }
    case "createconsumer": {
      if (group!.consumers.has(args[4]!)) return 0
      createConsumer(context, group!, key, args[4]!)
      return 1
    }
    default: {
      const consumer = group!.consumers.get(args[4]!)
      if (consumer === undefined) return 0
      const count = consumer.pending
      for (const item of group!.pending.filter((pending) => pending.consumer === consumer)) {
        removePending(group!, item)
      }
      group!.consumers.delete(args[4]!)
      context.changed(key, "t", "xgroup-delconsumer")
      return count
    }
  }
})

const rangeId = (text: string): StreamId => text === "-" ? MIN_ID : text === "+" ? MAX_ID : parseId(text, 0)

const subcommandError = (args: ReadonlyArray<string>): never =>
  fail(`ERR unknown subcommand or wrong number of arguments for '${args[1]!}'. Try ${args[0]!.toUpperCase()} HELP.`)

const deliver = (
  context: Context,
  stream: Stream,
  group: Group,
  consumer: Consumer,
  count: number,
  noAck: boolean
): Array<StreamEntry> => {
  const from = nextId(group.lastId)
  const entries = from === undefined ? [] : between(stream, from, MAX_ID, count)
  for (const { id } of entries) {
    advance(stream, group, id)
    if (noAck) continue
    const old = findById(group.pending, id)
    if (old !== undefined) removePending(group, old)
    addPending(group, { id, consumer, deliveredAt: context.now, deliveries: 1 })
  }
  return entries
}

define("xreadgroup", -7, "w", (context, args) => {
  let count = Infinity
  let block: number | undefined
  let noAck = false
  let groupName: string | undefined
  let consumerName = ""
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
    } else if (option === "group" && more >= 2) {
      groupName = args[i + 1]!
      consumerName = args[i + 2]!
      i += 2
    } else if (option === "noack") noAck = true
    else return syntaxError()
  }
  const { ids, keys } = streamArguments(args, at)
  if (groupName === undefined) return fail("ERR Missing GROUP option for XREADGROUP")
  const name = groupName
  const plan = keys.map((key, index) => {
    const stream = context.db.writeAs(key, "stream")?.value
    const group = stream?.groups.get(name)
    const text = ids[index]!
    if (group === undefined || stream === undefined) {
      return fail(
        `NOGROUP No such key '${key}' or consumer group '${name}' in XREADGROUP with GROUP option`
      )
    }
    if (text === "$") {
      return fail(
        "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by " +
          "specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set."
      )
    }
    return { key, stream, group, after: text === ">" ? undefined : parseId(text, 0) }
  })
  const found: Array<Value> = []
  const seen = new Set<Consumer>()
  for (const { after, group, key, stream } of plan) {
    if (after === undefined && compareIds(lastEntryId(stream), group.lastId) <= 0) continue
    const consumer = group.consumers.get(consumerName) ?? createConsumer(context, group, key, consumerName)
    consumer.seenAt = context.now
    seen.add(consumer)
    if (after === undefined) {
      const entries = deliver(context, stream, group, consumer, count, noAck)
      if (entries.length > 0) found.push([key, entries.map(entryReply)])
      else found.push([key, []])
      continue
    }
    const from = nextId(after)
    const history: Array<Value> = []
    for (
      let i = from === undefined ? group.pending.length : position(group.pending, from);
      i < group.pending.length;
      i++
    ) {
      if (history.length >= count) break
      const item = group.pending[i]!
      if (item.consumer !== consumer) continue
      const entry = findById(stream.entries, item.id)
      if (entry === undefined) history.push([printId(item.id), null])
      else {
        history.push(entryReply(entry))
        item.deliveredAt = context.now
        item.deliveries++
      }
    }
    found.push([key, history])
  }
  if (found.length > 0) return found
  if (block === undefined || context.atomic) return null
  const server = context.server
  return server.block(context, {
    type: "stream",
    keys,
    deadline: block === 0 ? Infinity : server.micros + block * 1000,
    timedOut: null,
    serve: (key) => {
      const stream = context.db.writeAs(key, "stream")!.value
      const group = stream.groups.get(name)
      if (group === undefined) {
        return new Fail("NOGROUP the consumer group this client was blocked on no longer exists")
      }
      if (compareIds(lastEntryId(stream), group.lastId) <= 0) return undefined
      const later: Context = server.contextFor(context.client)
      const consumer = group.consumers.get(consumerName) ?? createConsumer(later, group, key, consumerName)
      consumer.seenAt = later.now
      const entries = deliver(later, stream, group, consumer, count, noAck)
      return entries.length === 0 ? undefined : [[key, entries.map(entryReply)]]
    },
    vanished: () => new Fail("UNBLOCKED the stream key no longer exists")
  })
})

define("xack", -4, "w", (context, args) => {
  const stream = context.db.writeAs(args[1]!, "stream")?.value
  const group = stream?.groups.get(args[2]!)
  if (group === undefined) return 0
  const ids = args.slice(3).map((text) => parseId(text, 0))
  let count = 0
  for (const id of ids) {
    const item = findById(group.pending, id)
    if (item === undefined) continue
    removePending(group, item)
    count++
  }
  return count
})

const groupOrFail = (context: Context, key: string, name: string): { stream: Stream; group: Group } => {
  const stream = readStream(context, key)
  const group = stream?.groups.get(name)
  return stream === undefined || group === undefined
    ? fail(`NOGROUP No such key '${key}' or consumer group '${name}'`)
    : { stream, group }
}

define("xpending", -3, "", (context, args) => {
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
    const { group } = groupOrFail(context, key, name)
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
  const { group } = groupOrFail(context, key, name)
  if (group.pending.length === 0) return [0, null, null, null]
  const consumers = Array.from(group.consumers.values()).filter((consumer) => consumer.pending > 0)
    .sort((a, b) => a.name < b.name ? -1 : 1)
  return [
    group.pending.length,
    printId(group.pending[0]!.id),
    printId(group.pending[group.pending.length - 1]!.id),
    consumers.map((consumer) => [consumer.name, String(consumer.pending)])
  ]
})

define("xclaim", -6, "w", (context, args) => {
  const [, key, name, consumerName] = args as readonly [string, string, string, string]
  const stream = context.db.writeAs(key, "stream")?.value
  const group = stream?.groups.get(name)
  if (stream === undefined || group === undefined) {
    return fail(`NOGROUP No such key '${key}' or consumer group '${name}'`)
  }
  const minIdle = Math.max(0, integer(args[4]!, "ERR Invalid min-idle-time argument for XCLAIM"))
  let at = 5
  const ids: Array<StreamId> = []
  for (; at < args.length; at++) {
    try {
      ids.push(parseId(args[at]!, 0))
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
    } else if (option === "lastid" && more > 0) lastId = parseId(args[++at]!, 0)
    else return fail(`ERR Unrecognized XCLAIM option '${args[at]!}'`)
  }
  if (compareIds(lastId, group.lastId) > 0) group.lastId = lastId
  if (deliveredAt !== -1) {
    if (deliveredAt < 0 || deliveredAt > context.now) deliveredAt = context.now
  } else deliveredAt = context.now
  // Looked up, or made, only when there is something for it: a claim in vain leaves no trace.
  let consumer: Consumer | undefined
  const claimant = (): Consumer => {
    consumer ??= group.consumers.get(consumerName) ?? createConsumer(context, group, key, consumerName)
    consumer.seenAt = context.now
    return consumer
  }
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
})

define("xautoclaim", -6, "w", (context, args) => {
  const [, key, name, consumerName] = args as readonly [string, string, string, string]
  const minIdle = Math.max(0, integer(args[4]!, "ERR Invalid min-idle-time argument for XAUTOCLAIM"))
  const from = startId(args[5]!)
  let count = 100
  let justId = false
  for (let i = 6; i < args.length; i++) {
    const option = args[i]!.toLowerCase()
    if (option === "count" && i + 1 < args.length) {
      const value = parseInteger(args[++i]!)
      if (value === undefined || value < 1 || value > 576460752303423487) return fail("ERR COUNT must be > 0")
      count = value
    } else if (option === "justid") justId = true
    else return syntaxError()
  }
  const stream = context.db.writeAs(key, "stream")?.value
  const group = stream?.groups.get(name)
  if (stream === undefined || group === undefined) {
    return fail(`NOGROUP No such key '${key}' or consumer group '${name}'`)
  }
  let attempts = count * 10
  let left = count
  // Looked up, or made, only when there is something for it: a claim in vain leaves no trace.
  let consumer: Consumer | undefined
  const claimant = (): Consumer => {
    consumer ??= group.consumers.get(consumerName) ?? createConsumer(context, group, key, consumerName)
    consumer.seenAt = context.now
    return consumer
  }
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
})
