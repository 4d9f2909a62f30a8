/** One worker, which waits, leads for a while, rests, and starts over. */
import { Mutex } from "@effect-simba/core"
import { Cause, Clock, Effect, Exit, type Layer, Logger } from "effect"
import { now } from "../shared/clock.ts"
import type { Event } from "./events.ts"
import * as plan from "./plan.ts"

export type Report = (event: Event) => void

const terms = Effect.fnUntraced(function*(worker: string, report: Report) {
  for (let term = 1; term <= plan.terms; term++) {
    report({ _tag: "Waiting", worker, term, at: yield* now })
    const lead = Mutex.withLock(plan.mutex)((lease) =>
      Effect.gen(function*() {
        report({ _tag: "Leading", worker, term, token: lease.token, at: yield* now })
        yield* Effect.sleep(plan.termMillis(worker, term))
      }).pipe(Effect.ensuring(Effect.map(now, (at) => report({ _tag: "Leaving", worker, term, at }))))
    )
    yield* Effect.catchTag(
      lead,
      "LeaseLost",
      ({ reason }) => Effect.map(now, (at) => report({ _tag: "Lost", worker, reason: reason._tag, at }))
    )
    yield* Effect.sleep(plan.rest)
  }
})

/** Turns log lines into events, because lines printed between frames would corrupt the live view. */
const loggingTo = (worker: string, report: Report) =>
  Logger.layer([
    Logger.make(({ fiber, message }) => {
      const text = Array.isArray(message) ? message.map(String).join(" ") : String(message)
      report({ _tag: "Note", worker, text, at: Number(fiber.getRef(Clock.Clock).monotonicTimeNanosUnsafe()) / 1e6 })
    })
  ])

const ending = <E>(worker: string, at: number, exit: Exit.Exit<void, E>): Event => {
  if (Exit.isSuccess(exit)) return { _tag: "Finished", worker, at }
  if (Cause.hasInterruptsOnly(exit.cause)) return { _tag: "Interrupted", worker, at }
  return { _tag: "Failed", worker, at, problem: Cause.pretty(exit.cause) }
}

/** Runs one worker to its end, with its own mutex layer, and reports how it ended. */
export const run = <E>(
  worker: string,
  mutexes: Layer.Layer<Mutex.Mutex, E>,
  report: Report
): Effect.Effect<void> =>
  terms(worker, report).pipe(
    Effect.provide(mutexes),
    Effect.onExit((exit) => Effect.map(now, (at) => report(ending(worker, at, exit)))),
    // The failure is already reported
    Effect.ignoreCause,
    Effect.provide(loggingTo(worker, report))
  )
