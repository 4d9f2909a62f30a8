/**
 * Reports interrupted work that is still running when a successor may have started. Called by `heldLeases` for each
 * loss.
 */
import * as Effect from "effect/Effect"
import * as MutexMetrics from "../../MutexMetrics.ts"
import type { LeaseLost } from "../../SimbaError.ts"
import type { Instant } from "../lease/instant.ts"
import type { Recorder } from "../lease/metricsRecorder.ts"
import type { TimerQueue } from "../lease/timerQueue.ts"
import * as log from "../log.ts"
import type { HeldLease } from "./heldLease.ts"

const report = (loss: LeaseLost) =>
  log.error(
    `Work under lease ${loss.token} of mutex "${loss.resource}" was interrupted and is still running, although somebody ` +
      "else may own the mutex now. It is uninterruptible, or its finalizers are slow: see onOverrun in Mutex.Options"
  )

export type OnOverrun = ((loss: LeaseLost) => Effect.Effect<void, never, unknown>) | undefined

/** Returns a function that watches a lost lease's work. */
export const make = Effect.fnUntraced(function*(
  onOverrun: OnOverrun = report,
  recorder: Recorder,
  timers: TimerQueue
) {
  const services = yield* Effect.context<never>()
  return (lease: HeldLease, loss: LeaseLost, now: Instant): void => {
    if (!lease.hasWork) return
    const ranOut = loss.reason._tag === "Expired" || loss.reason._tag === "BackendGone"
    // Interrupted work gets at least one safety margin to end, even if the loss was noticed late
    const grace = Math.max(lease.options.margin, ranOut ? lease.serverLeft(now) : 0)
    timers.at(now.monotonic + grace, () => {
      if (timers.isClosed() || !lease.hasWork) return
      recorder.update(MutexMetrics.mutex.overruns, 1, lease.mutex)
      recorder.run(
        // The types of all layers require the services of `onOverrun`
        Effect.suspend(() => onOverrun(loss) as Effect.Effect<void>).pipe(
          Effect.catchCause((cause) => log.error("onOverrun failed", cause)),
          Effect.annotateLogs(lease.annotations),
          Effect.provideContext(services)
        )
      )
    })
  }
})
