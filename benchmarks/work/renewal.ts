/** Measures the cost of renewing many leases in one process. */
import { Effect, type Scope } from "effect"
import type { Redis } from "ioredis"
import type { AgentError } from "../lib/agent.ts"
import { atDefaults, type Bench, type Entrant, ours, type Outcome, raw, startServer } from "../lib/bench.ts"
import * as Row from "../lib/row.ts"
import { median, rounded, spread } from "../lib/statistics.ts"
import { freshName } from "./handoff.ts"

const leaseMillis = 1600
const count = 10_000

interface Plan {
  /**
   * Long enough for V8 to optimize the code. effect-simba and raw renew with 20 calls a second, so their CPU time falls
   * for up to a minute; peers renew with 10,000.
   */
  readonly warmUpMillis: number
  readonly windows: number
  readonly windowMillis: number
}

const planOf = (bench: Bench, { role }: Entrant): Plan =>
  role === "peer"
    ? { warmUpMillis: 4000, windows: bench.pace.isQuick ? 2 : 5, windowMillis: 1200 }
    : { warmUpMillis: 60_000, windows: bench.pace.isQuick ? 5 : 7, windowMillis: 3000 }

interface Renewed {
  readonly passes: number
  readonly cpuMillis: number
  readonly stallMillis: number
}

/**
 * The commands that renew a key. A script calls one for each key, and nothing else sends `SET` or `PEXPIRE` during the
 * measurement.
 */
const renewing = /^cmdstat_(?:pexpire|set):calls=(\d+)/gm

const renewals = (admin: Redis) =>
  Effect.map(
    Effect.promise(() => admin.info("commandstats")),
    (info) => [...info.matchAll(renewing)].reduce((sum, [, calls]) => sum + Number(calls), 0)
  )

/**
 * Measures Node's CPU time for renewing each lease once: the CPU time of a window, divided by how often all leases are
 * renewed in it. The longest stall is measured in a separate window. The repetitions are windows of one long run.
 */
const renew = Effect.fnUntraced(function*(
  bench: Bench,
  entrant: Entrant,
  { admin, server }: Effect.Success<typeof startServer>
): Effect.fn.Return<ReadonlyArray<Renewed>, AgentError, Scope.Scope> {
  const { warmUpMillis, windowMillis, windows } = planOf(bench, entrant)
  const agent = yield* bench.freshAgent(entrant, { leaseMillis, url: server.url })
  const spend = Effect.fnUntraced(function*(millis: number, stalls: boolean) {
    yield* agent.ask("startMeter", { stalls })
    yield* Effect.sleep(millis)
    return yield* agent.ask("readMeter")
  })
  yield* agent.ask("hold", { prefix: freshName("renewal"), count })
  yield* Effect.sleep(warmUpMillis)
  // Collect the garbage from the acquires, because it is not part of the cost of renewals
  yield* agent.ask("collectGarbage")
  const { stallMillis } = yield* spend(2 * windowMillis, true)
  return yield* Effect.forEach(
    Array.from({ length: windows }),
    Effect.fnUntraced(function*() {
      const before = yield* renewals(admin)
      const { cpuMillis } = yield* spend(windowMillis, false)
      const passes = ((yield* renewals(admin)) - before) / count
      return { passes, cpuMillis: cpuMillis / passes, stallMillis }
    })
  )
})

/**
 * Measures effect-simba and raw at the same time, each on its own server, so that other load on the machine affects
 * both.
 */
const sideBySide = Effect.fnUntraced(function*(bench: Bench) {
  const samples = yield* Effect.forEach([ours, raw], (entrant, index) =>
    Effect.gen(function*() {
      // Start them half a period apart, so that they do not renew at the same time
      yield* Effect.sleep(index * 500)
      return yield* renew(bench, entrant, yield* startServer)
    }), { concurrency: 2 })
  return [ours, raw].map((entrant, index): Outcome<Renewed> => ({
    entrant,
    samples: samples[index]!,
    failure: undefined
  }))
}, Effect.scoped)

export const renewal = Effect.fnUntraced(function*(bench: Bench) {
  // Use the peers' default settings, because the faster settings change only how they wait
  const peers = atDefaults(bench).filter(({ role }) => role === "peer")
  const outcomes = [
    ...yield* sideBySide(bench),
    ...(yield* bench.rounds(peers, 1, (entrant) => renew(bench, entrant, bench))).map((outcome) => ({
      ...outcome,
      samples: outcome.samples.flat()
    }))
  ]
  const stall = (samples: ReadonlyArray<Renewed>) => spread(samples.map(({ stallMillis }) => stallMillis))[1]
  const details = Object.fromEntries(outcomes.map(({ entrant, samples }) => [entrant.name, {
    longestStallMillis: rounded(stall(samples)),
    passes: rounded(median(samples.map(({ passes }) => passes)))
  }]))
  const head = {
    id: `renewal-${count}-cpu-ms`,
    title: "renewing 10,000 held leases once, CPU of the process",
    unit: "ms",
    better: "less"
  } as const
  return Row.make(bench, head, outcomes, ({ cpuMillis }) => cpuMillis, details, Row.overMeasured, [
    Row.column("longest stall, ms", outcomes, stall)
  ])
})
