/** How many commands all clients send for each hand-off, those of the contender that queues again included. */
import { Effect } from "effect"
import type { Bench, Entrant, Outcome } from "../lib/bench.ts"
import * as Proxy from "../lib/proxy.ts"
import * as Row from "../lib/row.ts"
import { rounded } from "../lib/statistics.ts"
import { contendFor, freshName } from "./handoff.ts"

interface Counted {
  readonly handOffs: number
  readonly traffic: Proxy.Traffic
  /** Calls of scripts as the server counts them: they cannot come from within scripts. */
  readonly scriptsServed: number
}

/**
 * Whoever of ours comes while a grant is not confirmed looks once more, up to twice the confirm period of 1.5 s later.
 * Where hundreds come at once, that is part of their coming and not of the hand-offs.
 */
const calmMillis = (contenders: number) => contenders > 100 ? 3000 : 0

const scriptCalls = (info: string) =>
  [...info.matchAll(/^cmdstat_(?:evalsha|eval):calls=(\d+)/gm)].reduce((sum, [, calls]) => sum + Number(calls), 0)

export const countCommands = Effect.fnUntraced(function*(
  bench: Bench,
  entrant: Entrant,
  proxy: Proxy.Proxy,
  contenders: number
) {
  const agent = yield* bench.agent(entrant, { url: proxy.url })
  const served = Effect.promise(() => bench.admin.info("commandstats")).pipe(Effect.map(scriptCalls))
  let traffic: Proxy.Traffic = { commands: 0, byName: {}, log: [] }
  let scriptsServed = 0
  const { kept, millis } = yield* contendFor(
    [agent],
    { contenders, millis: bench.pace.millis, name: freshName("commands"), calmMillis: calmMillis(contenders) },
    (wait) =>
      Effect.gen(function*() {
        const before = yield* served
        yield* proxy.take()
        yield* wait
        traffic = yield* proxy.take()
        scriptsServed = (yield* served) - before
      })
  )
  return { handOffs: millis.length + kept, traffic, scriptsServed } satisfies Counted as Counted
})

export const perHandOff = ({ handOffs, traffic }: Counted): number => traffic.commands / handOffs

const details = (outcomes: ReadonlyArray<Outcome<Counted>>) =>
  Object.fromEntries(outcomes.map(({ entrant, samples }) => {
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

export const commands = Effect.fnUntraced(function*(bench: Bench, contenders: number) {
  const proxy = yield* Proxy.start(bench.server.port, 0)
  yield* Effect.addFinalizer(() => bench.disconnectAll)
  const outcomes = yield* bench.rounds(
    bench.everybody,
    Math.min(3, bench.pace.repetitions),
    (entrant) => countCommands(bench, entrant, proxy, contenders)
  )
  const head = {
    id: `commands-per-handoff-${contenders}`,
    title: `commands sent for each hand-off, ${contenders} contenders`,
    unit: "commands",
    better: "less"
  } as const
  return Row.make(bench, head, outcomes, perHandOff, details(outcomes))
})
