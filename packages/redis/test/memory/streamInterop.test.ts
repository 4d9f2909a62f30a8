/** Fleets of consumers of this library and of Go consumers, on the fake Redis in virtual time. */
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

// Of a sweep of 2 seconds, varied by a fifth
const sweep = 2400

// A stream that is free without an event may be about to end
const secondCheck = 250

describe("with Go consumers, on the fake Redis", () => {
  it.effect("data streams flow both ways, each to one consumer, and none is left behind", () =>
    fake(scenarios.bothWays))

  it.effect("what a live Go consumer owns is left alone", () => fake(scenarios.liveGo))

  it.effect("a yielded stream is taken over within milliseconds", () =>
    Effect.gen(function*() {
      assert.isAtMost(yield* fake(scenarios.handBack), 10)
    }), { tags: ["G20"] })

  it.effect("the death of a Go consumer is noticed when its lease expires, with events", () =>
    Effect.gen(function*() {
      // With a moment for the delay by rank
      assert.isAtMost(yield* fake((stage) => scenarios.goDies(stage, true)), lease + 500)
    }))

  it.effect(
    "the death of a Go consumer is noticed by a sweep, without events, for all its streams",
    () =>
      Effect.gen(function*() {
        assert.isAtMost(yield* fake((stage) => scenarios.goDies(stage, false, 20)), lease + sweep + secondCheck)
      }),
    { tags: ["G15"] }
  )

  it.effect(
    "what was delivered to a Go consumer is left alone while no sweep has seen its lock, until others of its kind would take it",
    () => fake(scenarios.notLockedYet),
    { tags: ["G1"] }
  )

  it.effect("what a Go consumer is finishing is not started again", () => fake(scenarios.finishing), {
    tags: ["G17"]
  })

  it.effect("an expired lease of a Go consumer is over at once, even if those of this library last longer", () =>
    fake(scenarios.longerLeases))

  it.effect("the end of an earlier lease does not concern a Go consumer that received the entry since", () =>
    fake(scenarios.earlierLease))

  it.effect("what a restarted Go consumer claims, locks and finishes is not started again", () =>
    fake(scenarios.claimedAndFinishing))

  it.effect("what a restarted Go consumer claims and never locks is taken a lease after the event", () =>
    fake(scenarios.claimedAndNeverLocked))

  it.effect(
    "a Go consumer that takes over the name of a consumer of this library keeps what it reads",
    () => fake(scenarios.sameName),
    { tags: ["G1"] }
  )

  it.effect("a consumer of this library that is cut off stops before a Go consumer takes over", () =>
    Effect.gen(function*() {
      const millis = yield* fake(scenarios.ownDies)
      assert.isAtMost(millis, lease + 50)
      assert.isAtLeast(millis, lease - heartbeat)
    }))

  it.effect(
    "the recovery of a Go consumer finds nothing that this library has owned for long",
    () => fake(scenarios.recovery),
    { tags: ["G3"] }
  )

  it.effect(
    "two announcements of one data stream are processed one after another",
    () => fake(scenarios.duplicates),
    { tags: ["G8"] }
  )

  it.effect(
    "a late Go owner finishes: the consumer of this library stops, and nothing is repeated",
    () => fake(scenarios.lateDone),
    { tags: ["G18"] }
  )

  it.effect(
    "the shutdown of a Go consumer finishes its own streams, and none of this library",
    () => fake(scenarios.goDone),
    { tags: ["G20"] }
  )
})
