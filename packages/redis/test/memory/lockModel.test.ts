/** Simulations of programs that know nothing of them: with the published model of the mutex, and notes made by a layer. */
import { Leadership, Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import * as RedisLockModel from "@effect-simba/redis/RedisLockModel"
import { Checker, Simulation, TestMutex } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"

const resources = ["report", "cache", "alice", "bob", "jobs"]
const options = { ttl: "2 seconds", transition: "2500 millis" } as const

/** An application: a report under a lock, a cache that is warmed where the lock is free, a transfer, and work of the leader. */
const application = Effect.forEach(
  [
    Effect.sleep("150 millis").pipe(Mutex.withLock("report", { timeout: "3 seconds" }), Effect.ignore),
    Effect.sleep("50 millis").pipe(Mutex.withLockIfAvailable("cache"), Effect.ignore),
    Effect.scoped(Effect.andThen(Mutex.acquire("cache", { timeout: "1 second" }), Effect.sleep("100 millis"))).pipe(
      Effect.ignore
    ),
    Effect.scoped(
      Effect.andThen(Mutex.acquireAll(["alice", "bob"], { timeout: "2 seconds" }), Effect.sleep("100 millis"))
    ).pipe(Effect.ignore),
    Effect.scoped(Effect.flatMap(
      Mutex.contend("jobs"),
      (contender) => Leadership.whileLeader(contender, Effect.sleep("1 second"))
    )).pipe(Effect.timeoutOption("4 seconds"), Effect.ignore)
  ],
  (act) => Effect.forever(Effect.delay(act, "80 millis")),
  { concurrency: "unbounded", discard: true }
)

const noted = (client: Simulation.Client) =>
  TestMutex.layerNoted(client).pipe(
    Layer.provide(Mutex.layer(options)),
    Layer.provide(RedisMutex.layerStore)
  )

const simulate = Effect.fnUntraced(function*(
  seed: number,
  overrides?: Partial<Pick<Simulation.Options<unknown>, "lock" | "program" | "enabled">>
) {
  return yield* Simulation.run({
    seed,
    program: (client) => Effect.provide(application, noted(client)),
    lock: RedisLockModel.make(resources),
    faults: Simulation.allFaults,
    checkers: Checker.all(yield* RedisLockModel.bounds(options)),
    duration: "16 seconds",
    ...overrides
  })
})

const seeds = Array.from({ length: 6 }, (_, index) => index + 1)

describe("RedisLockModel", () => {
  it.effect("passes all checkers with a program that makes no notes of its own, under all faults", () =>
    Effect.forEach(seeds, (seed) =>
      Effect.map(simulate(seed), (result) => {
        assert.deepStrictEqual(result.violations, [], Simulation.report(result))
        const kinds = new Set(result.events.flatMap((event) => event._tag === "Note" ? [event.kind] : []))
        assert.includeMembers([...kinds], ["waiting", "waited", "granted", "begin", "stopped", "end"])
      })))

  it.effect("finds work that goes on after its lease was lost", () =>
    Effect.gen(function*() {
      // A bare lease interrupts nothing
      const slow = (client: Simulation.Client) =>
        Effect.flatMap(Mutex.acquire("report"), (lease) => {
          const fields = { resource: lease.mutex, id: lease.id }
          client.note("begin", fields)
          return Effect.andThen(Effect.sleep("6 seconds"), Effect.sync(() => client.note("end", fields)))
        }).pipe(Effect.scoped, Effect.ignore, Effect.forever, Effect.provide(noted(client)))
      const results = yield* Effect.forEach(seeds, (seed) => simulate(seed, { program: slow, enabled: ["partition"] }))
      const found = results.flatMap(({ violations }) => violations.map(({ checker }) => checker))
      assert.include(found, Checker.workNeverOverlaps.name)
    }))

  it.effect("is needed: the checkers misjudge the mutex by its keys alone", () =>
    Effect.gen(function*() {
      const { ownerKey, tokenKey } = RedisLockModel.make(resources)
      const { violations } = yield* simulate(1, { lock: { resources, ownerKey, tokenKey } })
      assert.isAbove(violations.length, 0)
    }))
})
