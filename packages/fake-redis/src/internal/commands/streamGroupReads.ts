/** XREADGROUP: delivers new entries to a consumer, or redelivers its pending entries. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import type { Consumer, Group, Stream, StreamEntry, StreamId } from "../data/stream.ts"
import {
  addPending,
  advance,
  between,
  compareIds,
  findById,
  lastEntryId,
  MAX_ID,
  nextId,
  parseId,
  position,
  printId,
  removePending
} from "../data/stream.ts"
import type { Value } from "../reply.ts"
import { Fail, fail, NullList } from "../reply.ts"
import { consumerOf } from "./streamGroups.ts"
import { blockOnStreams, readArguments } from "./streamReads.ts"
import { entryReply } from "./streams.ts"

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

/** Redelivers the consumer's pending entries after an id, and increments their delivery counts. */
const history = (
  context: Context,
  stream: Stream,
  group: Group,
  consumer: Consumer,
  after: StreamId,
  count: number
): ReadonlyArray<Value> => {
  const from = nextId(after)
  const found: Array<Value> = []
  for (
    let i = from === undefined ? group.pending.length : position(group.pending, from);
    i < group.pending.length && found.length < count;
    i++
  ) {
    const item = group.pending[i]!
    if (item.consumer !== consumer) continue
    const entry = findById(stream.entries, item.id)
    if (entry === undefined) found.push([printId(item.id), new NullList()])
    else {
      found.push(entryReply(entry))
      item.deliveredAt = context.now
      item.deliveries++
    }
  }
  return found
}

const xreadgroup: Handler = (context, args) => {
  const { block, count, group: named, ids, keys, noAck } = readArguments(context, args)
  if (named === undefined) return fail("ERR Missing GROUP option for XREADGROUP")
  const { consumer: consumerName, name } = named
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
    return { key, stream, group, after: text === ">" ? undefined : parseId(text, 0n) }
  })
  const found: Array<Value> = []
  for (const { after, group, key, stream } of plan) {
    if (after === undefined && compareIds(lastEntryId(stream), group.lastId) <= 0) continue
    const consumer = consumerOf(context, group, key, consumerName)
    const entries = after === undefined
      ? deliver(context, stream, group, consumer, count, noAck).map(entryReply)
      : history(context, stream, group, consumer, after, count)
    found.push([key, entries])
  }
  if (found.length > 0) return found
  return blockOnStreams(context, keys, block, {
    serve: (later, key) => {
      const stream = later.db.writeAs(key, "stream")!.value
      const group = stream.groups.get(name)
      if (group === undefined) {
        return new Fail("NOGROUP the consumer group this client was blocked on no longer exists")
      }
      if (compareIds(stream.lastId, group.lastId) <= 0) return undefined
      const consumer = consumerOf(later, group, key, consumerName)
      // The list is empty if the command that added the entries has also removed them
      return [[key, deliver(later, stream, group, consumer, count, noAck).map(entryReply)]]
    },
    vanished: () => new Fail("UNBLOCKED the stream key no longer exists")
  })
}

export const streamGroupReadingCommands: ReadonlyArray<Command> = [
  define("xreadgroup", xreadgroup)
]
