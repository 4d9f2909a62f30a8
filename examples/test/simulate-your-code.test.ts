/**
 * How to test your own code under faults: three processes of a service run on a simulated Redis, with lost replies, cut
 * connections, pauses, wrong clocks and failovers. A seed determines the whole run, and no test waits for real time.
 */
import * as RedisSimulation from "@effect-simba/redis/RedisSimulation"
import { Simulation } from "@effect-simba/testkit"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Reports } from "../service.ts"

/**
 * A process that makes reports forever. Each report takes five seconds, so its lease must be renewed in the meantime.
 */
const asking = Effect.gen(function*() {
  const reports = yield* Reports
  return yield* Effect.forever(Effect.delay(Effect.ignore(reports.make("sales")), "300 millis"))
})

it.effect("a report is made by one process at a time, under any fault", () =>
  Effect.gen(function*() {
    for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const result = yield* RedisSimulation.run({
        seed,
        clients: 3,
        program: () => Effect.provide(asking, Reports.layer),
        mutexes: ["report:sales"],
        config: { ttl: "2 seconds", transition: "3 seconds" },
        faults: Simulation.allFaults
      })
      // The failure report names the seed, the faults, and who held which lease
      assert.deepStrictEqual(result.violations, [], Simulation.report(result))
      const made = result.events.filter((event) => event._tag === "Note" && event.kind === "begin")
      assert.isAbove(made.length, 0)
    }
  }))
