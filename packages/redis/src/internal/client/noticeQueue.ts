/** The queue between a subscription and its reader. Filled by `subscriptions` and `fallbackSubscriber`. */
import type { Notice } from "@effect-simba/core/Subscriber"
import type * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"

export const make: Effect.Effect<Queue.Queue<Notice>> = Queue.bounded<Notice>(256)

/** Adds a notice. If the queue is full because its reader is slow, replaces all notices in it with a gap. */
export const offer = (queue: Queue.Queue<Notice>, notice: Notice): void => {
  if (Queue.isFullUnsafe(queue)) {
    while (Queue.sizeUnsafe(queue) > 0) Queue.takeUnsafe(queue)
    Queue.offerUnsafe(queue, { _tag: "Gap" })
  }
  Queue.offerUnsafe(queue, notice)
}
