/** Simulates ordinary programs, which do not write notes for the checkers. */
import { Leadership, Mutex } from "@effect-simba/core"
import { RedisFence } from "@effect-simba/redis"
import * as RedisSimulation from "@effect-simba/redis/RedisSimulation"
import { Checker, Simulation } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"

const mutexes = ["report", "cache", "alice", "bob", "jobs"]

/** An application that uses mutexes in every way: a report, a cache warm-up, a transfer and a leader's work. */
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

const optionsOf = (seed: number): RedisSimulation.Options<never> => ({
  seed,
  program: () => application,
  mutexes,
  config: { ttl: "2 seconds", transition: "2500 millis" },
  faults: Simulation.allFaults,
  duration: "16 seconds"
})

const seeds = Array.from({ length: 6 }, (_, index) => index + 1)

describe("RedisSimulation", () => {
  it.effect("passes all checkers under all faults", () =>
    Effect.forEach(seeds, (seed) =>
      Effect.map(RedisSimulation.run(optionsOf(seed)), (result) => {
        assert.deepStrictEqual(result.violations, [], Simulation.report(result))
        const kinds = new Set(result.events.flatMap((event) => event._tag === "Note" ? [event.kind] : []))
        assert.includeMembers([...kinds], ["waiting", "waited", "granted", "begin", "stopped", "end"])
      })))

  it.effect("finds work that continues after its lease was lost", () =>
    Effect.gen(function*() {
      // `acquire` alone does not interrupt work when its lease is lost
      const slow = (client: Simulation.Client) =>
        Effect.flatMap(Mutex.acquire("report"), (lease) => {
          const fields = { resource: lease.mutex, id: lease.id }
          client.note("begin", fields)
          return Effect.andThen(Effect.sleep("6 seconds"), Effect.sync(() => client.note("end", fields)))
        }).pipe(Effect.scoped, Effect.ignore, Effect.forever)
      const results = yield* Effect.forEach(seeds, (seed) =>
        RedisSimulation.run({ ...optionsOf(seed), program: slow, enabled: ["partition"] }))
      const found = results.flatMap(({ violations }) =>
        violations.map(({ checker }) => checker)
      )
      assert.include(found, Checker.rules.workNeverOverlaps.name)
    }))

  it.effect("reports keys that the program leaves and `keep` does not accept, except RedisFence's tokens", () =>
    Effect.gen(function*() {
      const writing = Mutex.withLock("report")((lease) => RedisFence.set(lease, "report:latest", "42"))
      const options = { ...optionsOf(1), program: () => Effect.ignore(writing), faults: {} }
      const messages = (result: Simulation.Result) => result.violations.map(({ message }) => message)
      assert.deepStrictEqual(messages(yield* RedisSimulation.run(options)), [
        "found keys that `keep` does not accept: report:latest"
      ])
      const keep = (key: string) => key === "report:latest"
      assert.deepStrictEqual(messages(yield* RedisSimulation.run({ ...options, keep })), [])
    }))

  it.effect("provides a lock model, without which checkers would report false violations", () =>
    Effect.gen(function*() {
      const made = yield* RedisSimulation.make(optionsOf(1))
      const { ownerKey, resources, tokenKey } = made.lock
      const { violations } = yield* Simulation.run({ ...made, lock: { resources, ownerKey, tokenKey: tokenKey! } })
      assert.isAbove(violations.length, 0)
    }))
})
