/** The clock of the events. */
import { Clock, Effect } from "effect"

/** Monotonic milliseconds. All processes of a machine share this clock. */
export const now: Effect.Effect<number> = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)
