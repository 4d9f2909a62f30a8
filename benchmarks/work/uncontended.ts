/** Measures acquire and release of uncontended mutexes in a number of loops, each with its own names. */
import { Effect } from "effect"
import { type Bench, brief, type Entrant, ours, type Outcome, raw, variantOf } from "../lib/bench.ts"
import type { Spent } from "../lib/calls.ts"
import type { Pairs } from "../lib/contestant.ts"
import * as Row from "../lib/row.ts"
import { median } from "../lib/statistics.ts"

const withLock = variantOf(ours, "ours, withLock", { variant: "withLock" })
const rawVariants = [
  variantOf(raw, "raw, reply to the release not awaited", { variant: "unawaited" }),
  variantOf(raw, "raw, commands of a tick in one script", { variant: "coalesced" })
]

/** The column with the CPU time of the process per operation. */
export const cpu = (outcomes: ReadonlyArray<Outcome<Pairs & Spent>>) =>
  Row.column(
    "node CPU, us each",
    outcomes,
    (samples) => median(samples.map(({ cpuMillis, pairs }) => 1000 * cpuMillis / pairs))
  )

export const uncontended = Effect.fnUntraced(function*(bench: Bench, inFlight: number) {
  const { isQuick } = bench.pace
  const { millis, repetitions, repetitionsOfPeers } = brief(bench.pace)
  const entrants = [...bench.everybody, withLock, ...(isQuick ? [] : rawVariants)]
  const measure = Effect.fnUntraced(function*(entrant: Entrant, repetition: number) {
    const agent = yield* bench.agent(entrant)
    const request = { inFlight, variant: entrant.variant, oneName: false }
    if (repetition === 0) yield* agent.ask("pairs", { ...request, millis: 500 })
    return yield* agent.ask("pairs", { ...request, millis })
  })
  const outcomes = yield* bench.rounds(entrants, repetitions, measure, repetitionsOfPeers)
  return Row.make(
    bench,
    {
      id: `uncontended-${inFlight}`,
      title: `acquire + release of an uncontended mutex, ${inFlight} in flight`,
      unit: "pairs/s",
      better: "more"
    },
    outcomes,
    ({ millis, pairs }) => 1000 * pairs / millis,
    {},
    Row.overMeasured,
    [cpu(outcomes)]
  )
})

/**
 * Measures the cost of observability: compares plain effect-simba with effect-simba under a tracer that keeps the
 * latest spans, with metrics that are read every second.
 */
export const traced = Effect.fnUntraced(function*(bench: Bench) {
  const { millis, repetitions } = brief(bench.pace)
  const entrants: ReadonlyArray<Entrant> = [
    { ...ours, variant: "traced" },
    { ...ours, name: "without", role: "raw" }
  ]
  const outcomes = yield* bench.rounds(
    entrants,
    repetitions,
    Effect.fnUntraced(function*(entrant) {
      const agent = yield* bench.agent(entrant)
      return yield* agent.ask("pairs", { inFlight: 1, variant: entrant.variant, oneName: false, millis })
    })
  )
  const head = {
    id: "traced",
    title: "acquire + release under a tracer and metrics read every second",
    unit: "us",
    better: "less"
  } as const
  return Row.make(bench, head, outcomes, ({ millis, pairs }) => 1000 * millis / pairs, {}, Row.overMeasured, [
    cpu(outcomes)
  ])
})
