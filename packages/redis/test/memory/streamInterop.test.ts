/** Runs the scenarios in `support/streamInteropScenarios.ts`, for effect-simba and Go consumers, on the fake Redis. */
import { FakeNetwork, FakeRedis } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import type { Scope } from "effect"
import { Context, Effect, Fiber, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import { quiet } from "../support/harness.ts"
import { consumers } from "../support/interopConsumers.ts"
import * as scenarios from "../support/streamInteropScenarios.ts"

const fake = <A>(scenario: (stage: scenarios.Stage) => Effect.Effect<A, unknown, Scope.Scope>) =>
  Effect.gen(function*() {
    const context = yield* Effect.context<FakeRedis.FakeRedis>()
    const here = Effect.provideContext(context)
    const admin = Context.get(yield* Layer.build(FakeRedis.layerClient({ name: "admin" })), Redis)
    const server = Layer.succeedContext(context)
    const stage = {
      send: (command, ...args) => admin.send(command!, ...args),
      ...consumers(
        (name) => Layer.fresh(FakeRedis.layerClient({ name })).pipe(Layer.provide(server)),
        (name) => here(Effect.flatMap(FakeNetwork.link(name), (link) => link.partition()))
      )
    } satisfies scenarios.Stage as scenarios.Stage
    const playing = yield* Effect.forkChild(Effect.scoped(scenario(stage)))
    while (playing.pollUnsafe() === undefined) yield* TestClock.adjust("5 millis")
    return yield* Fiber.join(playing)
  }).pipe(Effect.provide([FakeRedis.layer({ expiryDelay: [0, 0] }), quiet]))

const lease = 2000

const heartbeat = 1000

// The 2-second interval plus up to 20% jitter
const sweep = 2400

// Without an event, a consumer checks a free data stream twice before taking it, because a Go consumer may be finishing
// it
const secondCheck = 250

describe("a service with effect-simba and Go consumers on the fake Redis", () => {
  it.effect("each data stream is processed by one consumer, no matter which library announced it", () =>
    fake(scenarios.bothWays))

  it.effect("a live Go consumer keeps its data streams", () => fake(scenarios.liveGo))

  it.effect("a Go consumer takes yielded data streams within milliseconds", () =>
    Effect.gen(function*() {
      assert.isAtMost(yield* fake(scenarios.handBack), 10)
    }), { tags: ["G20"] })

  it.effect("with events, a dead Go consumer's data streams are taken over when its leases expire", () =>
    Effect.gen(function*() {
      // The extra 500 ms allows for the consumers' random delay
      assert.isAtMost(yield* fake((stage) => scenarios.goDies(stage, true)), lease + 500)
    }))

  it.effect(
    "without events, a sweep takes over all of a dead Go consumer's data streams",
    () =>
      Effect.gen(function*() {
        assert.isAtMost(yield* fake((stage) => scenarios.goDies(stage, false, 20)), lease + sweep + secondCheck)
      }),
    { tags: ["G15"] }
  )

  it.effect(
    "an entry delivered to a Go consumer but not locked is left alone until Go consumers would take it",
    () => fake(scenarios.notLockedYet),
    { tags: ["G1"] }
  )

  it.effect("a data stream that a Go consumer is finishing is not started again", () => fake(scenarios.finishing), {
    tags: ["G17"]
  })

  it.effect("a Go consumer's lease ends when it expires, even if effect-simba's leases last longer", () =>
    fake(scenarios.longerLeases))

  it.effect("the expiry of an earlier owner's lease does not affect a Go consumer that received the entry later", () =>
    fake(scenarios.earlierLease))

  it.effect("a data stream is not started again if a restarted Go consumer claims, locks and finishes it", () =>
    fake(scenarios.claimedAndFinishing))

  it.effect("an entry is taken one lease after the event if a restarted Go consumer claims but never locks it", () =>
    fake(scenarios.claimedAndNeverLocked))

  it.effect(
    "a Go consumer keeps its entries even if an effect-simba consumer had the same name",
    () => fake(scenarios.sameName),
    { tags: ["G1"] }
  )

  it.effect("an effect-simba consumer that is cut off stops before a Go consumer takes over", () =>
    Effect.gen(function*() {
      const millis = yield* fake(scenarios.ownDies)
      assert.isAtMost(millis, lease + 50)
      assert.isAtLeast(millis, lease - heartbeat)
    }))

  it.effect(
    "when a Go consumer starts, it does not recover data streams that effect-simba has owned for a long time",
    () => fake(scenarios.recovery),
    { tags: ["G3"] }
  )

  it.effect(
    "two announcements of one data stream are processed one after another",
    () => fake(scenarios.duplicates),
    { tags: ["G8"] }
  )

  it.effect(
    "if a Go consumer finishes late, its effect-simba successor stops and nothing is processed again",
    () => fake(scenarios.lateDone),
    { tags: ["G18"] }
  )

  it.effect(
    "a Go consumer that shuts down finishes its own data streams but none of effect-simba's",
    () => fake(scenarios.goDone),
    { tags: ["G20"] }
  )
})
