/**
 * Queues notifications in order and drops none. While the queue is full, `announcementReader` waits. `client` creates a
 * queue for each reader of `notifications`.
 */
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
  /** Adds a notification without waiting. There cannot be many, because the number of owned data streams is limited. */
  readonly push: (notification: StreamNotification) => void
  /** Waits for room, then adds `StreamExpired` unless the queue already contains one for this entry. */
  readonly expired: (stream: StreamName, entry: EntryId) => Effect.Effect<void>
  /** Waits until the queue has room. */
  readonly ready: Effect.Effect<void>
  /** Adds `StreamTerminated` and ends the queue. Earlier notifications can still be read. */
  readonly end: (reason: string) => Effect.Effect<void>
  /** Fails the reader. */
  readonly fail: (cause: Cause.Cause<InvalidConfig>) => Effect.Effect<void>
  /** Drops all notifications: the reader is gone. */
  readonly abandon: Effect.Effect<void>
  readonly stream: Stream.Stream<StreamNotification, InvalidConfig>
}

/** The size at which the queue counts as full. */
const bound = 256

export const make = (metrics: Recorder): Effect.Effect<NotificationQueue> =>
  Effect.gen(function*() {
    const queue = yield* Queue.unbounded<StreamNotification, Cause.Done | InvalidConfig>()
    const room = Latch.makeUnsafe(true)
    const expired = new Set<EntryId>()
    let isOver = false

    const push = (notification: StreamNotification) => {
      if (isOver) return
      Queue.offerUnsafe(queue, notification)
      metrics.modify(StreamMetrics.stream.queued, 1)
      if (Queue.sizeUnsafe(queue) >= bound) room.closeUnsafe()
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
      fail: (cause) => Effect.asVoid(Queue.failCause(queue, cause)),
      abandon: Effect.suspend(() => {
        isOver = true
        metrics.modify(StreamMetrics.stream.queued, -Queue.sizeUnsafe(queue))
        return Effect.asVoid(Queue.shutdown(queue))
      }),
      stream: Stream.fromPull(Effect.succeed(
        Effect.map(Queue.take(queue), (notification) => {
          metrics.modify(StreamMetrics.stream.queued, -1)
          if (notification._tag === "StreamExpired") expired.delete(notification.entry)
          if (Queue.sizeUnsafe(queue) < bound) room.openUnsafe()
          return [notification] as const
        })
      ))
    }
  })
