/**
 * Measures how fast virtual time passes with twenty contenders for one mutex, and checks that a seed always produces
 * the same history. Each contender holds the mutex for 0.1 to 1 second and then rests for up to one second.
 */
import { Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { Checker, Simulation } from "@effect-simba/testkit"
import { Duration, Effect, Layer } from "effect"
import { lock } from "../packages/redis/test/simulate/mutexPlan.ts"
import { commandLine } from "../scripts/lib/commandLine.mjs"

commandLine({ options: {} })

const contend = (client: Simulation.Client) =>
  Effect.suspend(() => Effect.sleep(Duration.millis(100 + 900 * client.random()))).pipe(
    Mutex.withLock("a"),
    Effect.andThen(Effect.suspend(() => Effect.sleep(Duration.millis(1000 * client.random())))),
    Effect.forever,
    Effect.provide(Mutex.layer({ processName: client.name }).pipe(Layer.provide(RedisMutex.layerStore)))
  )

const options = (seed: number, seconds: number) => ({
  seed,
  clients: 20,
  program: contend,
  lock,
  checkers: Checker.all({ sleepBound: "5 seconds" }),
  duration: Duration.seconds(seconds)
} as const)

await Effect.runPromise(Simulation.run(options(1, 600)))
const startedAt = performance.now()
const cpuBefore = process.cpuUsage()
const result = await Effect.runPromise(Simulation.run(options(2, 1800)))
const millis = performance.now() - startedAt
const cpu = process.cpuUsage(cpuBefore).user / 1000
if (result.violations.length > 0) console.log(Simulation.report(result))
const grants = result.events.filter((event) => event._tag === "Owner" && event.to !== undefined).length
console.log(
  `20 contenders, one mutex: ${(result.virtualMillis / 1000).toFixed(0)} virtual seconds in ${
    (millis / 1000).toFixed(2)
  } s, ` +
    `${(result.virtualMillis / millis).toFixed(0)} times real time (${
      (result.virtualMillis / cpu).toFixed(0)
    } by CPU time), ${grants} grants, ${result.commands} commands`
)

const traces = new Set<string>()
for (let i = 0; i < 100; i++) {
  const result = await Effect.runPromise(Simulation.run({ ...options(3, 10), faults: Simulation.allFaults }))
  traces.add(Simulation.report(result, { format: "trace" }))
}
console.log(`the same seed, 100 repeats, distinct traces: ${traces.size}`)
