/** The process in which a client runs: the test's own process, or a simulated one. */
import * as Context from "effect/Context"
import type { Timers } from "./timers.ts"

export interface Host {
  readonly timers: Timers
  readonly random: () => number
  /** Handles data from the network immediately. A paused process handles it after resuming. */
  readonly deliver: (run: () => void) => void
}

export const Host: Context.Reference<Host | undefined> = Context.Reference<Host | undefined>(
  "@effect-simba/testkit/Host",
  { defaultValue: () => undefined }
)
