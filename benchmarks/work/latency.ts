/** Measures acquire and release of uncontended mutexes over a slower link: a proxy adds latency to each round trip. */
import { Effect } from "effect"
import { type Bench, brief, raw, variantOf } from "../lib/bench.ts"
import type { Axis } from "../lib/chart.ts"
import * as Proxy from "../lib/proxy.ts"
import { curves } from "./growth.ts"
import { warmPairs } from "./uncontended.ts"

const added = [0.2, 1, 10]
const x: Axis = { label: "ms added to a round trip", isLogarithmic: true }

const unawaited = variantOf(raw, "raw, reply to the release not awaited", { variant: "unawaited" })

export const latency = Effect.fnUntraced(function*(bench: Bench) {
  const proxies = new Map<number, Proxy.Proxy>()
  for (const millis of added) proxies.set(millis, yield* Proxy.start(bench.server.port, millis))
  yield* Effect.addFinalizer(() => bench.disconnectAll)
  return [
    yield* curves(
      bench,
      {
        id: "pairs-by-latency-1",
        title: "Acquire + release of uncontended mutexes, 1 in flight",
        x,
        y: { label: "pairs/s", isLogarithmic: true }
      },
      added,
      () => [...bench.closest, unawaited],
      Effect.fnUntraced(function*(entrant, latency) {
        const { url } = proxies.get(latency)!
        const asked = { inFlight: 1, millis: brief(bench.pace).millis + 20 * latency, oneName: false }
        const { millis, pairs } = yield* warmPairs(bench, entrant, asked, { url })
        return { "": 1000 * pairs / millis }
      })
    )
  ]
})
