/** A stream on the server as checkers see it. */
import type { FakeServer } from "../../internal/client/server.ts"
import { printId, type StreamEntry, type StreamId } from "../../internal/redis/data/stream.ts"
import { fromBytes } from "../../internal/redis/reply.ts"
import type { StreamView } from "../../internal/simulation/setup.ts"

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

export const streamView = (server: FakeServer, key: string): StreamView | undefined => {
  const stream = server.engine.stream(0, key)
  return stream && {
    entries: stream.entries.map(entryOf),
    groups: new Map(Array.from(stream.groups.values(), ({ consumers, lastId, name, pending }) => [name, {
      consumers: [...consumers.keys()],
      lastDelivered: idOf(lastId),
      pending: new Map(
        pending.map(({ consumer, deliveredAt, id }) => [idOf(id), { consumer: consumer.name, deliveredAt }])
      )
    }]))
  }
}
