/** Runs the play: follows the events, and brings about the crash and the interruption when their moment has come. */
import { Duration, Effect, Queue, Schema } from "effect"
import { type Event, isEnding, now } from "./events.ts"
import type { Fleet } from "./fleet.ts"
import { stateOf } from "./history.ts"
import * as plan from "./plan.ts"

export class Stuck extends Schema.TaggedError<Stuck>()("Stuck", { workers: Schema.Array(Schema.String) }) {
  override get message() {
    return `Not finished after ${plan.limit}: ${this.workers.join(", ")}`
  }
}

/** Succeeds with the whole history once every worker has ended in one way or another. */
export const direct = Effect.fnUntraced(function*(
  fleet: Fleet,
  onEvent: (event: Event, history: ReadonlyArray<Event>) => Effect.Effect<void>
) {
  const { crash, interruption } = plan
  const history: Array<Event> = []
  const active = new Set(plan.workers)

  const bringDown = Effect.gen(function*() {
    yield* fleet.crash(crash.worker)
    const at = yield* now
    const ownership = yield* fleet.owner
    const left = ownership._tag === "Held" ? ownership.remaining : undefined
    yield* Queue.offer(fleet.events, {
      _tag: "Crashed",
      worker: crash.worker,
      at,
      ...(left === undefined ? {} : { leaseEnds: at + Duration.toMillis(left) })
    })
  })

  const stopWaiting = Effect.suspend(() =>
    stateOf(history, interruption.worker).state === "waiting" ? fleet.interrupt(interruption.worker) : Effect.void
  )

  const follow = Effect.gen(function*() {
    while (active.size > 0) {
      const event = yield* Queue.take(fleet.events)
      history.push(event)
      if (isEnding(event)) active.delete(event.worker)
      yield* onEvent(event, history)
      if (event._tag === "Leading" && event.worker === crash.worker && event.term === crash.term) {
        yield* Effect.forkScoped(Effect.delay(bringDown, crash.after))
      }
      if (event._tag === "Waiting" && event.worker === interruption.worker && event.term >= interruption.term) {
        yield* Effect.forkScoped(Effect.delay(stopWaiting, interruption.after))
      }
    }
  })

  yield* Effect.timeoutOrElse(follow, {
    duration: plan.limit,
    orElse: () => new Stuck({ workers: [...active] })
  })
  return history as ReadonlyArray<Event>
}, Effect.scoped)
