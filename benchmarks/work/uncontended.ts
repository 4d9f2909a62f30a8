/** Measures acquire and release of uncontended mutexes in a number of loops, each with its own names. */
import { Effect } from "effect"
import { type Bench, brief, type Entrant, ours, type Outcome, raw, variantOf } from "../lib/bench.ts"
import type { Spent } from "../lib/calls.ts"
import type { Connect, Pairs, PairsRequest } from "../lib/contestant.ts"
import * as Row from "../lib/row.ts"
import { median } from "../lib/statistics.ts"
import { once, warmUpMillis } from "../lib/warmUp.ts"

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

/** Measures acquire-release pairs in an entrant's process, which first warms up. */
export const warmPairs = Effect.fnUntraced(function*(
  bench: Bench,
  entrant: Entrant,
  asked: Omit<PairsRequest, "variant">,
  connect: Partial<Connect> = {}
) {
  const agent = yield* bench.agent(entrant, connect)
  const { localTurn, setting, variant } = entrant
  const request = { ...asked, variant }
  const isAlone = asked.inFlight === 1
  const path = `pairs ${JSON.stringify({ variant, setting, localTurn, isAlone, oneName: asked.oneName })}`
  // One pair at a time needs longer for as many calls
  yield* once([agent], path, agent.ask("pairs", { ...request, millis: isAlone ? 2 * warmUpMillis : warmUpMillis }))
  return yield* agent.ask("pairs", request)
})

export const uncontended = Effect.fnUntraced(function*(bench: Bench, inFlight: number) {
  const { isQuick } = bench.pace
  const { millis, repetitions, repetitionsOfPeers } = brief(bench.pace)
  const entrants = [...bench.everybody, withLock, ...(isQuick ? [] : rawVariants)]
  const measure = (entrant: Entrant) => warmPairs(bench, entrant, { inFlight, millis, oneName: false })
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
    (entrant) => warmPairs(bench, entrant, { inFlight: 1, millis, oneName: false })
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
