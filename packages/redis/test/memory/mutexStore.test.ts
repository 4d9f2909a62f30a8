/** The production layers and scripts on the testkit's in-memory server, under TestClock. */
import { Subscriber } from "@effect-simba/core/Subscriber"
import { RedisMutex } from "@effect-simba/redis"
import { TestRedis } from "@effect-simba/testkit"
import * as MutexStoreSuite from "@effect-simba/testkit/MutexStoreSuite"
import { Effect, Layer } from "effect"

MutexStoreSuite.suite("a fake Redis", RedisMutex.layerStore.pipe(Layer.provide(TestRedis.layer())), { live: false })

/** As on a Cluster, where a count of subscribers is that of one node. */
const uncounted = Layer.effect(Subscriber, Effect.map(Subscriber, (real) => ({ ...real, countable: false })))

MutexStoreSuite.suite(
  "a fake Redis that counts no subscribers",
  RedisMutex.layerStore.pipe(Layer.provide(uncounted), Layer.provide(TestRedis.layer())),
  { live: false, countsSubscribers: false, runs: 30 }
)
