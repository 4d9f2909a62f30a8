/**
 * Runs the testkit's contract suite for stream stores, and shared scenarios, on the production store with the fake
 * server.
 */
import * as RedisStreams from "@effect-simba/redis/streams/RedisStreams"
import * as StreamStoreSuite from "@effect-simba/testkit/streams/StreamStoreSuite"
import * as TestRedis from "@effect-simba/testkit/TestRedis"
import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { heldAtOnce } from "../support/heldAtOnce.ts"
import { messageBytes } from "../support/messageBytes.ts"
import { append, trim } from "../support/streams.ts"
import { trimmed } from "../support/trimmedEntries.ts"

const withEvents = Layer.effectDiscard(
  Effect.flatMap(Redis, (redis) => redis.send("CONFIG", "SET", "notify-keyspace-events", "Ex"))
)

StreamStoreSuite.suite("a fake Redis", RedisStreams.layerStore.pipe(Layer.provideMerge(TestRedis.layer())), {
  live: false,
  append,
  trim
})
StreamStoreSuite.suite(
  "a fake Redis with events",
  RedisStreams.layerStore.pipe(Layer.provide(withEvents), Layer.provideMerge(TestRedis.layer())),
  { live: false, append, publishesExpiries: true }
)

it.effect(
  "entries deleted while pending are treated as gone",
  () => Effect.provide(Effect.scoped(trimmed), RedisStreams.layerStore.pipe(Layer.provideMerge(TestRedis.layer()))),
  { tags: ["B50"] }
)

it.effect("requests for 2,000 leases share calls, and each gets its own reply", () =>
  Effect.provide(heldAtOnce, TestRedis.layer()))

it.effect("a message with invalid UTF-8 is dead-lettered and redriven unchanged", () =>
  Effect.provide(Effect.scoped(messageBytes), RedisStreams.layerStore.pipe(Layer.provideMerge(TestRedis.layer()))))
