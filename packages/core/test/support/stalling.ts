/** A clock for a stalled event loop: `stall` advances the time without firing timers. */
import { Clock, Effect } from "effect"

export const stalling = Effect.map(Clock.Clock, (base) => {
  const stall = { millis: 0 }
  const clock: Clock.Clock = {
    ...base,
    currentTimeMillisUnsafe: () => base.currentTimeMillisUnsafe() + stall.millis,
    monotonicTimeNanosUnsafe: () => base.monotonicTimeNanosUnsafe() + BigInt(stall.millis) * 1_000_000n,
    sleep: (duration) => base.sleep(duration)
  }
  return { clock, stall }
})
