/** Runs two nodes of `scheduled-jobs.ts` in virtual time, and stops the leader. */
import { Mutex } from "@effect-simba/core"
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Cleaner, Jobs, Shop } from "../scheduled-jobs.ts"
import { MutexLive } from "../service.ts"

const Mutexes = MutexLive.pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: {} }))))

it.effect("scheduled-jobs.ts runs each job on one node, as often as its schedule says", () =>
  Effect.gen(function*() {
    const shop = yield* Shop
    const nodes = yield* Effect.forEach([1, 2], () =>
      Effect.forkChild(Layer.launch(Layer.fresh(Layer.merge(Jobs, Cleaner)))))
    yield* TestClock.adjust("45 seconds")
    yield* Effect.forEach(nodes.slice(0, 1), Fiber.interrupt)
    yield* TestClock.adjust("44 seconds")
    const done = yield* shop.done
    const count = (what: string) =>
      done.filter((line) => line.startsWith(what)).length
    // The new leader restarts the cleaner's pause, and does not repeat the import within the same period. The cron job
    // is new and has nothing to catch up on, so its only report is for the first full minute.
    assert.deepStrictEqual([count("expired"), count("imported"), count("reported")], [10, 3, 1])
    yield* Effect.forEach(nodes, Fiber.interrupt)
    assert.strictEqual((yield* Mutex.owner("shop-jobs"))._tag, "Free")
  }).pipe(Effect.provide(Layer.merge(Shop.layer, Mutexes))))
