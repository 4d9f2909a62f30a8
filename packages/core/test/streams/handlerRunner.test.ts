/**
 * Tests what happens after a handler has run: how failures are counted and reported, and whether the handler runs
 * again.
 */
import { StreamMetrics, StreamName } from "@effect-simba/core/streams"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Metric, Random, Schedule } from "effect"
import { TestClock } from "effect/testing"
import * as fleet from "../support/streamFleet.ts"

const tokens = (consumer: fleet.Consumer) =>
  Effect.map(consumer.client.owned, (leases) => leases.map(({ token }) => Number(token)))

describe("a handler's runs", () => {
  it.effect("the pause before a retry does not count as a lack of progress", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { progressTimeout: "1 second" })
      let runs = 0
      yield* a.start(a.client.run(Effect.suspend(() => ++runs === 1 ? Effect.fail("once") : Effect.never), {
        retry: Schedule.spaced("5 seconds"),
        onError: () => Effect.void
      }))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("5500 millis")
      assert.deepStrictEqual([runs, yield* tokens(a)], [2, [1]])
    })))

  it.effect("a commit that moves the checkpoint resets a lease's failures", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      const failures: Array<number> = []
      let runs = 0
      yield* a.start(a.client.run((lease) =>
        Effect.gen(function*() {
          const commit = (id: string) =>
            Effect.andThen(
              lease.commit(StreamName.EntryId.make(id)),
              Effect.sync(() => failures.push(lease.failures))
            )
          yield* commit("1-0")
          if (++runs === 1) return yield* Effect.fail("once")
          yield* commit("2-0")
          return yield* Effect.never
        }), { retry: Schedule.spaced("1 second"), onError: () => Effect.void }))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("5 seconds")
      // The second run repeats the first commit, which has no effect
      assert.deepStrictEqual(failures, [0, 1, 0])
    })))

  it.effect("the progress timeout starts when the handler starts", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { progressTimeout: "300 millis" })
      yield* a.serve(1)
      yield* TestClock.adjust("200 millis")
      assert.deepStrictEqual(yield* tokens(a), [1])
      yield* TestClock.adjust("200 millis")
      assert.deepStrictEqual(yield* tokens(a), [])
    })))

  it.effect("when its handler yields a data stream, a consumer leaves it to other members until its own next sweep", () =>
    fleet.test(
      Effect.gen(function*() {
        const { open } = yield* fleet.make
        const a = yield* open("a", { sweepInterval: "10 seconds" })
        let runs = 0
        yield* a.serve(1, (lease) => Effect.suspend(() => ++runs === 1 ? lease.yield : Effect.never))
        yield* TestClock.adjust("7 seconds")
        assert.strictEqual(runs, 1)
        // The sweep is due after 8 seconds, before the end of the sweep interval
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual(runs, 2)
      }).pipe(Effect.provideService(Random.Random, { nextIntUnsafe: () => 0, nextDoubleUnsafe: () => 0 }))
    ))

  it.effect("a data stream can be taken again immediately if it was lost while the retry schedule was deciding", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      backend.publishesExpiries = true
      const a = yield* open("a", { sweepInterval: "1 minute" })
      let runs = 0
      yield* a.start(a.client.run(Effect.suspend(() => ++runs === 1 ? Effect.fail("once") : Effect.never), {
        retry: Schedule.fromStep(Effect.succeed(() => Effect.never)),
        onError: () => Effect.void
      }))
      const [{ entry, stream } = { entry: "", stream: "" }] = yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("1500 millis")
      backend.forgetLeases()
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual([runs, yield* tokens(a)], [1, []])
      backend.expiry({ _tag: "Expired", stream, entry } as never)
      yield* TestClock.adjust("500 millis")
      assert.strictEqual(runs, 2)
    })))
})

describe("reporting a failure", () => {
  it.effect("failures are numbered even if the backend refuses to count them", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      a.link.modes.fail = "refuse"
      const observed: Array<number> = []
      yield* a.start(a.client.run(Effect.fail("bad"), {
        retry: Schedule.spaced("100 millis"),
        onError: ({ failures }) => Effect.sync(() => observed.push(failures))
      }))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("250 millis")
      assert.deepStrictEqual(observed, [1, 2, 3])
    })))

  it.effect("if onError crashes, that is logged and the handler runs again, but an interruption is not logged", () =>
    fleet.test(Effect.gen(function*() {
      for (const [onError, isLogged] of [[Effect.die("no pager"), true], [Effect.interrupt, false]] as const) {
        const { a, lines } = yield* fleet.ofOne
        let runs = 0
        yield* a.start(a.client.run(Effect.suspend(() => Effect.fail(++runs)), {
          retry: Schedule.spaced("100 millis"),
          onError: () => onError
        }))
        yield* a.client.announceAll(fleet.names(1))
        yield* TestClock.adjust("150 millis")
        assert.strictEqual(runs, 2)
        assert.strictEqual(lines.some((line) => line.includes("onError failed")), isLogged)
      }
    })))

  it.effect("a failure is not reported if the data stream is marked as done while the failure is counted", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      a.link.delays.fail = 300
      let reports = 0
      const handler = (lease: fleet.Lease) =>
        Effect.andThen(Effect.forkDetach(Effect.delay(lease.done, "100 millis")), Effect.fail("bad"))
      yield* a.start(a.client.run(handler, { onError: () => Effect.sync(() => reports++) }))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual([backend.done, reports], [["s1"], 0])
      assert.include(a.link.calls, "fail")
    })))

  it.effect("a data stream is not retried if onError marks it as done, and can be announced again immediately", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      let runs = 0
      yield* a.start(a.client.run(Effect.suspend(() => ++runs === 1 ? Effect.fail("bad") : Effect.never), {
        retry: Schedule.spaced("1 hour"),
        onError: ({ lease }) => Effect.orDie(lease.done)
      }))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([runs, backend.done], [1, ["s1"]])
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(runs, 2)
    })))
})

it.effect("the processing time is measured from the handler's start", () =>
  fleet.test(Effect.gen(function*() {
    const { a } = yield* fleet.ofOne
    const times = Metric.value(StreamMetrics.stream.processingTime.success)
    const before = yield* times
    yield* TestClock.adjust("100 seconds")
    yield* a.serve(1, Effect.sleep("10 millis"))
    yield* TestClock.adjust("1 second")
    const { count, sum } = yield* times
    assert.strictEqual(count - before.count, 1)
    assert.isAtMost(sum - before.sum, 20)
  })))
