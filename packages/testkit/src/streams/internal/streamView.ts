/** Reads streams on the fake server for checkers: the current state, and the changes since the last call. */
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

/** Serializes each entry only once, because checkers run after each command and entries never change. */
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

/**
 * Returns the first index, starting at `low`, at which a list differs from its previous state. A binary search is
 * enough, because elements are unique, and are only removed or appended.
 */
const firstDifference = (before: ReadonlyArray<unknown>, now: ReadonlyArray<unknown>, low: number): number => {
  let high = before.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (before[middle] === now[middle]) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * Returns a function that returns the changes since its last call. Checkers call it after each command, so it finds
 * removed entries by binary search. Only a recreated stream is compared entry by entry.
 */
export const follow = (server: FakeServer, key: string): () => StreamChanges => {
  let stream: Stream | undefined
  let known: Array<StreamEntry> = []
  return () => {
    const before = stream
    stream = server.engine.stream(0, key)
    const entries = stream?.entries ?? []
    if (stream !== before) {
      // The stream was recreated, or restored from a snapshot
      const [old, present] = [new Set(known), new Set(entries)]
      const removed = known.filter((entry) => !present.has(entry)).map(entryOf)
      known = [...entries]
      return { added: entries.filter((entry) => !old.has(entry)).map(entryOf), removed }
    }
    const removed: Array<StreamEntry> = []
    for (let i = 0; (i = firstDifference(known, entries, i)) < known.length;) removed.push(...known.splice(i, 1))
    const added = entries.slice(known.length)
    known.push(...added)
    return { added: added.map(entryOf), removed: removed.map(entryOf) }
  }
}
