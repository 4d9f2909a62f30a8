/** Tests where a reader continues after a failover that lost the newest messages of its data stream. */
import { StreamMessages } from "@effect-simba/core/streams"
import type { RawMessage } from "@effect-simba/core/streams/StreamState"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import { Numbered, numbered, processing, recorded, timed } from "../support/recordedLease.ts"
import { message, ScriptedLease } from "../support/scriptedLease.ts"

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

const messages = (from: number, to: number) => range(from, to).map(timed)

/** The new primary has these messages, and commits up to the one with this number. */
const promote = (lease: ScriptedLease, left: ReadonlyArray<RawMessage>, committed: number) => {
  lease.rewrite(...left)
  lease.checkpoint = timed(committed).id
  lease.offset = committed
}

it.effect("after two failovers no remaining message is processed twice", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(...messages(1, 12))
    const { gaps, observed } = yield* processing(lease.layer)
    yield* TestClock.adjust("1 minute")
    promote(lease, messages(1, 10), 5)
    yield* TestClock.adjust("1 minute")
    lease.add(...messages(21, 25))
    yield* TestClock.adjust("1 minute")
    promote(lease, [...messages(1, 10), ...messages(21, 23)], 10)
    yield* TestClock.adjust("1 minute")
    lease.add(timed(31))
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(gaps, [
      `LostEnd ${timed(10).id} ${timed(12).id} 2`,
      `LostEnd ${timed(23).id} ${timed(25).id} 2`
    ])
    assert.deepStrictEqual(observed, [...range(1, 12), ...range(21, 25), 31])
  }))

it.effect("if only the first of the delivered messages remains, reading continues after it, not after an older checkpoint", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(...messages(1, 8))
    lease.checkpoint = timed(4).id
    lease.offset = 4
    const { gaps, observed } = yield* processing(lease.layer)
    yield* TestClock.adjust("1 minute")
    promote(lease, messages(1, 5), 4)
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(gaps, [`LostEnd ${timed(5).id} ${timed(8).id} 3`])
    assert.deepStrictEqual([observed, lease.checkpoint], [range(5, 8), timed(5).id])
  }))

it.effect("if none of the delivered messages remains, reading continues after the checkpoint, with the messages that the new primary got", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(...messages(1, 5), timed(7), timed(9))
    lease.checkpoint = timed(4).id
    lease.offset = 4
    const { fiber, gaps, observed } = yield* processing(lease.layer)
    yield* TestClock.adjust("1 minute")
    promote(lease, [...messages(1, 4), timed(6)], 4)
    yield* TestClock.adjust("1 minute")
    assert.isUndefined(fiber.pollUnsafe())
    assert.deepStrictEqual(gaps, [`LostEnd ${timed(4).id} ${timed(9).id} 3`])
    assert.deepStrictEqual(observed, [5, 7, 9, 6])
  }))

it.effect("the number of lost messages is unknown if the checkpoint has no offset, and the offset is known again within a second", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(numbered(1), numbered(2), numbered(3))
    const { layer, requests } = recorded(lease)
    const { gaps, observed } = yield* processing(layer)
    yield* TestClock.adjust("10 seconds")
    lease.rewrite(numbered(1), numbered(2))
    lease.checkpoint = numbered(2).id
    lease.offset = undefined
    while (gaps.length === 0) yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(gaps, ["LostEnd 2-0 3-0 ?"])
    requests.length = 0
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(requests, ["extent"])
    lease.add(numbered(4))
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual([observed, lease.offset], [[1, 2, 3, 4], 3])
  }))

it.effect("if the offset of the last remaining message is known, the reader waits 30 seconds before it reads the extent again", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(...messages(1, 12))
    const { layer, requests } = recorded(lease)
    const { gaps } = yield* processing(layer)
    yield* TestClock.adjust("10 seconds")
    promote(lease, messages(1, 10), 5)
    while (gaps.length === 0) yield* TestClock.adjust("1 second")
    requests.length = 0
    yield* TestClock.adjust("29 seconds")
    assert.deepStrictEqual(requests, [])
  }))

it.effect("a message that arrives while the reader looks for the last remaining one does not corrupt the offset", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(...messages(1, 12))
    let isArriving = false
    const { layer } = recorded(lease, (inner) => ({
      messagesAfter: (after, count) =>
        Effect.suspend(() => {
          if (isArriving && count === 24) {
            isArriving = false
            lease.add(timed(21))
          }
          return inner.messagesAfter(after, count)
        })
    }))
    const { gaps, observed } = yield* processing(layer)
    yield* TestClock.adjust("10 seconds")
    promote(lease, messages(1, 10), 5)
    isArriving = true
    yield* TestClock.adjust("1 minute")
    assert.isFalse(isArriving)
    assert.deepStrictEqual(observed, [...range(1, 12), 21])
    assert.deepStrictEqual(gaps, [`LostEnd ${timed(10).id} ${timed(12).id} ?`])
  }))

