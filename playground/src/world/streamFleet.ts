/** A fleet of consumers that share data streams. Each owns its share while it consumes. */
import { StreamClient, type StreamLease } from "@effect-simba/core/streams"
import * as RedisStreams from "@effect-simba/redis/streams/RedisStreams"
import type { Simulation } from "@effect-simba/testkit"
import { Effect, Layer } from "effect"
import { type Desk, following, type Order } from "./desk.ts"

export const service = "orders"

export const streamNames: ReadonlyArray<string> = Array.from(
  { length: 30 },
  (_, index) => `orders:${String(index + 1).padStart(2, "0")}`
)

/** A handler that works until its data stream is revoked. */
const handler = (client: Simulation.Client) => (lease: StreamLease.StreamLease) => {
  const fields = { resource: lease.stream, id: `${lease.stream}#${lease.token}`, token: lease.token }
  return Effect.acquireUseRelease(
    Effect.sync(() => {
      client.note("granted", fields)
      client.note("begin", fields)
    }),
    () => Effect.andThen(lease.revoked, lease.yield),
    () => Effect.sync(() => client.note("end", fields))
  )
}

/** Returns the options for a simulation of this fleet. Its first process announces all data streams once. */
export const options = (
  desk: Desk,
  first: (client: Simulation.Client) => Order | undefined,
  base: { readonly seed: string; readonly clients: number }
): Simulation.Options<unknown> => ({
  ...base,
  program: (client) => {
    const streams = StreamClient.layer({
      service,
      processName: `${client.name}.${client.generation}`,
      enableEvents: true
    })
    const consume = Effect.scoped(Effect.gen(function*() {
      if (client.index === 0 && client.generation === 1) {
        yield* Effect.forkScoped(Effect.forEach(
          streamNames,
          (stream) => Effect.delay(StreamClient.announce(stream), "150 millis"),
          { discard: true }
        ))
      }
      return yield* StreamClient.run(handler(client))
    })).pipe(Effect.provide(Layer.provide(streams, RedisStreams.layerStore)), Effect.asVoid)
    return Effect.flatMap(desk.open(client), (inbox) => following(inbox, first(client), () => consume))
  },
  lock: { resources: [], ownerKey: (resource) => resource },
  checkers: [],
  network: { requestDelay: [8, 14], replyDelay: [8, 14] },
  duration: Infinity
})
