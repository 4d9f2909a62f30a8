/** Notifications on their way to a reader: in order, none dropped, and a writer that can wait does. */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { Recorder } from "../../internal/lease/metricsRecorder.ts"
import type { InvalidConfig } from "../../SimbaError.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { EntryId, StreamName } from "../StreamName.ts"
import type { StreamNotification } from "../StreamNotification.ts"

export interface NotificationQueue {
  /** Never waits: there are no more of these than there are data streams owned. */
  readonly push: (notification: StreamNotification) => void
  /** Waits for room. Said once, as long as it was not read. */
  readonly expired: (stream: StreamName, entry: EntryId) => Effect.Effect<void>
  /** Waits until the reader has caught up. */
  readonly ready: Effect.Effect<void>
  /** The last one. What is unread stays readable. */
  readonly end: (reason: string) => Effect.Effect<void>
  /** Instead of all that would have come. */
  readonly fail: (error: InvalidConfig) => Effect.Effect<void>
  /** Nobody will read any more. */
  readonly abandon: Effect.Effect<void>
  readonly stream: Stream.Stream<StreamNotification, InvalidConfig>
}

/** Unread notifications that make the reader of announcements wait. */
const bound = 256

export const make = (meter: Recorder): Effect.Effect<NotificationQueue> =>
  Effect.gen(function*() {
    const queue = yield* Queue.unbounded<StreamNotification, Cause.Done | InvalidConfig>()
    const room = Latch.makeUnsafe(true)
    const expired = new Set<EntryId>()
    let isOver = false

    const push = (notification: StreamNotification) => {
      if (isOver) return
      Queue.offerUnsafe(queue, notification)
      meter.modify(StreamMetrics.queued, 1)
      if (Queue.sizeUnsafe(queue) >= bound) room.closeUnsafe()
    }

    const took = (notification: StreamNotification) => {
      meter.modify(StreamMetrics.queued, -1)
      if (notification._tag === "StreamExpired") expired.delete(notification.entry)
      if (Queue.sizeUnsafe(queue) < bound) room.openUnsafe()
    }

    return {
      push,
      expired: (stream, entry) =>
        Effect.andThen(
          room.await,
          Effect.sync(() => {
            if (expired.has(entry)) return
            expired.add(entry)
            push({ _tag: "StreamExpired", stream, entry })
          })
        ),
      ready: room.await,
      end: (reason) =>
        Effect.suspend(() => {
          push({ _tag: "StreamTerminated", reason })
          isOver = true
          return Effect.asVoid(Queue.end(queue))
        }),
      fail: (error) => Effect.asVoid(Queue.fail(queue, error)),
      abandon: Effect.suspend(() => {
        isOver = true
        meter.modify(StreamMetrics.queued, -Queue.sizeUnsafe(queue))
        return Effect.asVoid(Queue.shutdown(queue))
      }),
      stream: Stream.fromPull(Effect.succeed(
        Effect.map(Queue.take(queue), (notification) => {
          took(notification)
          return [notification] as const
        })
      ))
    }
  })
