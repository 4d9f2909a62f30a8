/** The process in which a client runs: that of the test, or a simulated one. */
import * as Context from "effect/Context"
import type { Timers } from "./timers.ts"

export interface Host {
  readonly timers: Timers
  readonly random: () => number
  /** Handles data from the network immediately or, in a paused process, when it resumes. */
  readonly deliver: (run: () => void) => void
}

export const Host: Context.Reference<Host | undefined> = Context.Reference<Host | undefined>(
  "@effect-simba/testkit/Host",
  { defaultValue: () => undefined }
)
