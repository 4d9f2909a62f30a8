/** Many fibers of one process that want one mutex, beside what Redis itself could do for them at best. */
import { Effect } from "effect"
import { type Bench, brief, type Entrant, ours, variantOf } from "../lib/bench.ts"
import * as Row from "../lib/row.ts"

const fibers = 64
const bound = 64

/** The raw limit is that of free mutexes: nothing that asks Redis for each lease can be faster. */
export const inProcessPairs = Effect.fnUntraced(function*(
  bench: Bench,
  entrant: Entrant,
  inFlight: number,
  millis: number
) {
  const agent = yield* bench.agent(entrant)
  const oneName = entrant.role !== "raw"
  const asked = { inFlight, millis, variant: entrant.variant, oneName }
  const { failures, millis: taken, pairs } = yield* agent.ask("pairs", asked)
  return { rate: 1000 * pairs / taken, failures }
})

/** Ours with leases that go from fiber to fiber. */
export const handingOver: Entrant = { ...ours, handover: bound }

export const inProcess = Effect.fnUntraced(function*(bench: Bench) {
  const [, ...rest] = bench.everybody
  const entrants = [
    handingOver,
    ...rest,
    variantOf(ours, "ours, every lease from Redis", {}),
    variantOf(handingOver, "ours, withLock", { variant: "withLock" })
  ]
  const { millis, repetitions } = brief(bench.pace)
  const outcomes = yield* bench.rounds(
    entrants,
    repetitions,
    (entrant) => inProcessPairs(bench, entrant, fibers, millis)
  )
  const details = {
    failedAttempts: Object.fromEntries(outcomes.map(({ entrant, samples }) => [
      entrant.name,
      samples.reduce((sum, { failures }) => sum + failures, 0)
    ]))
  }
  const head = {
    id: "in-process-contended",
    title: `${fibers} fibers of one process on one mutex, local hand-over up to ${bound}`,
    unit: "pairs/s",
    better: "more"
  } as const
  return Row.make(bench, head, outcomes, ({ rate }) => rate, details)
})
