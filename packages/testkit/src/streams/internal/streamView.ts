/** A stream on the server as checkers see it. */
import {
  findById,
  fromBytes,
  type Group,
  parseId,
  printId,
  type Stream,
  type StreamEntry,
  type StreamId
} from "@effect-simba/fake-redis/Engine"
import type { FakeServer } from "../../internal/client/server.ts"
import type { GroupView, StreamChanges, StreamView } from "../../internal/simulation/setup.ts"

/** Checkers look after each command, and entries never change: each one is written out once. */
const memoized = <A extends object, B>(make: (from: A) => B): (from: A) => B => {
  const made = new WeakMap<A, B>()
  return (from) => {
    const known = made.get(from)
    if (known !== undefined) return known
    const fresh = make(from)
    made.set(from, fresh)
    return fresh
  }
}

const idOf = memoized((id: StreamId) => printId(id))
const entryOf = memoized((entry: StreamEntry) => [idOf(entry.id), entry.fields.map(fromBytes)] as const)

const groupView = ({ consumers, lastId, pending }: Group): GroupView => ({
  consumers: [...consumers.keys()],
  lastDelivered: idOf(lastId),
  delivery: (entry) => {
    const found = findById(pending, parseId(entry, 0n))
    return found && { consumer: found.consumer.name, deliveredAt: found.deliveredAt, deliveries: found.deliveries }
  },
  pendingOf: (name) =>
    (consumers.get(name)?.pending ?? 0) === 0
      ? []
      : pending.filter(({ consumer }) => consumer.name === name).map(({ id }) => idOf(id))
})

export const streamView = (server: FakeServer, key: string): StreamView | undefined => {
  const stream = server.engine.stream(0, key)
  return stream && {
    get entries() {
      return stream.entries.map(entryOf)
    },
    group: (name) => {
      const group = stream.groups.get(name)
      return group && groupView(group)
    }
  }
}

/** The first position from `low` on at which a list and what it was before differ: it lost some, and grew at its end. */
const firstDifference = (before: ReadonlyArray<unknown>, now: ReadonlyArray<unknown>, low: number): number => {
  let high = before.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (before[middle] === now[middle]) low = middle + 1
    else high = middle
  }
  return low
}

/** Compares a stream with the last look at it, at a cost that grows with the changes and not with its length. */
export const follow = (server: FakeServer, key: string): () => StreamChanges => {
  let stream: Stream | undefined
  let seen: Array<StreamEntry> = []
  return () => {
    const before = stream
    stream = server.engine.stream(0, key)
    const entries = stream?.entries ?? []
    if (stream !== before) {
      // It was made again, or restored from a copy
      const [old, present] = [new Set(seen), new Set(entries)]
      const removed = seen.filter((entry) => !present.has(entry)).map(entryOf)
      seen = [...entries]
      return { added: entries.filter((entry) => !old.has(entry)).map(entryOf), removed }
    }
    const removed: Array<StreamEntry> = []
    for (let i = 0; (i = firstDifference(seen, entries, i)) < seen.length;) removed.push(...seen.splice(i, 1))
    const added = entries.slice(seen.length)
    seen.push(...added)
    return { added: added.map(entryOf), removed: removed.map(entryOf) }
  }
}