it.effect("on a server without counters, a warning reports lost messages without a number", () =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
    const lease = new ScriptedLease()
    lease.added = undefined
    lease.add(numbered(1), numbered(2), numbered(3))
    lease.checkpoint = numbered(1).id
    const fiber = yield* StreamMessages.process(Numbered, () => Effect.void).pipe(
      Effect.provide(Layer.merge(lease.layer, Logger.layer([logger]))),
      Effect.forkChild({ startImmediately: true })
    )
    yield* TestClock.adjust("10 seconds")
    lease.rewrite(numbered(1), numbered(2))
    lease.checkpoint = numbered(2).id
    yield* TestClock.adjust("1 minute")
    yield* Fiber.interrupt(fiber)
    assert.deepStrictEqual(lines, [
      "The server lost messages that had been read; continuing after the last remaining one"
    ])
  }))

it.effect("after a failover, a reader looks for the last remaining message in reads that fit into `batchBytes`", () =>
  Effect.gen(function*() {
    const large = (n: number) => message(`${1_770_000_000_000 + n}-0`, { n: String(n), text: "x".repeat(100) })
    const lease = new ScriptedLease()
    lease.add(...range(1, 40).map(large))
    const { layer, requests } = recorded(lease)
    const { gaps, observed } = yield* processing(layer, { batchBytes: 500 })
    yield* TestClock.adjust("1 minute")
    promote(lease, range(1, 38).map(large), 30)
    requests.length = 0
    yield* TestClock.adjust("1 minute")
    lease.add(large(50))
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(observed, [...range(1, 40), 50])
    assert.deepStrictEqual(gaps, [`LostEnd ${large(38).id} ${large(40).id} 2`])
    const sizes = requests.filter((request) => request.startsWith("read")).map((request) =>
      Number(request.split(" ")[2])
    )
    assert.isAtMost(Math.max(...sizes), 4)
  }))

it.effect("messages that were processed before the data stream was rewritten, or lost its end, are not committed if processing stops during `onGap`", () =>
  Effect.gen(function*() {
    for (const [first, reason, checkpoint] of [["1-5", "Rewritten", "0-0"], ["1-0", "LostEnd", undefined]] as const) {
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered(2), numbered(3))
      const reasons: Array<string> = []
      const { fiber, observed } = yield* processing(lease.layer, {
        commitEvery: 10,
        onGap: ({ reason }) => Effect.andThen(Effect.sync(() => reasons.push(reason)), Effect.never)
      })
      yield* TestClock.adjust("100 millis")
      lease.rewrite(numbered(11, first), numbered(12, "2-0"))
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual([observed, reasons], [[1, 2, 3], [reason]])
      // Now the data stream reaches beyond the processed messages
      lease.add(numbered(13, "9-0"))
      yield* Fiber.interrupt(fiber)
      assert.strictEqual<string | undefined>(lease.checkpoint, checkpoint)
    }
  }))

it.effect("if the last remaining message is deleted while the reader looks for it, the reader does not wait for new ones", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(...messages(1, 12))
    let isPromoted = false
    const { layer } = recorded(lease, (inner) => ({
      messagesAfter: (after, count) =>
        Effect.tap(inner.messagesAfter(after, count), () =>
          Effect.sync(() => {
            if (isPromoted) lease.stream.splice(9)
            isPromoted = false
          }))
    }))
    const { gaps } = yield* processing(layer, { batch: 4 })
    yield* TestClock.adjust("10 seconds")
    promote(lease, messages(1, 10), 5)
    isPromoted = true
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(gaps, [`LostEnd ${timed(9).id} ${timed(12).id} ?`])
  }))

it.effect("an outage during the search for the last remaining message does not make it look deleted", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(...messages(1, 12))
    let isPromoted = false
    const { layer } = recorded(lease, (inner) => ({
      // The lease's checkpoint fails during an outage, and its extent does not
      extent: Effect.andThen(inner.checkpoint, inner.extent),
      messagesAfter: (after, count) =>
        Effect.suspend(() => {
          if (isPromoted) lease.outages = 20
          isPromoted = false
          return inner.messagesAfter(after, count)
        })
    }))
    const { gaps } = yield* processing(layer)
    yield* TestClock.adjust("10 seconds")
    promote(lease, messages(1, 10), 5)
    isPromoted = true
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(gaps, [`LostEnd ${timed(10).id} ${timed(12).id} 2`])
  }))
