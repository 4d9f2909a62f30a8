/** Tests where a reader continues after a failover that lost the newest messages in its data stream. */
import { StreamMessages } from "@effect-simba/core/streams"
import type { RawMessage } from "@effect-simba/core/streams/StreamState"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import { Numbered, numbered, processing, recorded, timed } from "../support/recordedLease.ts"
import { message, ScriptedLease } from "../support/scriptedLease.ts"

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

const messages = (from: number, to: number) => range(from, to).map(timed)

/** The new primary has these messages, and a checkpoint at the message with this number. */
const promote = (lease: ScriptedLease, left: ReadonlyArray<RawMessage>, committed: number) => {
  lease.rewrite(...left)
  lease.checkpoint = timed(committed).id
  lease.offset = committed
}

it.effect("after two failovers, no remaining message is processed twice", () =>
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

it.effect("if only the first delivered message remains, reading continues after it, not after an older checkpoint", () =>
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

it.effect("if no delivered message remains, reading continues after the checkpoint with the new primary's messages", () =>
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

it.effect("if the checkpoint has no offset, the number of lost messages is unknown, but the offset is known again within a second", () =>
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

it.effect("if the offset of the last remaining message is known, the reader rereads the extent only after 30 seconds", () =>
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

it.effect("a message that arrives during the search for the last remaining message does not corrupt the offset", () =>
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

it.effect("on a server without counters, the warning about lost messages does not contain a number", () =>
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

it.effect("after a failover, a reader searches for the last remaining message with reads that fit within `batchBytes`", () =>
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

it.effect("if processing stops during `onGap`, messages from before the data stream was rewritten or lost its end are not committed", () =>
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
      // The data stream now extends beyond the processed messages
      lease.add(numbered(13, "9-0"))
      yield* Fiber.interrupt(fiber)
      assert.strictEqual<string | undefined>(lease.checkpoint, checkpoint)
    }
  }))

it.effect("if the last remaining message is deleted during the search for it, the reader does not wait for new messages", () =>
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

it.effect("the last remaining message is found even if there is an outage during the search", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(...messages(1, 12))
    let isPromoted = false
    const { layer } = recorded(lease, (inner) => ({
      // Reading the checkpoint fails in the outage, but reading the extent does not
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
