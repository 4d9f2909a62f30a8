/**
 * Runs the scenarios in `support/mutexScenarios.ts` on the fake Redis, in virtual time. `server/single/mutex.test.ts`
 * runs them on a real server.
 */
import * as Mutex from "@effect-simba/core/Mutex"
import { RedisFence, RedisMutex } from "@effect-simba/redis"
import { FakeNetwork, FakeRedis, TestMutex } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import * as scenarios from "../support/mutexScenarios.ts"

/** A fake server and its clients. An outage cuts all clients' links. */
const stage = Effect.gen(function*() {
  const fake = yield* FakeRedis.FakeRedis
  const observer = Context.get(yield* Layer.build(FakeRedis.layerClient({ name: "observer" })), Redis)
  const names: Array<string> = []
  let isCut = false
  const links = (change: (link: FakeNetwork.Link) => Effect.Effect<void>) =>
    Effect.forEach(names, (name) => Effect.flatMap(FakeNetwork.link(name), change), { discard: true })
  const cut = Effect.suspend(() => {
    isCut = true
    return links((link) => link.clog())
  })
  const heal = Effect.suspend(() => {
    const wasCut = isCut
    isCut = false
    return wasCut ? links((link) => link.release()) : Effect.void
  })
  const here = Effect.provideService(FakeRedis.FakeRedis, fake)
  return {
    open: ({ clientTimeout, name = `process-${names.length}`, ...options } = {}) => {
      names.push(name)
      // Both the mutex and its client have a `commandTimeout` option
      const commandTimeout = clientTimeout ?? options.commandTimeout
      const process = TestMutex.layerClient(RedisMutex.layerStore, { ...options, name, commandTimeout })
      return here(Effect.map(Layer.build(process), Context.get(Mutex.Mutex)))
    },
    server: {
      send: (command, ...args) => observer.send(command!, ...args),
      pause: here(cut),
      resume: here(heal),
      kill: here(Effect.andThen(cut, Effect.forEach(names, fake.dropConnections, { discard: true }))),
      restart: here(Effect.andThen(fake.restart({ keepData: false }), heal)),
      loseSubscription: () => observer.send("CLIENT", "KILL", "TYPE", "pubsub"),
      loseConnections: Effect.forEach(names, fake.dropConnections, { discard: true })
    }
  } satisfies scenarios.Stage
})

const fake = (scenario: (stage: scenarios.Stage) => Effect.Effect<void, unknown>) =>
  Effect.gen(function*() {
    const playing = yield* Effect.forkChild(Effect.flatMap(stage, scenario))
    // A hanging scenario never yields to the event loop, so Vitest's timeout could not end it
    for (let turns = 0; playing.pollUnsafe() === undefined; turns++) {
      assert.isBelow(turns, 6000, "the scenario ends within ten minutes of virtual time")
      yield* TestClock.adjust("100 millis")
    }
    yield* Fiber.join(playing)
  }).pipe(Effect.provide(FakeRedis.layer()))

describe("a mutex on the fake Redis", () => {
  it.effect("fenced writes can go to the Redis that stores the mutexes", () =>
    Effect.gen(function*() {
      yield* Mutex.withLock("report")((lease) => RedisFence.set(lease, "report:latest", "42"))
      const { dump } = yield* FakeRedis.FakeRedis
      assert.deepStrictEqual(yield* dump("report:latest"), { type: "string", value: "42" })
    }).pipe(Effect.provide(TestMutex.layerFakeRedis(RedisMutex.layerStore))))

  it.effect("fifteen fibers in three processes exclude each other", () => fake(scenarios.exclusion))

  it.effect("waiters in different processes are served in order of arrival", () => fake(scenarios.order), {
    tags: ["H1"]
  })

  it.effect("a waiter whose subscription was lost still gets the mutex", () => fake(scenarios.lostSubscription), {
    tags: ["B2"]
  })

  it.effect(
    "if the owner's key is deleted, the lease is lost and its work is interrupted",
    () => fake(scenarios.deleted),
    { tags: ["B18"] }
  )

  it.effect("if the owner's key is overwritten, the loss names the new owner and the key stays unchanged", () =>
    fake(scenarios.overwritten))

  it.effect("a lease is renewed for as long as its work takes", () => fake(scenarios.renewed), { tags: ["L2"] })

  it.effect("an interrupted acquire leaves nothing behind", () => fake(scenarios.interrupted), {
    tags: ["H7"]
  })

  it.effect(
    "an acquire leaves nothing behind, no matter when it is interrupted",
    () => fake(scenarios.interruptedAnywhere),
    { tags: ["H7"] }
  )

  it.effect(
    "an acquire that times out names the owner in its error and leaves nothing behind",
    () => fake(scenarios.timedOut),
    { tags: ["H7"] }
  )

  it.effect("the longest periods work like any other", () => fake(scenarios.longest))

  it.effect("with a timeout of zero, an acquire makes a single attempt and waits for the reply", () =>
    fake(scenarios.oneTry))

  it.effect("closing a layer interrupts its work, waits for it, and releases its mutexes", () => fake(scenarios.closed))

  it.effect("a waiter that leaves does not delay the one behind it", () => fake(scenarios.leaving), { tags: ["H3"] })
})

describe("a mutex when the fake Redis fails", () => {
  it.effect(
    "if the server restarts without its data, the holder loses the mutex and a waiter gets it",
    () => fake(scenarios.restarted),
    { tags: ["B2"] }
  )

  it.effect(
    "if the server hangs, work is interrupted at the local deadline, with BackendGone",
    () => fake(scenarios.hanging),
    { tags: ["L1"] }
  )

  it.effect("an outage shorter than the transition does not end a lease", () => fake(scenarios.shortOutage), {
    tags: ["L2", "B13"]
  })

  it.effect("acquire rides out an outage, but fails with a BackendError if the outage outlasts a lease", () =>
    fake(scenarios.outage))
})
