/**
 * Runs the testkit's contract suite for mutex stores on `RedisMutex.layerStore`: with a fake Redis that can count a
 * channel's subscribers, and with one that cannot.
 */
import { Subscriber } from "@effect-simba/core/Subscriber"
import { RedisMutex } from "@effect-simba/redis"
import { TestRedis } from "@effect-simba/testkit"
import * as MutexStoreSuite from "@effect-simba/testkit/MutexStoreSuite"
import { Effect, Layer } from "effect"

MutexStoreSuite.suite("a fake Redis", RedisMutex.layerStore.pipe(Layer.provide(TestRedis.layer())), { live: false })

/** Makes subscribers uncountable, as behind a proxy. */
const uncounted = Layer.effect(Subscriber, Effect.map(Subscriber, (real) => ({ ...real, countable: false })))

MutexStoreSuite.suite(
  "a fake Redis that cannot count subscribers",
  RedisMutex.layerStore.pipe(Layer.provide(uncounted), Layer.provide(TestRedis.layer())),
  { live: false, countsSubscribers: false, runs: 30 }
)
