/** Tests a message reader's requests: how much it reads, and how often it reads the extent. */
import { StreamMessages, StreamMetrics } from "@effect-simba/core/streams"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Metric, Option, Schema } from "effect"
import { TestClock } from "effect/testing"
import { numbered, processing, recorded } from "../support/recordedLease.ts"
import { message, ScriptedLease } from "../support/scriptedLease.ts"

const sizesOf = (requests: ReadonlyArray<string>) =>
  requests.filter((request) => request.startsWith("read")).map((request) => Number(request.split(" ")[2]))

describe("the read size", () => {
  it.effect("a reader requests one message if its `batch` is 1", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered(2))
      const { layer, requests } = recorded(lease)
      yield* processing(layer, { batch: 1 })
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(sizesOf(requests), [1, 1, 1])
    }))

  it.effect("by default, a reader requests at most 100 messages, and at most as many as fit into 1 MiB", () =>
    Effect.gen(function*() {
      // 16 messages of 61,681 bytes fit into 1,048,576 bytes, while 17 would exceed the limit by one byte
      for (const [bytes, expected] of [[10, 100], [61_681, 16]] as const) {
        const lease = new ScriptedLease()
        lease.add(message("1-0", { n: "x".repeat(bytes - 1) }))
        const { layer, requests } = recorded(lease)
        yield* StreamMessages.process(Schema.Struct({ n: Schema.String }), () => Effect.void).pipe(
          Effect.provide(layer),
          Effect.forkChild({ startImmediately: true })
        )
        yield* TestClock.adjust(0)
        assert.deepStrictEqual(sizesOf(requests), [16, expected])
      }
    }))
})

describe("waiting", () => {
  it.effect("a reader reads the extent one second after the last message, then every 30 seconds", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1))
      const { layer, requests } = recorded(lease)
      yield* processing(layer)
      yield* TestClock.adjust(0)
      requests.length = 0
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(requests.splice(0), [])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(requests.splice(0), ["extent"])
      yield* TestClock.adjust("29999 millis")
      assert.deepStrictEqual(requests.splice(0), [])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(requests.splice(0), ["extent"])
      // The same happens after everything was deleted
      lease.trim(0)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(requests.splice(0), ["extent", "extent"])
    }))

  it.effect("a reader checks every 30 seconds for a data stream that does not exist yet", () =>
    Effect.gen(function*() {
      const { layer, requests } = recorded(new ScriptedLease())
      yield* processing(layer)
      yield* TestClock.adjust(0)
      requests.length = 0
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(requests, ["extent", "extent"])
    }))

  it.effect("if the reply to a read is slow, its messages are neither reported as missing nor requested again", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1))
      const { layer, requests } = recorded(lease, (inner) => ({
        messagesAfter: (after, count) =>
          Effect.tap(inner.messagesAfter(after, count), () => after === "1-0" ? Effect.sleep("2 seconds") : Effect.void)
      }))
      const { gaps, observed } = yield* processing(layer)
      yield* TestClock.adjust("500 millis")
      lease.add(numbered(2), numbered(3), numbered(4))
      yield* TestClock.adjust("100 millis")
      lease.trim(1)
      yield* TestClock.adjust("1400 millis")
      assert.deepStrictEqual(observed, [1])
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual([observed, gaps], [[1, 2, 3, 4], []])
      assert.lengthOf(requests.filter((request) => request.startsWith("read 1-0")), 1)
    }))
})

it.effect("a message that arrives while `onGap` is running does not interrupt it", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(numbered(1))
    const reported: Array<unknown> = []
    const { observed } = yield* processing(lease.layer, {
      onGap: ({ missed }) => Effect.delay(Effect.sync(() => reported.push(missed)), "200 millis")
    })
    yield* TestClock.adjust("500 millis")
    // It is too soon after the first check for a second one
    lease.burst(1, numbered(2), numbered(3))
    yield* TestClock.adjust("1100 millis")
    assert.deepStrictEqual([observed, reported], [[1, 3], []])
    lease.add(numbered(4))
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual([observed, reported], [[1, 3, 4], [Option.some(1)]])
  }))

it.effect("messages deleted individually at the end are reported when another message arrives", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(numbered(1), numbered(2))
    const { gaps, observed } = yield* processing(lease.layer, {}, () => Effect.sleep("1 second"))
    yield* TestClock.adjust("1500 millis")
    lease.add(numbered(3))
    lease.stream.pop()
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(gaps, [])
    lease.add(numbered(4))
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual([observed, gaps], [[1, 2, 4], ["Deleted 0-0 4-0 1"]])
  }))

it.effect("`until` receives the offset of each message", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(numbered(1), numbered(2), numbered(3))
    const offsets: Array<number | undefined> = []
    const { fiber } = yield* processing(lease.layer, {
      batch: 2,
      until: ({ offset, value }) => {
        offsets.push(offset)
        return value.n === 3
      }
    })
    yield* Fiber.join(fiber)
    assert.deepStrictEqual([offsets, lease.offset], [[1, 2, 3], 3])
  }))

it.effect("each undecodable message is counted once", () =>
  Effect.gen(function*() {
    const { undecodable } = StreamMetrics.stream.deadMessages
    const count = Effect.map(Metric.value(undecodable), ({ count }) => count)
    const before = yield* count
    const lease = new ScriptedLease()
    lease.add(message("1-0", { other: "x" }), numbered(2), message("3-0", { other: "x" }))
    yield* processing(lease.layer)
    yield* TestClock.adjust("1 second")
    assert.strictEqual((yield* count) - before, 2)
  }))

it.effect("deleting a data stream does not end it if it was announced again after its end and got a new message", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.checkpoint = numbered(2).id
    lease.end = "Reopened"
    lease.add(numbered(1), numbered(2))
    const { fiber, observed } = yield* processing(lease.layer, { until: ({ value }) => value.n === 0, commitEvery: 10 })
    yield* TestClock.adjust("1 minute")
    lease.add(numbered(3))
    yield* TestClock.adjust("1 second")
    lease.end = "Ended"
    yield* TestClock.adjust("1 minute")
    assert.isUndefined(fiber.pollUnsafe())
    assert.deepStrictEqual(observed, [3])
  }))
