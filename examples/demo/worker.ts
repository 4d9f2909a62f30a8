/** What a worker does, wherever it runs: wants to lead, leads for a moment, rests, and wants to lead again. */
import { Mutex } from "@effect-simba/core"
import { Clock, Effect, type Layer, Logger } from "effect"
import { type Event, now } from "./events.ts"
import * as plan from "./plan.ts"

export type Report = (event: Event) => void

const terms = Effect.fnUntraced(function*(worker: string, report: Report) {
  for (let term = 1; term <= plan.terms; term++) {
    report({ _tag: "Waiting", worker, term, at: yield* now })
    const lead = Mutex.withLock(plan.mutex)((lease) =>
      Effect.gen(function*() {
        report({ _tag: "Leading", worker, term, token: lease.token, at: yield* now })
        yield* Effect.sleep(plan.termMillis(worker, term))
        report({ _tag: "Leaving", worker, term, at: yield* now })
      })
    )
    yield* Effect.catchTag(
      lead,
      "LeaseLost",
      ({ reason }) => Effect.map(now, (at) => report({ _tag: "Lost", worker, reason, at }))
    )
    yield* Effect.sleep(plan.rest)
  }
})

/** Warnings go where the other reports go: a live view can do without lines in between. */
const loggingTo = (worker: string, report: Report) =>
  Logger.layer([
    Logger.make(({ fiber, message }) => {
      const text = Array.isArray(message) ? message.map(String).join(" ") : String(message)
      report({ _tag: "Note", worker, text, at: Number(fiber.getRef(Clock.Clock).monotonicTimeNanosUnsafe()) / 1e6 })
    })
  ])

/** One worker from beginning to end, with mutexes of its own. Reports how it ended, too. */
export const run = <E extends Error>(
  worker: string,
  mutexes: Layer.Layer<Mutex.Mutex, E>,
  report: Report
): Effect.Effect<void> =>
  terms(worker, report).pipe(
    Effect.provide(mutexes),
    Effect.andThen(Effect.map(now, (at) => report({ _tag: "Finished", worker, at }))),
    Effect.catch((error) => Effect.map(now, (at) => report({ _tag: "Failed", worker, problem: error.message, at }))),
    Effect.onInterrupt(() => Effect.map(now, (at) => report({ _tag: "Interrupted", worker, at }))),
    Effect.provide(loggingTo(worker, report))
  )
