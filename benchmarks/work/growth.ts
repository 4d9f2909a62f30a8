/** How cost grows with the number of mutexes, waiters, fibers and leases. */
import { Effect, type Scope } from "effect"
import type { AgentError } from "../lib/agent.ts"
import { type Bench, type Entrant, ours, raw, variantOf } from "../lib/bench.ts"
import type { Axis, Chart } from "../lib/chart.ts"
import * as Proxy from "../lib/proxy.ts"
import { median, quantile, rounded } from "../lib/statistics.ts"
import { countCommands, perHandOff } from "./commands.ts"
import { contendFor, freshName } from "./handoff.ts"
import { heapPerLease } from "./heap.ts"
import { handingOver, inProcessPairs, queueing } from "./inProcess.ts"
import { renew } from "./renewal.ts"

const logarithmic = (label: string): Axis => ({ label, isLogarithmic: true })

/** One curve for each entrant and each of `values`, measured in turn at each point. */
export const curves = Effect.fnUntraced(function*<const Name extends string>(
  bench: Bench,
  head: Omit<Chart, "series">,
  points: ReadonlyArray<number>,
  entrants: (x: number) => ReadonlyArray<Entrant>,
  measure: (entrant: Entrant, x: number) => Effect.Effect<Record<Name, number>, AgentError, Scope.Scope>
) {
  const series = new Map<string, Array<readonly [number, number]>>()
  for (const x of points) {
    // Many contenders take long to come together, and are many samples
    const repetitions = Math.min(x >= 1000 ? 1 : 3, bench.pace.repetitions)
    const outcomes = yield* bench.rounds(entrants(x), repetitions, (entrant) => measure(entrant, x))
    for (const { entrant, samples } of outcomes) {
      for (const name of Object.keys(samples[0] ?? {}) as Array<Name>) {
        const label = name === "" ? entrant.name : `${entrant.name}, ${name}`
        const curve = series.get(label) ?? []
        curve.push([x, rounded(median(samples.map((sample) => sample[name])))])
        series.set(label, curve)
      }
    }
    yield* bench.note(`  ${head.id} at ${x}`)
  }
  return { ...head, series: [...series].map(([name, points]) => ({ name, points })) } satisfies Chart as Chart
})

const tenfold = [1, 10, 100, 1000, 10_000]

const pairsInFlight = (bench: Bench) =>
  curves(
    bench,
    {
      id: "pairs-by-mutexes",
      title: "Acquire + release of free mutexes",
      x: logarithmic("mutexes in flight"),
      y: logarithmic("pairs/s")
    },
    tenfold,
    () => [ours, raw, ...bench.everybody.filter(({ role, setting }) => role === "peer" && setting === "default")],
    Effect.fnUntraced(function*(entrant, inFlight) {
      const agent = yield* bench.agent(entrant)
      const request = { inFlight, millis: bench.pace.millis, variant: entrant.variant, oneName: false }
      const { millis, pairs } = yield* agent.ask("pairs", request)
      return { "": 1000 * pairs / millis }
    })
  )

const handOffsByContenders = (bench: Bench) =>
  curves(
    bench,
    {
      id: "handoff-by-contenders",
      title: "From a release to the next holder",
      x: logarithmic("contenders for one mutex"),
      y: logarithmic("ms")
    },
    [2, 10, 100, 1000, 10_000],
    () => [ours, raw],
    Effect.fnUntraced(function*(entrant, contenders) {
      const agent = yield* bench.agent(entrant)
      const name = freshName("growth")
      const { millis } = yield* contendFor([agent], { contenders, millis: bench.pace.millis, name })
      return { p50: median(millis), p99: quantile(millis, 0.99) }
    })
  )

const commandsByContenders = Effect.fnUntraced(function*(bench: Bench) {
  const proxy = yield* Proxy.start(bench.server.port, 0)
  yield* Effect.addFinalizer(() => bench.disconnectAll)
  return yield* curves(
    bench,
    {
      id: "commands-by-contenders",
      title: "Commands sent for each hand-off",
      x: logarithmic("contenders for one mutex"),
      y: logarithmic("commands")
    },
    [2, 10, 100, 1000],
    (x) => x > 100 ? [ours, raw] : bench.everybody.filter(({ setting }) => setting === "default"),
    (entrant, contenders) =>
      Effect.map(countCommands(bench, entrant, proxy, contenders), (counted) => ({ "": perHandOff(counted) }))
  )
})

const fibersInProcess = (bench: Bench) =>
  curves(
    bench,
    {
      id: "pairs-by-fibers",
      title: "Fibers of one process that want one mutex",
      x: logarithmic("fibers"),
      y: logarithmic("pairs/s")
    },
    tenfold,
    () => [
      variantOf(handingOver, "ours, local hand-over", {}),
      variantOf(ours, "ours, every lease from Redis", {}),
      queueing
    ],
    (entrant, fibers) =>
      Effect.map(inProcessPairs(bench, entrant, fibers, bench.pace.millis), ({ rate }) => ({ "": rate }))
  )

const renewalByLeases = (bench: Bench) =>
  curves(
    bench,
    {
      id: "renewal-by-leases",
      title: "Renewing all held leases once",
      x: logarithmic("leases held"),
      y: logarithmic("ms of CPU")
    },
    [10, 100, 1000, 10_000],
    () => [ours, raw],
    (entrant, count) => Effect.map(renew(bench, entrant, count), ({ cpuMillis }) => ({ "": cpuMillis }))
  )

const heapByLeases = (bench: Bench) =>
  curves(
    bench,
    {
      id: "heap-by-leases",
      title: "Heap for each held lease",
      x: logarithmic("leases held"),
      y: { label: "kB", isLogarithmic: false }
    },
    [100, 1000, 10_000],
    () => [ours, raw],
    (entrant, count) => Effect.map(heapPerLease(bench, entrant, count), (kilobytes) => ({ "": kilobytes }))
  )

export const growth = (bench: Bench) =>
  Effect.forEach(
    [pairsInFlight, handOffsByContenders, commandsByContenders, fibersInProcess, renewalByLeases, heapByLeases],
    (chart) => Effect.scoped<Chart, unknown, Scope.Scope>(chart(bench))
  )
