/**
 * Tests `StreamMessages` in handlers for `StreamClient.run`, with data streams that change owners during processing.
 */
import { StreamMessages } from "@effect-simba/core/streams"
import { StreamLease } from "@effect-simba/core/streams/StreamLease"
import type { RawMessage } from "@effect-simba/core/streams/StreamState"
import { compareEntryIds } from "@effect-simba/core/streams/StreamStore"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Latch, Schema } from "effect"
import { TestClock } from "effect/testing"
import { message } from "../support/scriptedLease.ts"
import type { Backend } from "../support/streamBackend.ts"
import * as fleet from "../support/streamFleet.ts"

/** Adds messages to a backend that does not store any. */
const withMessages = (backend: Backend) => {
  const streams = new Map<string, Array<RawMessage>>()
  const arrival = Latch.makeUnsafe(false)
  const service = backend.service.bind(backend)
  backend.service = (through) => {
    const messages: ReturnType<typeof service>["messages"] = (stream, after, count) =>
      through("messages", () => {
        arrival.closeUnsafe()
        return (streams.get(stream) ?? []).filter(({ id }) => compareEntryIds(id, after) > 0).slice(0, count)
      })
    const awaitMessages: typeof messages = (stream, after, count) =>
      Effect.gen(function*() {
        for (;;) {
          const found = yield* messages(stream, after, count)
          if (found.length > 0) return found
          yield* arrival.await
        }
      })
    return { ...service(through), messages, awaitMessages }
  }
  return (stream: string, ...numbers: ReadonlyArray<number>) => {
    const present = streams.get(stream) ?? []
    streams.set(stream, [
      ...present,
      ...numbers.map((n, index) => message(`${present.length + index + 1}-0`, { n: String(n) }))
    ])
    arrival.openUnsafe()
  }
}

const Numbered = Schema.Struct({ n: Schema.FiniteFromString })

const stage = Effect.gen(function*() {
  const { backend, open } = yield* fleet.make
  const add = withMessages(backend)
  /** Which consumer processed which number with which token. */
  const processed: Array<readonly [who: string, n: number, token: number]> = []
  const join = Effect.fnUntraced(function*(
    who: string,
    options?: StreamMessages.ProcessOptions<{ readonly n: number }>,
    clientOptions?: Parameters<typeof open>[1]
  ) {
    const consumer = yield* open(who, clientOptions)
    const handler = StreamMessages.process(Numbered, ({ value }) =>
      Effect.gen(function*() {
        const { token } = yield* StreamLease
        yield* Effect.sleep("1 second")
        processed.push([who, value.n, token])
      }), { until: ({ value }) => value.n === 0, ...options })
    yield* consumer.start(consumer.client.run(handler))
    return consumer
  })
  return { backend, add, processed, join, open }
})

const numbers = (count: number) => [...Array.from({ length: count }, (_, i) => i + 1), 0]

const by = (who: string, processed: ReadonlyArray<readonly [string, number, number]>) =>
  processed.filter(([one]) => one === who).map(([, n]) => n)

describe("messages in data streams that change owners", () => {
  it.effect("all messages are processed, and then the data stream is done", () =>
    Effect.gen(function*() {
      const { add, backend, join, processed } = yield* stage
      add("s", ...numbers(5))
      const a = yield* join("a")
      yield* a.client.announceAll([{ stream: "s" }])
      yield* TestClock.adjust("5900 millis")
      assert.deepStrictEqual(backend.done, [])
      yield* TestClock.adjust("200 millis")
      assert.deepStrictEqual(backend.done, ["s"])
      assert.deepStrictEqual(processed.map(([, n]) => n), numbers(5))
    }))

  it.effect(
    "a dead owner's successor starts after the last commit, with a larger token",
    () =>
      Effect.gen(function*() {
        const { add, backend, join, processed } = yield* stage
        add("s", ...numbers(20))
        const a = yield* join("a", { commitEvery: 4 })
        yield* a.client.announceAll([{ stream: "s" }])
        yield* TestClock.adjust("6500 millis")
        yield* join("b", { commitEvery: 4 })
        yield* a.kill
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(backend.done, ["s"])
        // Consumer a processed three messages without committing them, and the last of them after its connection was
        // cut
        assert.deepStrictEqual(by("a", processed), [1, 2, 3, 4, 5, 6, 7])
        assert.deepStrictEqual(by("b", processed), numbers(20).slice(4))
        const tokens = processed.map(([, , token]) => token)
        assert.deepStrictEqual(tokens, tokens.toSorted((x, y) => x - y))
        assert.lengthOf(new Set(tokens), 2)
      }),
    { tags: ["B55"] }
  )

  it.effect("nothing is processed twice after a normal yield", () =>
    Effect.gen(function*() {
      const { add, backend, join, processed } = yield* stage
      add("s", ...numbers(20))
      const a = yield* join("a", { commitEvery: 100 })
      yield* a.client.announceAll([{ stream: "s" }])
      yield* TestClock.adjust("6500 millis")
      yield* join("b", { commitEvery: 100 })
      const closing = yield* Effect.forkChild(a.close)
      yield* TestClock.adjust("1 minute")
      assert.isDefined(closing.pollUnsafe())
      assert.deepStrictEqual(backend.done, ["s"])
      assert.deepStrictEqual(processed.map(([, n]) => n), numbers(20))
      assert.deepStrictEqual(by("a", processed), [1, 2, 3, 4, 5, 6, 7])
    }), { tags: ["B57"] })

  it.effect(
    "an owner without a connection stops, and does not move the checkpoint",
    () =>
      Effect.gen(function*() {
        const { add, backend, join, processed } = yield* stage
        add("s", ...numbers(10))
        const a = yield* join("a")
        yield* a.client.announceAll([{ stream: "s" }])
        yield* TestClock.adjust("3500 millis")
        yield* join("b")
        a.link.mode = "fail"
        yield* TestClock.adjust("30 seconds")
        assert.deepStrictEqual(backend.done, ["s"])
        assert.isAtMost(by("a", processed).length, 5)
        assert.deepStrictEqual(by("b", processed), numbers(10).slice(3))
      }),
    { tags: ["B55"] }
  )

  it.effect("if an owner dies between the last commit and the done request, the next owner finishes the data stream", () =>
    Effect.gen(function*() {
      const { add, backend, join, processed } = yield* stage
      add("s", ...numbers(2))
      const a = yield* join("a")
      a.link.modes.done = "hang"
      yield* a.client.announceAll([{ stream: "s" }])
      yield* TestClock.adjust("3500 millis")
      assert.strictEqual(backend.checkpoints.get("s"), "3-0")
      yield* join("b")
      yield* a.kill
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(backend.done, ["s"])
      assert.deepStrictEqual(by("b", processed), [])
    }))

  it.effect("waiting for messages does not count as a lack of progress, and undecodable messages do not stop processing", () =>
    Effect.gen(function*() {
      const { add, backend, join, processed } = yield* stage
      add("s", 1, NaN)
      const a = yield* join("a", undefined, { progressTimeout: "10 seconds" })
      yield* a.client.announceAll([{ stream: "s" }])
      yield* TestClock.adjust("5 minutes")
      add("s", 2, 0)
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(backend.done, ["s"])
      assert.deepStrictEqual(processed.map(([, n]) => n), [1, 2, 0])
      assert.lengthOf(new Set(processed.map(([, , token]) => token)), 1)
    }))
})
