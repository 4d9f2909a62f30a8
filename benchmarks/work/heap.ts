/** Measures the heap per held lease. */
import { Effect } from "effect"
import { atDefaults, type Bench, type Entrant } from "../lib/bench.ts"
import * as Row from "../lib/row.ts"
import { freshName } from "./handoff.ts"

export const heapPerLease = Effect.fnUntraced(function*(bench: Bench, entrant: Entrant, count: number) {
  // Use a fresh process: leftovers from earlier workloads would affect the figure
  const agent = yield* bench.freshAgent(entrant)
  const { bytes } = yield* agent.ask("heap", { prefix: freshName("heap"), count })
  return bytes / count / 1000
})

export const heap = Effect.fnUntraced(function*(bench: Bench) {
  const count = 10_000
  const outcomes = yield* bench.rounds(
    atDefaults(bench),
    bench.pace.isQuick ? 2 : Math.min(5, bench.pace.repetitions),
    (entrant) => heapPerLease(bench, entrant, count),
    1
  )
  const head = {
    id: `heap-per-lease-${count}`,
    title: "heap for each held lease, 10,000 held",
    unit: "kB",
    better: "less"
  } as const
  return Row.make(bench, head, outcomes, (kilobytes) => kilobytes)
})
