/**
 * Measures contention for one mutex between many fibers in one process, compared with handing over each lease through
 * Redis.
 */
import { Effect } from "effect"
import { type Bench, brief, type Entrant, ours, raw, variantOf } from "../lib/bench.ts"
import * as Row from "../lib/row.ts"
import { cpu, warmPairs } from "./uncontended.ts"

const fibers = 64

/**
 * Measures acquire-release pairs on one mutex. The `free` variant uses many mutexes, to show how fast Redis is without
 * waiters.
 */
export const inProcessPairs = (bench: Bench, entrant: Entrant, inFlight: number, millis: number) =>
  warmPairs(bench, entrant, { inFlight, millis, oneName: entrant !== free })

/** effect-simba with default options: during a turn, fibers pass the lease on to one another. */
export const handingOver: Entrant = ours

/**
 * Every lease comes from Redis: each release grants the mutex to the next waiter in the queue and publishes a message.
 */
export const queueing: Entrant = { ...raw, variant: "queued" }

const free = variantOf(raw, `raw, ${fibers} uncontended mutexes`, {})

export const inProcess = Effect.fnUntraced(function*(bench: Bench) {
  const entrants = [
    handingOver,
    queueing,
    ...bench.closest.filter(({ role }) => role === "peer"),
    free,
    variantOf(ours, "ours, every lease from Redis", { localTurn: 0 }),
    variantOf(handingOver, "ours, withLock", { variant: "withLock" })
  ]
  const { millis, repetitions, repetitionsOfPeers } = brief(bench.pace)
  const outcomes = yield* bench.rounds(
    entrants,
    repetitions,
    (entrant) => inProcessPairs(bench, entrant, fibers, millis),
    repetitionsOfPeers
  )
  const details = {
    failedAttempts: Object.fromEntries(outcomes.map(({ entrant, samples }) => [
      entrant.name,
      samples.reduce((sum, { failures }) => sum + failures, 0)
    ]))
  }
  const head = {
    id: "in-process-contended",
    title: `${fibers} fibers of one process on one mutex`,
    unit: "pairs/s",
    better: "more"
  } as const
  return Row.make(bench, head, outcomes, ({ millis, pairs }) => 1000 * pairs / millis, details, Row.overMeasured, [
    cpu(outcomes)
  ])
})
