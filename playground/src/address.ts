/**
 * Reads and writes the URL's fragment. `#scenario=crash&seed=7&acts=...` plays a scenario, and
 * `#plan=mutex&seed=17` opens a simulator seed.
 */
import { type Act, format, parse } from "./world/acts.ts"

export interface Address {
  readonly scenario: string | undefined
  readonly seed: string
  readonly acts: ReadonlyArray<Act>
  /** A simulator plan. */
  readonly plan: string | undefined
  /** The initial number of processes, if it differs from the scenario's or the plan's default. */
  readonly clients: number | undefined
  /** The options for a failing history that the simulator has shrunk. */
  readonly duration: number | undefined
  readonly enabled: ReadonlyArray<string> | undefined
  /** Whether to show only the picture, for embedding in another page. */
  readonly isEmbedded: boolean
}

const number = (text: string | null) => text === null || !/^\d+(?:\.\d+)?$/.test(text) ? undefined : Number(text)

export const read = (hash: string): Address => {
  const query = new URLSearchParams(hash.replace(/^#/, ""))
  const enabled = query.get("enabled")
  return {
    scenario: query.get("scenario") ?? undefined,
    seed: query.get("seed") ?? "1",
    acts: parse(query.get("acts") ?? ""),
    plan: query.get("plan") ?? undefined,
    clients: number(query.get("clients")),
    duration: number(query.get("duration")),
    enabled: enabled === null ? undefined : enabled.split(",").filter((name) => name !== ""),
    isEmbedded: query.has("embed")
  }
}

export const ofScenario = (
  scenario: string,
  seed: string,
  acts: ReadonlyArray<Act>,
  clients?: number
): string => {
  const query = new URLSearchParams({ scenario, seed })
  if (clients !== undefined) query.set("clients", String(clients))
  if (acts.length > 0) query.set("acts", format(acts))
  return `#${query}`
}
