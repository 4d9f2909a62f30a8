/** Tests the notification queue: what it keeps, when it has room, and what it counts. */
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import { assert, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as notificationQueue from "../../src/streams/internal/notificationQueue.ts"

const stream = StreamName.make("s")
const entryOf = (n: number) => EntryId.make(`${n}-0`)

const setup = Effect.gen(function*() {
  const gauge = { queued: 0 }
  const recorder = { modify: (_: unknown, by: number) => void (gauge.queued += by) }
  const queue = yield* notificationQueue.make(recorder as never)
  return {
    gauge,
    queue,
    pull: yield* Stream.toPull(queue.stream),
    added: (n: number) => queue.push({ _tag: "StreamAdded", stream, entry: entryOf(n), info: {}, token: n as never })
  }
})

it.effect("nothing is added or counted after the reader is gone", () =>
  Effect.gen(function*() {
    const { added, gauge, queue } = yield* setup
    added(1)
    yield* queue.abandon
    added(2)
    yield* queue.expired(stream, entryOf(3))
    assert.strictEqual(gauge.queued, 0)
  }))

it.effect("an expired lease is reported only once, even if another notification about the same entry is read in the meantime", () =>
  Effect.gen(function*() {
    const { added, gauge, pull, queue } = yield* setup
    added(1)
    yield* queue.expired(stream, entryOf(1))
    assert.strictEqual((yield* pull)[0]._tag, "StreamAdded")
    yield* queue.expired(stream, entryOf(1))
    assert.strictEqual(gauge.queued, 1)
  }))

it.effect("after exceeding 256 notifications, a queue has room again once fewer than 256 are left", () =>
  Effect.gen(function*() {
    const { added, pull, queue } = yield* setup
    for (let n = 1; n <= 258; n++) added(n)
    const ready = yield* Effect.forkChild(queue.ready, { startImmediately: true })
    const isReady: Array<boolean> = []
    for (let n = 1; n <= 3; n++) {
      yield* pull
      yield* Effect.yieldNow
      isReady.push(ready.pollUnsafe() !== undefined)
    }
    assert.deepStrictEqual(isReady, [false, false, true])
  }))
