/** The same over connections that are not loopback: a proxy adds to each round trip. */
import { Effect, type Scope } from "effect"
import { type Bench, brief, raw, variantOf } from "../lib/bench.ts"
import type { Axis, Chart } from "../lib/chart.ts"
import * as Proxy from "../lib/proxy.ts"
import { curves } from "./growth.ts"

const added = [0.2, 1, 10]
const x: Axis = { label: "ms added to a round trip", isLogarithmic: true }

const coalesced = variantOf(raw, "raw, commands of a tick in one script", { variant: "coalesced" })
const unawaited = variantOf(raw, "raw, reply of the release not awaited", { variant: "unawaited" })

export const latency = Effect.fnUntraced(function*(bench: Bench) {
  const proxies = new Map<number, Proxy.Proxy>()
  for (const millis of added) proxies.set(millis, yield* Proxy.start(bench.server.port, millis))
  yield* Effect.addFinalizer(() => bench.disconnectAll)
  const entrants = bench.closest

  const pairs = (inFlight: number) =>
    curves(
      bench,
      {
        id: `pairs-by-latency-${inFlight}`,
        title: `Acquire + release of free mutexes, ${inFlight} in flight`,
        x,
        y: { label: "pairs/s", isLogarithmic: true }
      },
      added,
      () => [...entrants, unawaited, coalesced],
      Effect.fnUntraced(function*(entrant, latency) {
        const agent = yield* bench.agent(entrant, { url: proxies.get(latency)!.url })
        const request = {
          inFlight,
          millis: brief(bench.pace).millis + 20 * latency,
          variant: entrant.variant,
          oneName: false
        }
        const { millis, pairs } = yield* agent.ask("pairs", request)
        return { "": 1000 * pairs / millis }
      })
    )
  return yield* Effect.forEach(
    [pairs(1), pairs(64)],
    (chart) => Effect.scoped<Chart, unknown, Scope.Scope>(chart)
  )
})
