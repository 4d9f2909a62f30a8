/** Work that was told to stop and has not stopped when somebody else may have begun. */
import * as Effect from "effect/Effect"
import type { Overrun } from "../../MutexConfig.ts"
import * as MutexMetrics from "../../MutexMetrics.ts"
import type { LeaseLost } from "../../SimbaError.ts"
import { annotations, type HeldLease } from "../mutex/heldLease.ts"
import type { Instant } from "./deadline.ts"
import type { Recorder } from "./metricsRecorder.ts"

export interface OverrunMonitor {
  /** Watches a lease that was just lost; answers the instant, on the monotonic clock, at which to sweep. */
  readonly watch: (holding: HeldLease, loss: LeaseLost, now: Instant) => number
  /** Acts on what is overdue; answers in how many milliseconds to come again. */
  readonly sweep: (now: Instant) => number
}

interface Watched {
  readonly holding: HeldLease
  readonly loss: LeaseLost
  readonly at: number
}

const log: Overrun = (loss) =>
  Effect.logError(
    `Work under lease ${loss.token} of mutex "${loss.mutex}" was interrupted and is still running, although somebody ` +
      "else may own the mutex now. It is uninterruptible, or its finalizers take long: see MutexConfig, onOverrun"
  )

export const make = (options: {
  readonly onOverrun: Overrun | undefined
  readonly recorder: Recorder
  readonly run: (effect: Effect.Effect<void>) => unknown
}): OverrunMonitor => {
  const { onOverrun = log, recorder, run } = options
  const watched = new Set<Watched>()

  const act = ({ holding, loss }: Watched) => {
    recorder.update(MutexMetrics.overruns, 1, holding.mutex)
    run(
      Effect.suspend(() => onOverrun(loss)).pipe(
        Effect.catchCause((cause) => Effect.logError("onOverrun failed", cause)),
        Effect.annotateLogs(annotations(holding))
      )
    )
  }

  return {
    watch: (holding, loss, now) => {
      const ranOut = loss.reason === "Expired" || loss.reason === "BackendGone"
      // What was interrupted this moment has the margin to come to its end, even if the loss was noticed late
      const grace = Math.max(holding.margin, ranOut ? holding.serverLeft(now) : 0)
      const at = now.monotonic + grace
      watched.add({ holding, loss, at })
      return at
    },
    sweep: (now) => {
      let nearest = Infinity
      for (const entry of watched) {
        const left = entry.at - now.monotonic
        if (entry.holding.hasWork() && left > 0) nearest = Math.min(nearest, left)
        else {
          watched.delete(entry)
          if (entry.holding.hasWork()) act(entry)
        }
      }
      return nearest
    }
  }
}
