/** What it costs a process to keep many leases alive. */
import { Effect } from "effect"
import type { Bench, Entrant } from "../lib/bench.ts"
import * as Row from "../lib/row.ts"
import { median, rounded, spread } from "../lib/statistics.ts"
import { freshName } from "./handoff.ts"

const leaseMillis = 1600
/** So long that code which runs once a second is compiled; a process that renews lives longer than that. */
const warmUpMillis = (bench: Bench) => bench.pace.isQuick ? 5000 : 12_000
const windowMillis = (bench: Bench) => bench.pace.isQuick ? 2500 : 4000
const idleMillis = 1000

/** Whatever renews a key: its script calls one of these for each. `SET` and `PEXPIRE` of nobody else fall in between. */
const renewing = /^cmdstat_(?:pexpire|set):calls=(\d+)/gm

const renewals = (bench: Bench) =>
  Effect.map(
    Effect.promise(() => bench.admin.info("commandstats")),
    (info) => [...info.matchAll(renewing)].reduce((sum, [, calls]) => sum + Number(calls), 0)
  )

/**
 * Node's CPU time for renewing each of `count` leases once, from all that were renewed within a window, and the longest
 * stall within another one. What the process takes when it is idle, before and after, does not count.
 */
export const renew = Effect.fnUntraced(function*(bench: Bench, entrant: Entrant, count: number) {
  const agent = yield* bench.agent(entrant, { leaseMillis })
  const spend = Effect.fnUntraced(function*(millis: number, stalls = false) {
    yield* agent.ask("startMeter", { stalls })
    yield* Effect.sleep(millis)
    return yield* agent.ask("readMeter")
  })
  const before = yield* spend(idleMillis)
  yield* agent.ask("hold", { prefix: freshName("renewal"), count })
  yield* Effect.sleep(warmUpMillis(bench))
  // What taking so many left behind is no matter of keeping them
  yield* agent.ask("collectGarbage")
  const renewed = yield* renewals(bench)
  const spent = yield* spend(windowMillis(bench))
  const passes = ((yield* renewals(bench)) - renewed) / count
  const { stallMillis } = yield* spend(windowMillis(bench), true)
  yield* agent.ask("letGo")
  yield* Effect.sleep(idleMillis)
  const after = yield* spend(idleMillis)
  const idle = spent.millis * (before.cpuMillis + after.cpuMillis) / (before.millis + after.millis)
  return { passes, cpuMillis: (spent.cpuMillis - idle) / passes, stallMillis }
})

export const renewal = Effect.fnUntraced(function*(bench: Bench) {
  const count = 10_000
  // The fastest setting of a peer is about waiting, not about renewal
  const entrants = bench.everybody.filter(({ setting }) => setting === "default")
  const outcomes = yield* bench.rounds(
    entrants,
    bench.pace.isQuick ? 1 : Math.min(5, bench.pace.repetitions),
    (entrant) => renew(bench, entrant, count),
    1
  )
  const details = Object.fromEntries(outcomes.map(({ entrant, samples }) => [entrant.name, {
    longestStallMillis: rounded(spread(samples.map(({ stallMillis }) => stallMillis))[1]),
    passes: rounded(median(samples.map(({ passes }) => passes)))
  }]))
  const head = {
    id: `renewal-${count}-cpu-ms`,
    title: "renewing 10,000 held leases once, CPU of the process",
    unit: "ms",
    better: "less"
  } as const
  return Row.make(bench, head, outcomes, ({ cpuMillis }) => cpuMillis, details)
})
