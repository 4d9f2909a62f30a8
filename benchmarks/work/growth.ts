/** Measures how throughput changes with the number of mutexes and fibers. */
import { Effect, type Scope } from "effect"
import type { AgentError } from "../lib/agent.ts"
import { type Bench, brief, type Entrant, ours, variantOf } from "../lib/bench.ts"
import type { Axis, Chart } from "../lib/chart.ts"
import { median, rounded } from "../lib/statistics.ts"
import { handingOver, inProcessPairs, queueing } from "./inProcess.ts"
import { warmPairs } from "./uncontended.ts"

const logarithmic = (label: string): Axis => ({ label, isLogarithmic: true })

/**
 * Returns a chart with one curve per entrant and figure that `measure` returns. At each of the `points`, the entrants
 * take turns.
 */
export const curves = Effect.fnUntraced(function*<const Name extends string>(
  bench: Bench,
  head: Omit<Chart, "series">,
  points: ReadonlyArray<number>,
  entrants: (x: number) => ReadonlyArray<Entrant>,
  measure: (entrant: Entrant, x: number) => Effect.Effect<Record<Name, number>, AgentError, Scope.Scope>
) {
  const series = new Map<string, Array<readonly [number, number]>>()
  for (const x of points) {
    const outcomes = yield* bench.rounds(
      entrants(x),
      Math.min(5, bench.pace.repetitions),
      (entrant) => measure(entrant, x)
    )
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
      title: "Acquire + release of uncontended mutexes",
      x: logarithmic("mutexes in flight"),
      y: logarithmic("pairs/s")
    },
    tenfold,
    () => bench.closest,
    Effect.fnUntraced(function*(entrant, inFlight) {
      const asked = { inFlight, millis: brief(bench.pace).millis, oneName: false }
      const { millis, pairs } = yield* warmPairs(bench, entrant, asked)
      return { "": 1000 * pairs / millis }
    })
  )

const fibersInProcess = (bench: Bench) =>
  curves(
    bench,
    {
      id: "pairs-by-fibers",
      title: "Fibers in one process contending for one mutex",
      x: logarithmic("fibers"),
      y: logarithmic("pairs/s")
    },
    tenfold,
    () => [
      variantOf(handingOver, "ours, local hand-off", {}),
      variantOf(ours, "ours, every lease from Redis", {}),
      queueing
    ],
    (entrant, fibers) =>
      Effect.map(
        inProcessPairs(bench, entrant, fibers, brief(bench.pace).millis),
        ({ millis, pairs }) => ({ "": 1000 * pairs / millis })
      )
  )

export const growth = (bench: Bench) =>
  Effect.forEach(
    [pairsInFlight, fibersInProcess],
    (chart) => Effect.scoped<Chart, unknown, Scope.Scope>(chart(bench))
  )
