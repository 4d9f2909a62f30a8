/** Runs the stream-store contract on a real server. */
import { IoRedis } from "@effect-simba/redis"
import * as RedisStreams from "@effect-simba/redis/streams/RedisStreams"
import * as StreamStoreSuite from "@effect-simba/testkit/streams/StreamStoreSuite"
import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { heldAtOnce } from "../../support/heldAtOnce.ts"
import { messageBytes } from "../../support/messageBytes.ts"
import { RedisServer } from "../../support/redisServer.ts"
import { append, trim } from "../../support/streams.ts"
import { trimmed } from "../../support/trimmedEntries.ts"

const alone = Layer.unwrap(
  Effect.map(
    RedisServer,
    ({ url }) => IoRedis.layer({ url, commandTimeout: "5 seconds", pool: { maxConnections: 64 } })
  )
).pipe(Layer.provide(RedisServer.layer))

const withEvents = Layer.effectDiscard(
  Effect.flatMap(Redis, (redis) => redis.send("CONFIG", "SET", "notify-keyspace-events", "Ex"))
)

StreamStoreSuite.suite("a real Redis, by ioredis", RedisStreams.layerStore.pipe(Layer.provideMerge(alone)), {
  live: true,
  append,
  trim
})
StreamStoreSuite.suite(
  "a real Redis with events",
  RedisStreams.layerStore.pipe(Layer.provide(withEvents), Layer.provideMerge(alone)),
  { live: true, append, publishesExpiries: true }
)

it.live(
  "entries deleted while pending are treated as gone",
  () => Effect.provide(Effect.scoped(trimmed), RedisStreams.layerStore.pipe(Layer.provideMerge(alone))),
  { tags: ["B50"] }
)

it.live("requests for thousands of leases share calls, and each gets its own reply", () =>
  Effect.provide(heldAtOnce, alone))

it.live("a message with invalid UTF-8 is dead-lettered and redriven unchanged", () =>
  Effect.provide(Effect.scoped(messageBytes), RedisStreams.layerStore.pipe(Layer.provideMerge(alone))))
