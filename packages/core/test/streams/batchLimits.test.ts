/** Tests when batches are full, and that full batches are committed. */
import { StreamMessages } from "@effect-simba/core/streams"
import type { StreamLease } from "@effect-simba/core/streams/StreamLease"
import { assert, describe, it } from "@effect/vitest"
import { type Duration, Effect, type Layer, Schema, SchemaTransformation } from "effect"
import { TestClock } from "effect/testing"
import { commits, Numbered, numbered } from "../support/recordedLease.ts"
import { message, ScriptedLease } from "../support/scriptedLease.ts"

type Options = StreamMessages.ReadOptions<typeof Numbered.Type> & { readonly batchWithin?: Duration.Input }

/** Processes batches in the background, and records them. */
const batched = Effect.fnUntraced(function*(
  layer: Layer.Layer<StreamLease>,
  options: Options,
  schema: Schema.Codec<typeof Numbered.Type, typeof Numbered.Encoded> = Numbered
) {
  const observed: Array<ReadonlyArray<number>> = []
  yield* StreamMessages.processBatches(
    schema,
    (messages) => Effect.sync(() => observed.push(messages.map(({ value }) => value.n))),
    options
  ).pipe(
    Effect.provide(layer),
    Effect.forkChild({ startImmediately: true })
  )
  return observed
})

describe("a batch's time limit", () => {
  it.effect("a batch ends `batchWithin` after its first message, however many messages follow, and is committed immediately", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      const observed = yield* batched(lease.layer, { batch: 10, batchWithin: "1 second" })
      yield* TestClock.adjust("10 seconds")
      lease.add(numbered(1))
      yield* TestClock.adjust("600 millis")
      lease.add(numbered(2))
      yield* TestClock.adjust("399 millis")
      assert.deepStrictEqual(observed, [])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(observed, [[1, 2]])
      assert.deepStrictEqual(commits(lease), ["commit 2-0"])
      // The timer restarts for the next batch
      yield* TestClock.adjust("5 seconds")
      lease.add(numbered(3))
      yield* TestClock.adjust("999 millis")
      assert.lengthOf(observed, 1)
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(observed, [[1, 2], [3]])
    }))

  it.effect("a batch waits one millisecond if that is its `batchWithin`", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      const observed = yield* batched(lease.layer, { batch: 10, batchWithin: "1 millis" })
      lease.add(numbered(1))
      yield* TestClock.adjust(0)
      lease.add(numbered(2))
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(observed, [[1, 2]])
    }))

  it.effect("a batch is processed right after a message is decoded if its time limit passes during decoding", () =>
    Effect.gen(function*() {
      const Slow = Numbered.pipe(Schema.decodeTo(
        Schema.toType(Numbered),
        SchemaTransformation.transformEffect({
          decode: (value) => Effect.delay(Effect.succeed(value), "1500 millis"),
          encode: (value) => Effect.succeed(value)
        })
      ))
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered(2))
      const observed = yield* batched(lease.layer, { batch: 10, batchWithin: "1 second" }, Slow)
      yield* TestClock.adjust("2999 millis")
      assert.deepStrictEqual(observed, [])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(observed, [[1, 2]])
    }))
})

describe("a batch's size", () => {
  it.effect("a batch is full when it reaches `batchBytes`, and the next batch starts from zero", () =>
    Effect.gen(function*() {
      // Each message takes two bytes: its name and its value
      const lease = new ScriptedLease()
      const observed = yield* batched(lease.layer, { batch: 10, batchBytes: 4, batchWithin: "1 minute" })
      for (const [n, expected] of [[1, 0], [2, 1], [3, 1], [4, 2], [5, 2]] as const) {
        lease.add(numbered(n))
        yield* TestClock.adjust("1 second")
        assert.lengthOf(observed, expected)
      }
      assert.deepStrictEqual(observed, [[1, 2], [3, 4]])
      assert.deepStrictEqual(commits(lease), ["commit 2-0", "commit 4-0"])
    }))

  it.effect("a batch is not full if it is one byte smaller than `batchBytes`", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      const observed = yield* batched(lease.layer, { batch: 10, batchBytes: 3, batchWithin: "1 minute" })
      for (const [n, expected] of [[1, 0], [2, 1], [3, 1], [4, 2]] as const) {
        lease.add(numbered(n))
        yield* TestClock.adjust("1 second")
        assert.lengthOf(observed, expected)
      }
    }))
})

it.effect("an undecodable message does not end its data stream", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(message("1-0", { other: "x" }))
    const observed = yield* batched(lease.layer, { until: ({ value }) => value.n === 0 })
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual([observed, commits(lease), lease.end], [[], ["commit 1-0"], "Open"])
  }))
