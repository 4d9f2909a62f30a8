/** The clock for the timestamps of demo events. */
import { Clock, Effect } from "effect"

/** Monotonic time in milliseconds. All processes on a machine share this clock. */
export const now: Effect.Effect<number> = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)
