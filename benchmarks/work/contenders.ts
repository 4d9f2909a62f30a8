/** What contenders cost while others lead, beside plain waiters for as many mutexes. */
import { Effect } from "effect"
import { type Bench, type Entrant, ours } from "../lib/bench.ts"
import * as Row from "../lib/row.ts"
import { median, rounded } from "../lib/statistics.ts"
import { freshName } from "./handoff.ts"

const count = 1000
const leaseMillis = 16_000
/** Until everybody has looked once after its first wait. */
const warmUpMillis = leaseMillis
/** Long enough for some rounds of renewals. */
const windowMillis = (bench: Bench) => bench.pace.isQuick ? 12_000 : 30_000

const plain: Entrant = { ...ours, name: "plain waiters", role: "raw" }

const served = (bench: Bench) =>
  Effect.map(Effect.promise(() => bench.admin.info("cpu")), (info) => {
    const seconds = [...info.matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)].map(([, value]) => Number(value))
    return 1000 * seconds.reduce((a, b) => a + b, 0)
  })

const calls = (bench: Bench) =>
  Effect.map(
    Effect.promise(() => bench.admin.info("commandstats")),
    (info) => [...info.matchAll(/^cmdstat_evalsha:calls=(\d+)/gm)].reduce((sum, [, value]) => sum + Number(value), 0)
  )

/** Milliseconds of CPU, and calls of scripts, in each second. The owner renews meanwhile, in both cases alike. */
const measure = (bench: Bench) =>
  Effect.fnUntraced(function*(entrant: Entrant) {
    const prefix = freshName("contenders")
    const owner = yield* bench.freshAgent(ours, { leaseMillis })
    yield* owner.ask("hold", { prefix, count })
    const agent = yield* bench.freshAgent(ours, { leaseMillis })
    yield* agent.ask("stand", { prefix, count, as: entrant.role === "ours" ? "contender" : "waiter" })
    yield* Effect.sleep(warmUpMillis)
    const before = { calls: yield* calls(bench), served: yield* served(bench) }
    yield* agent.ask("startMeter", { stalls: false })
    yield* Effect.sleep(windowMillis(bench))
    const { cpuMillis, millis } = yield* agent.ask("readMeter")
    const seconds = millis / 1000
    return {
      node: cpuMillis / seconds,
      server: ((yield* served(bench)) - before.served) / seconds,
      calls: ((yield* calls(bench)) - before.calls) / seconds
    }
  })

export const contenders = Effect.fnUntraced(function*(bench: Bench) {
  const outcomes = yield* bench.rounds(
    [ours, plain],
    bench.pace.isQuick ? 1 : Math.min(3, bench.pace.repetitions),
    measure(bench)
  )
  const details = Object.fromEntries(outcomes.map(({ entrant, samples }) => [entrant.name, {
    node: rounded(median(samples.map(({ node }) => node))),
    server: rounded(median(samples.map(({ server }) => server))),
    calls: rounded(median(samples.map(({ calls }) => calls)))
  }]))
  const head = {
    id: "contenders-1000-cpu-ms",
    title: "CPU time of process and server for 1,000 waiting contenders; raw: for 1,000 plain waiters of ours",
    unit: "ms per second",
    better: "less"
  } as const
  return Row.make({ ...bench, missing: [] }, head, outcomes, ({ node, server }) => node + server, details)
})
