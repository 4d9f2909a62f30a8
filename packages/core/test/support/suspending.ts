/**
 * A clock for a machine that was suspended for `suspension.millis`: the wall clock advances, but the monotonic clock
 * and timers stand still.
 */
import { Clock, Effect } from "effect"

export const suspending = Effect.map(Clock.Clock, (base) => {
  const suspension = { millis: 0 }
  const clock: Clock.Clock = {
    ...base,
    currentTimeMillisUnsafe: () => base.currentTimeMillisUnsafe() + suspension.millis,
    currentTimeMillis: Effect.sync(() => clock.currentTimeMillisUnsafe()),
    monotonicTimeNanosUnsafe: () => base.monotonicTimeNanosUnsafe(),
    sleep: (duration) => base.sleep(duration)
  }
  return { clock, suspension }
})
