/**
 * How to test code of your own under faults: three processes of a service on a simulated Redis, with lost replies, cut
 * connections, pauses, wrong clocks and fail-overs. A seed decides all of it, and nothing waits for real time.
 */
import { Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import * as RedisLockModel from "@effect-simba/redis/RedisLockModel"
import { Checker, Simulation, TestMutex } from "@effect-simba/testkit"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Reports } from "../service.ts"

const options = { ttl: "2 seconds", transition: "3 seconds" } as const

/** What one process does all the time. A report takes five seconds, longer than its lease. */
const asking = Effect.gen(function*() {
  const reports = yield* Reports
  return yield* Effect.forever(Effect.delay(Effect.ignore(reports.make("sales")), "300 millis"))
})

/** The layers of production, on the process that the simulation plays. The notes are for the checkers. */
const processOf = (client: Simulation.Client) =>
  Reports.layer.pipe(
    Layer.provide(TestMutex.layerNoted(client)),
    Layer.provide(Mutex.layer(options)),
    Layer.provide(RedisMutex.layerStore)
  )

it.effect("a report is made once at a time, whatever fails", () =>
  Effect.gen(function*() {
    const checkers = Checker.all(yield* RedisLockModel.bounds(options))
    for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const result = yield* Simulation.run({
        seed,
        clients: 3,
        program: (client) => Effect.provide(asking, processOf(client)),
        lock: RedisLockModel.make(["report:sales"]),
        faults: Simulation.allFaults,
        checkers
      })
      // The report names the seed, the faults, and who held what
      assert.deepStrictEqual(result.violations, [], Simulation.report(result))
      const made = result.events.filter((event) => event._tag === "Note" && event.kind === "begin")
      assert.isAbove(made.length, 0)
    }
  }))
