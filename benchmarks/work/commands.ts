/** Counts the commands and bytes per hand-off between all clients and the server, including repeated queueing. */
import { Effect } from "effect"
import { atDefaults, type Bench, type Entrant } from "../lib/bench.ts"
import * as Proxy from "../lib/proxy.ts"
import * as Row from "../lib/row.ts"
import { rounded } from "../lib/statistics.ts"
import { contention, crowd, crowded, freshName, holdMillis } from "./handoff.ts"

interface Counted {
  readonly handOffs: number
  readonly traffic: Proxy.Traffic
  /** The server's count of script calls. */
  readonly scriptsServed: number
}

const windows = 5

/**
 * How long to wait before counting. An effect-simba contender that queues while a grant is unconfirmed polls once more,
 * up to two confirm periods of 1.5 s later. When hundreds queue at the same time, these polls must not count towards
 * the hand-offs.
 */
const calmMillis = (contenders: number) => contenders > 100 ? 3000 : 0

const scriptCalls = (info: string) =>
  [...info.matchAll(/^cmdstat_(?:evalsha|eval):calls=(\d+)/gm)].reduce((sum, [, calls]) => sum + Number(calls), 0)

const each = (of: (counted: Counted) => number) => (counted: Counted) =>
  counted.handOffs === 0 ? Number.NaN : of(counted) / counted.handOffs

/**
 * Selects the entrants. All peers take part with 100 contenders, but with a thousand, peers that open a connection for
 * each waiter would overload the machine.
 */
const entrantsFor = (bench: Bench, contenders: number) =>
  contenders === 100
    ? [
      ...bench.everybody.filter(({ setting }) => setting === "default"),
      ...bench.closest.filter(({ setting }) => setting === "fast")
    ]
    : atDefaults(bench)

/** Counts vary less than times, so the repetitions are windows of one long run. */
const count = Effect.fnUntraced(function*(bench: Bench, entrant: Entrant, proxy: Proxy.Proxy, contenders: number) {
  const served = Effect.promise(() => bench.admin.info("commandstats")).pipe(Effect.map(scriptCalls))
  const contended = { contenders, holdMillis, name: freshName("commands"), calmMillis: calmMillis(contenders) }
  const connect = { url: proxy.url }
  const watch = contenders >= crowd
    ? yield* crowded(bench, entrant, connect, contended)
    : yield* contention([yield* bench.agent(entrant, connect)], contended)
  const counted: Array<Counted> = []
  for (let i = 0; i < windows; i++) {
    const before = yield* served
    let traffic: Proxy.Traffic | undefined
    const { held } = yield* watch(bench.pace.millis, (wait) =>
      Effect.gen(function*() {
        yield* proxy.take()
        yield* wait
        traffic = yield* proxy.take()
      }))
    counted.push({ handOffs: held, traffic: traffic!, scriptsServed: (yield* served) - before })
  }
  return counted
})

export const commands = (contenders: number) =>
  Effect.fnUntraced(function*(bench: Bench) {
    const proxy = yield* Proxy.start(bench.server.port, 0)
    yield* Effect.addFinalizer(() => bench.disconnectAll)
    const entrants = entrantsFor(bench, contenders)
    const counted = yield* bench.rounds(entrants, 1, (entrant) => count(bench, entrant, proxy, contenders))
    const outcomes = counted.map((outcome) => ({ ...outcome, samples: outcome.samples.flat() }))
    const details = Object.fromEntries(outcomes.map(({ entrant, samples }) => {
      const last = samples.at(-1)
      return [
        entrant.name,
        last === undefined ? undefined : {
          byName: Object.fromEntries(
            Object.entries(last.traffic.byName).map(([name, calls]) => [name, rounded(calls / last.handOffs)])
          ),
          scriptsPerHandOffByTheServersCount: rounded(last.scriptsServed / last.handOffs)
        }
      ]
    }))
    const head = {
      id: `commands-per-handoff-${contenders}`,
      title: `commands and bytes for each hand-off, ${contenders} contenders`,
      unit: "commands",
      better: "less"
    } as const
    return Row.make(bench, head, outcomes, each(({ traffic }) => traffic.commands), details, Row.overMeasured, [
      Row.column("bytes", outcomes, (samples) => Row.overMeasured(samples.map(each(({ traffic }) => traffic.bytes))))
    ])
  })
