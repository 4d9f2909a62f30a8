/** Directs the demo: follows the workers' events, kills one worker and interrupts another, as planned. */
import { Duration, Effect, Queue, Schema } from "effect"
import { now } from "../shared/clock.ts"
import { type Event, isEnding } from "./events.ts"
import type { Fleet } from "./fleet.ts"
import { stateOf, waiting } from "./history.ts"
import * as plan from "./plan.ts"

export class Stuck extends Schema.TaggedError<Stuck>()("Stuck", { workers: Schema.Array(Schema.String) }) {
  override get message() {
    return `Not finished after ${plan.limit}: ${this.workers.join(", ")}`
  }
}

/**
 * Checked at the start of each term. The signal must arrive while the worker is still waiting, so interrupt it only if
 * another worker is ahead of it in the queue.
 */
const canInterrupt = (history: ReadonlyArray<Event>) => {
  const { state, term } = stateOf(history, plan.interruption.worker)
  return state === "waiting" && term! >= plan.interruption.term && waiting(history)[0] !== plan.interruption.worker
}

/** Succeeds with the complete history once every worker has exited. */
export const direct = Effect.fnUntraced(function*(
  fleet: Fleet,
  onEvent: (event: Event, history: ReadonlyArray<Event>) => Effect.Effect<void>
) {
  const history: Array<Event> = []
  const starting = new Set(plan.workers)
  const active = new Set(plan.workers)
  let isInterrupted = false

  const crash = Effect.fnUntraced(function*(worker: string, token: number) {
    // Read the clock before the kill: on a busy machine, the next worker may already lead when the director notices the
    // exit
    const at = yield* now
    yield* fleet.crash(worker)
    const asked = yield* now
    const mutex = yield* fleet.inspect
    const left = mutex.token === token && mutex.ownership._tag === "Held" ? mutex.ownership.timeLeft : undefined
    yield* Queue.offer(fleet.events, {
      _tag: "Crashed",
      worker,
      at,
      ...(left === undefined ? {} : { leaseEnds: asked + Duration.toMillis(left) })
    })
  })

  const follow = Effect.gen(function*() {
    while (active.size > 0) {
      const event = yield* Queue.take(fleet.events)
      history.push(event)
      if (isEnding(event)) active.delete(event.worker)
      yield* onEvent(event, history)
      // Begin only once every worker has started. Otherwise all others may finish before a late worker leads, and
      // nobody is left to take over from it.
      if (event._tag !== "Note" && starting.delete(event.worker) && starting.size === 0) {
        yield* Effect.forkScoped(fleet.begin)
      }
      if (event._tag !== "Leading") continue
      if (event.worker === plan.crash.worker && event.term === plan.crash.term) {
        yield* Effect.forkScoped(Effect.delay(crash(event.worker, event.token), plan.crash.after))
      }
      if (!isInterrupted && canInterrupt(history)) {
        isInterrupted = true
        yield* Effect.forkScoped(fleet.interrupt(plan.interruption.worker))
      }
    }
  })

  yield* Effect.timeoutOrElse(follow, {
    duration: plan.limit,
    orElse: () => new Stuck({ workers: [...active] })
  })
  return history as ReadonlyArray<Event>
}, Effect.scoped)
