/** What it costs a process to keep many leases alive. */
import { Effect } from "effect"
import type { Bench, Entrant } from "../lib/bench.ts"
import * as Row from "../lib/row.ts"
import { median, rounded, spread } from "../lib/statistics.ts"
import { freshName } from "./handoff.ts"

const leaseMillis = 1600
const windowMillis = 3000

/** Whatever renews a key: its script calls one of these for each. `SET` and `PEXPIRE` of nobody else fall in between. */
const renewing = /^cmdstat_(?:pexpire|set):calls=(\d+)/gm

const renewals = (bench: Bench) =>
  Effect.map(
    Effect.promise(() => bench.admin.info("commandstats")),
    (info) => [...info.matchAll(renewing)].reduce((sum, [, calls]) => sum + Number(calls), 0)
  )

/** Node's CPU time for renewing each of `count` leases once, from all that were renewed within a window. */
export const renew = Effect.fnUntraced(function*(bench: Bench, entrant: Entrant, count: number) {
  const agent = yield* bench.agent(entrant, { leaseMillis })
  yield* agent.ask("startMeter")
  yield* Effect.sleep(500)
  const idle = yield* agent.ask("readMeter")
  yield* agent.ask("hold", { prefix: freshName("renewal"), count })
  yield* Effect.sleep(leaseMillis)
  const before = yield* renewals(bench)
  yield* agent.ask("startMeter")
  yield* Effect.sleep(windowMillis)
  const spent = yield* agent.ask("readMeter")
  const passes = ((yield* renewals(bench)) - before) / count
  yield* agent.ask("letGo")
  const idleMillis = idle.cpuMillis * spent.millis / idle.millis
  return { passes, cpuMillis: (spent.cpuMillis - idleMillis) / passes, stallMillis: spent.stallMillis }
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
