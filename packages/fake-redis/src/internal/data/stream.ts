/**
 * Streams: entries sorted by id, consumer groups with their pending entries, and arithmetic on ids. Both parts of an id
 * are unsigned 64-bit integers.
 */
import { fail } from "../reply.ts"
import { deleteFromNodes, type StreamNode, trimNodes } from "./streamNodes.ts"

export interface StreamId {
  readonly ms: bigint
  readonly seq: bigint
}

export interface StreamEntry {
  readonly id: StreamId
  readonly fields: ReadonlyArray<string>
}

export interface Pending {
  readonly id: StreamId
  consumer: Consumer
  deliveredAt: number
  deliveries: number
}

export interface Consumer {
  readonly name: string
  seenAt: number
  /** The number of the group's pending entries that belong to this consumer. */
  pending: number
}

export interface Group {
  readonly name: string
  lastId: StreamId
  /** The number of entries that the group has read, or -1 if unknown. */
  entriesRead: number
  readonly consumers: Map<string, Consumer>
  /** Sorted by id. */
  readonly pending: Array<Pending>
}

export interface Stream {
  readonly entries: Array<StreamEntry>
  /** The radix tree nodes that would hold the entries in Redis, in order. */
  readonly nodes: Array<StreamNode>
  lastId: StreamId
  maxDeletedId: StreamId
  entriesAdded: number
  readonly groups: Map<string, Group>
}

export const MAX_U64 = 2n ** 64n - 1n
export const MIN_ID: StreamId = { ms: 0n, seq: 0n }
export const MAX_ID: StreamId = { ms: MAX_U64, seq: MAX_U64 }
export const INVALID_ID = "ERR Invalid stream ID specified as stream command argument"

export const makeStream = (): Stream => ({
  entries: [],
  nodes: [],
  lastId: MIN_ID,
  maxDeletedId: MIN_ID,
  entriesAdded: 0,
  groups: new Map()
})

export const cloneStream = (stream: Stream): Stream => ({
  ...stream,
  entries: stream.entries.slice(),
  nodes: stream.nodes.map((node) => ({ ...node })),
  groups: new Map(Array.from(stream.groups, ([name, group]) => {
    const consumers = new Map(Array.from(group.consumers, ([key, consumer]) => [key, { ...consumer }]))
    const pending = group.pending.map((item) => ({ ...item, consumer: consumers.get(item.consumer.name)! }))
    return [name, { ...group, consumers, pending }]
  }))
})

export const compareIds = (a: StreamId, b: StreamId): number =>
  a.ms < b.ms ? -1 : a.ms > b.ms ? 1 : a.seq < b.seq ? -1 : a.seq > b.seq ? 1 : 0

export const printId = (id: StreamId): string => `${id.ms}-${id.seq}`

const U64 = /^ *\+?[0-9]+$/

export const parseU64 = (text: string): bigint | undefined => {
  if (!U64.test(text)) return undefined
  const value = BigInt(text.trim().replace("+", ""))
  return value > MAX_U64 ? undefined : value
}

/** Parses `ms` or `ms-seq`. `missing` is the default sequence number. */
export const parseId = (text: string, missing: bigint): StreamId => {
  const at = text.indexOf("-")
  const ms = parseU64(at < 0 ? text : text.slice(0, at))
  const seq = at < 0 ? missing : parseU64(text.slice(at + 1))
  return ms === undefined || seq === undefined ? fail(INVALID_ID) : { ms, seq }
}

export const nextId = (id: StreamId): StreamId | undefined =>
  id.seq < MAX_U64 ? { ms: id.ms, seq: id.seq + 1n } : id.ms < MAX_U64 ? { ms: id.ms + 1n, seq: 0n } : undefined

export const previousId = (id: StreamId): StreamId | undefined =>
  id.seq > 0n ? { ms: id.ms, seq: id.seq - 1n } : id.ms > 0n ? { ms: id.ms - 1n, seq: MAX_U64 } : undefined

/** The index of the first item whose id is `id` or greater. */
export const position = (items: ReadonlyArray<{ readonly id: StreamId }>, id: StreamId): number => {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compareIds(items[middle]!.id, id) < 0) low = middle + 1
    else high = middle
  }
  return low
}

