/** Where a client runs. The default is the caller's own process; a simulation puts a simulated one in its place. */
import * as Context from "effect/Context"
import type { Timers } from "./timers.ts"

export interface Host {
  readonly timers: Timers
  readonly random: () => number
  /** Runs what came over the network: now, or when a paused process goes on. */
  readonly deliver: (run: () => void) => void
}

export const Host: Context.Reference<Host | undefined> = Context.Reference<Host | undefined>(
  "@effect-simba/testkit/Host",
  { defaultValue: () => undefined }
)
