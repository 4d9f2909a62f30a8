/** A stream on the server as checkers see it. */
import type { FakeServer } from "../../internal/client/server.ts"
import { printId } from "../../internal/redis/data/stream.ts"
import type { StreamView } from "../../internal/simulation/setup.ts"

export const streamView = (server: FakeServer, key: string): StreamView | undefined => {
  const dump = server.engine.dump(0, key)
  const stream = server.engine.stream(0, key)
  if (dump?.type !== "stream" || stream === undefined) return undefined
  return {
    entries: dump.value,
    groups: new Map(Array.from(stream.groups.values(), ({ consumers, lastId, name, pending }) => [name, {
      consumers: [...consumers.keys()],
      lastDelivered: printId(lastId),
      pending: new Map(
        pending.map(({ consumer, deliveredAt, id }) => [printId(id), { consumer: consumer.name, deliveredAt }])
      )
    }]))
  }
}
