/** Measures the cost of contenders while another process leads, compared with plain waiters for as many mutexes. */
import { Effect } from "effect"
import { type Bench, type Entrant, ours, type Outcome, startServer } from "../lib/bench.ts"
import * as Row from "../lib/row.ts"
import { median, rounded } from "../lib/statistics.ts"
import { freshName } from "./handoff.ts"

const count = 1000
const leaseMillis = 16_000
/** After this time, each contender has polled once. */
const warmUpMillis = leaseMillis
/** The owner renews each lease once within this time. */
const windowMillis = 10_000

const plain: Entrant = { ...ours, name: "plain waiters", role: "raw" }

/**
 * Measures CPU milliseconds and script calls per second. The server's CPU time and the script calls include the owner's
 * renewals.
 */
const measure = (bench: Bench) =>
  Effect.fnUntraced(function*(entrant: Entrant) {
    const { admin, server: { url } } = yield* startServer
    const sumOf = (section: string, figure: RegExp) =>
      Effect.map(
        Effect.promise(() => admin.info(section)),
        (info) => [...info.matchAll(figure)].reduce((sum, [, value]) => sum + Number(value), 0)
      )
    const served = sumOf("cpu", /^used_cpu_(?:sys|user):([\d.]+)/gm)
    const calls = sumOf("commandstats", /^cmdstat_evalsha:calls=(\d+)/gm)
    const prefix = freshName("contenders")
    const owner = yield* bench.freshAgent(ours, { leaseMillis, url })
    yield* owner.ask("hold", { prefix, count })
    const agent = yield* bench.freshAgent(ours, { leaseMillis, url })
    yield* agent.ask("stand", { prefix, count, as: entrant.role === "ours" ? "contender" : "waiter" })
    yield* Effect.sleep(warmUpMillis)
    return yield* Effect.forEach(
      Array.from({ length: bench.pace.isQuick ? 2 : 5 }),
      Effect.fnUntraced(function*() {
        const before = { calls: yield* calls, served: yield* served }
        yield* agent.ask("startMeter", { stalls: false })
        yield* Effect.sleep(windowMillis)
        const { cpuMillis, millis } = yield* agent.ask("readMeter")
        const seconds = millis / 1000
        return {
          node: cpuMillis / seconds,
          server: 1000 * ((yield* served) - before.served) / seconds,
          calls: ((yield* calls) - before.calls) / seconds
        }
      })
    )
  }, Effect.scoped)

/** Measures both entrants at the same time, each on its own server. The repetitions are windows of one long wait. */
export const contenders = Effect.fnUntraced(function*(bench: Bench) {
  const entrants = [ours, plain]
  const samples = yield* Effect.forEach(entrants, measure(bench), { concurrency: 2 })
  const outcomes = entrants.map((entrant, index): Outcome<typeof samples[number][number]> => ({
    entrant,
    samples: samples[index]!,
    failure: undefined
  }))
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
