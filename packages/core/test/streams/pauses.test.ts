/** Tests what a consumer does, and what it reads, while the service or individual data streams are paused. */
import { StreamName } from "@effect-simba/core/streams"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as fleet from "../support/streamFleet.ts"

const owned = (consumer: fleet.Consumer) =>
  Effect.map(consumer.client.owned, (leases) => leases.map(({ stream }) => stream).sort())

const s1 = StreamName.StreamName.make("s1")

describe("a pause", () => {
  it.effect("each change to the pauses is logged once", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend, lines } = yield* fleet.ofOne
      yield* a.start(a.client.run(Effect.never))
      yield* TestClock.adjust("3 seconds")
      backend.pausedStreams = [s1]
      yield* TestClock.adjust("3 seconds")
      backend.isPaused = true
      yield* TestClock.adjust("3 seconds")
      backend.isPaused = false
      backend.pausedStreams = []
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(lines.filter((line) => line.includes("paused")), [
        "Info: 1 data stream(s) are paused",
        "Info: The service is paused",
        "Info: Nothing is paused"
      ])
    })))

  it.effect("an announced data stream is not taken if it is paused, while others are", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      backend.pausedStreams = [s1]
      const began: Array<string> = []
      yield* a.serve(2, ({ stream }) => Effect.andThen(Effect.sync(() => began.push(stream)), Effect.never))
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(began, ["s2"])
      backend.pausedStreams = []
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(began, ["s2", "s1"])
    })))

  it.effect("a consumer takes nothing until it has read the pauses, but closes without waiting for them", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      backend.pausedStreams = [s1]
      const [a, b] = [yield* open("a"), yield* open("b")]
      a.link.modes.paused = "hang"
      b.link.modes.paused = "fail"
      // Forked outside the client's scope, because closing that would interrupt it
      yield* Effect.forkChild(a.client.run(Effect.never))
      yield* b.serve(2)
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual([yield* owned(a), yield* owned(b)], [[], []])
      const closing = yield* Effect.forkChild(a.close, { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.isDefined(closing.pollUnsafe())
      b.link.modes.paused = "work"
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* owned(b), ["s2"])
    })))

  it.effect("no announcement is read while the service is paused, because that would assign it to this consumer", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      backend.isPaused = true
      yield* a.serve(2)
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(backend.rows.map((row) => row.owner), [undefined, undefined])
      backend.isPaused = false
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* owned(a), ["s1", "s2"])
    })))

  it.effect("a pause releases each data stream only once, however long the backend takes to reply", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", {
        gracePeriod: 0,
        leaseDuration: "20 seconds",
        commandTimeout: "10 seconds",
        confirmTimeout: "11 seconds",
        releaseTimeout: "10 seconds"
      })
      yield* a.start(Stream.runDrain(a.client.notifications))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("1 second")
      a.link.delays.release = 5000
      backend.isPaused = true
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual(yield* owned(a), ["s1"])
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* owned(a), [])
      assert.lengthOf(a.link.calls.filter((call) => call === "release"), 1)
    })))
})

it.effect("an unreadable announcement is dead-lettered as soon as it is read", () =>
  fleet.test(Effect.gen(function*() {
    const { backend, open } = yield* fleet.make
    const a = yield* open("a", { sweepInterval: "1 hour" })
    yield* a.serve(1)
    backend.add({ problem: "no JSON" })
    yield* TestClock.adjust("100 millis")
    assert.deepStrictEqual(yield* owned(a), ["s1"])
    assert.lengthOf(backend.dead, 1)
  })))