export const findById = <A extends { readonly id: StreamId }>(items: ReadonlyArray<A>, id: StreamId): A | undefined => {
  const item = items[position(items, id)]
  return item !== undefined && compareIds(item.id, id) === 0 ? item : undefined
}

export const addPending = (group: Group, item: Pending): void => {
  group.pending.splice(position(group.pending, item.id), 0, item)
  item.consumer.pending++
}

export const removePending = (group: Group, item: Pending): void => {
  group.pending.splice(position(group.pending, item.id), 1)
  item.consumer.pending--
}

/** The entries from one id to another, inclusive. */
export const between = (stream: Stream, from: StreamId, to: StreamId, count = Infinity): Array<StreamEntry> => {
  const found: Array<StreamEntry> = []
  for (let i = position(stream.entries, from); i < stream.entries.length && found.length < count; i++) {
    const entry = stream.entries[i]!
    if (compareIds(entry.id, to) > 0) break
    found.push(entry)
  }
  return found
}

/**
 * Removes entries from the front until at most `keep` are left, or until no entry precedes `minId`. Returns the number
 * of removed entries.
 */
export const trim = (stream: Stream, keep: number, minId: StreamId | undefined): number => {
  let count = Math.max(0, stream.entries.length - keep)
  if (minId !== undefined) count = position(stream.entries, minId)
  if (count > 0) {
    stream.entries.splice(0, count)
    trimNodes(stream.nodes, count)
  }
  return count
}

export const removeAt = (stream: Stream, at: number): void => {
  stream.entries.splice(at, 1)
  deleteFromNodes(stream.nodes, at)
}

const hasTombstone = (stream: Stream, from: StreamId): boolean =>
  stream.entries.length > 0 && compareIds(stream.maxDeletedId, MIN_ID) !== 0 &&
  compareIds(stream.entries[0]!.id, stream.maxDeletedId) <= 0 &&
  compareIds(from, stream.maxDeletedId) <= 0

/** The id of the last remaining entry. May be smaller than the last id ever added. */
export const lastEntryId = (stream: Stream): StreamId => stream.entries.at(-1)?.id ?? MIN_ID

const firstId = (stream: Stream): StreamId => stream.entries[0]?.id ?? MIN_ID

/** The number of entries up to `id` that were ever added, or -1 if unknown. */
export const estimateEntriesRead = (stream: Stream, id: StreamId): number => {
  if (stream.entriesAdded === 0) return 0
  if (stream.entries.length === 0 && compareIds(id, stream.lastId) < 1) return stream.entriesAdded
  const last = compareIds(id, stream.lastId)
  if (last === 0) return stream.entriesAdded
  if (last > 0) return -1
  const first = compareIds(id, firstId(stream))
  const neverDeleted = compareIds(stream.maxDeletedId, MIN_ID) === 0
  if (neverDeleted || compareIds(stream.maxDeletedId, firstId(stream)) < 0) {
    if (first < 0) return stream.entriesAdded - stream.entries.length
    if (first === 0) return stream.entriesAdded - stream.entries.length + 1
  }
  return -1
}

/** A group's lag as XINFO reports it, or null if unknown. */
export const lag = (stream: Stream, group: Group): number | null => {
  if (stream.entriesAdded === 0) return 0
  if (group.entriesRead !== -1 && !hasTombstone(stream, group.lastId)) {
    return stream.entriesAdded - group.entriesRead
  }
  const read = estimateEntriesRead(stream, group.lastId)
  return read === -1 ? null : stream.entriesAdded - read
}

/** Moves the group past an entry that it has just read, and updates its `entriesRead` if possible. */
export const advance = (stream: Stream, group: Group, id: StreamId): void => {
  if (compareIds(id, group.lastId) <= 0) return
  if (group.entriesRead !== -1 && !hasTombstone(stream, id)) {
    group.entriesRead++
  } else if (stream.entriesAdded > 0) {
    group.entriesRead = estimateEntriesRead(stream, id)
  }
  group.lastId = id
}
