/** Renders a nemesis run: its history as a picture and as text, and its faults as a table. */
import { Simulation } from "@effect-simba/testkit"
import type { Judgement } from "./judge.ts"
import type { Outcome } from "./run.ts"

/** For mutexes and for data streams: an SVG of the owners over time, and the whole history as text. */
export const reports = (
  judgements: ReadonlyArray<Judgement>,
  title: string
): ReadonlyArray<readonly [file: string, text: string]> =>
  judgements.flatMap(({ events, violations }, index) => {
    const result: Simulation.Result = {
      seed: title,
      clients: 0,
      duration: 0,
      enabled: [],
      violations,
      events,
      commands: 0,
      virtualMillis: events.at(-1)?.at ?? 0
    }
    const part = ["mutexes", "streams"][index]!
    return [
      [`${part}.svg`, Simulation.report(result, { format: "svg" })],
      [`${part}.txt`, Simulation.report(result, { format: "trace" })]
    ]
  })

/**
 * Renders a table of the faults. For each kind, it shows the longest time from a fault's end to the next mutex grant,
 * and to the next processed message.
 */
export const table = ({ faults, lines }: Outcome): string => {
  const after = (kind: string, at: number) => lines.find(([when, , , what]) => what === kind && when >= at)?.[0]
  const rows = new Map<string, { count: number; grant: number; message: number }>()
  for (const { kind, to } of faults) {
    const row = rows.get(kind) ?? { count: 0, grant: 0, message: 0 }
    row.count += 1
    row.grant = Math.max(row.grant, (after("granted", to) ?? to) - to)
    row.message = Math.max(row.message, (after("processed", to) ?? to) - to)
    rows.set(kind, row)
  }
  const cells = [...rows].sort(([a], [b]) => a.localeCompare(b)).map((
    [kind, { count, grant, message }]
  ) => [kind, String(count), `${(grant / 1000).toFixed(2)} s`, `${(message / 1000).toFixed(2)} s`])
  return [["fault", "count", "next grant", "next message"], ...cells]
    .map(([kind, ...rest]) => [kind!.padEnd(24), ...rest.map((cell) => cell.padStart(14))].join(""))
    .join("\n")
}
