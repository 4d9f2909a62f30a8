/** Tests requests that end or need a lease while the backend does not reply, or after it has forgotten the lease. */
import { StreamLease } from "@effect-simba/core/streams"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schedule } from "effect"
import { TestClock } from "effect/testing"
import * as fleet from "../support/streamFleet.ts"

const leaseOf = (consumer: fleet.Consumer) => Effect.map(consumer.client.owned, ([lease]) => lease!)

const handlerFails = (consumer: fleet.Consumer, times: number) => {
  let runs = 0
  return consumer.start(
    consumer.client.run(Effect.suspend(() => ++runs <= times ? Effect.fail("bad") : Effect.never), {
      retry: Schedule.spaced("100 millis"),
      onError: () => Effect.void
    })
  )
}

describe("a lease that the backend no longer has", () => {
  it.effect("a commit fails with LeaseLost, even if the reason cannot be read", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      yield* a.serve(1)
      yield* TestClock.adjust("100 millis")
      const lease = yield* leaseOf(a)
      a.link.modes.renew = "fail"
      backend.forgetLeases()
      const error = yield* Effect.flip(lease.commit("1-0" as never))
      assert.isTrue(error._tag === "LeaseLost" && error.reason._tag === "TakenOver")
    })))

  it.effect("`done` fails with LeaseLost, and the announcement is kept", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      yield* a.serve(1)
      yield* TestClock.adjust("100 millis")
      backend.forgetLeases()
      assert.strictEqual((yield* Effect.flip(a.done("s1")))._tag, "LeaseLost")
      assert.lengthOf(backend.rows, 1)
    })))

  it.effect("a data stream does not count as done if the first request gets no reply and the second is refused", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      a.link.modes.done = "hang"
      const leases: Array<fleet.Lease> = []
      yield* a.serve(1, (lease) => Effect.sync(() => leases.push(lease)))
      yield* TestClock.adjust("100 millis")
      assert.include(a.link.calls, "done")
      a.link.modes.done = "work"
      a.link.modes.renew = "fail"
      backend.forgetLeases()
      yield* TestClock.adjust("800 millis")
      assert.strictEqual((yield* Effect.flip(leases[0]!.ensure)).reason._tag, "TakenOver")
      assert.lengthOf(backend.rows, 1)
    })))

  it.effect("no warning about the release is logged when a handler yields", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend, lines } = yield* fleet.ofOne
      yield* a.serve(1, (lease) => Effect.delay(lease.yield, "500 millis"))
      yield* TestClock.adjust("100 millis")
      backend.forgetLeases()
      yield* TestClock.adjust("600 millis")
      assert.include(a.link.calls, "release")
      assert.deepStrictEqual(lines.filter((line) => line.includes("Releasing a data stream failed")), [])
    })))

  it.effect("no warning is logged if a release gets no reply before the lease expires", () =>
    fleet.test(Effect.gen(function*() {
      const { a, lines } = yield* fleet.ofOne
      a.link.modes.renew = "hang"
      a.link.modes.release = "hang"
      yield* a.serve(1, (lease) => Effect.delay(lease.yield, "1600 millis"))
      yield* TestClock.adjust("5 seconds")
      assert.include(a.link.calls, "release")
      assert.deepStrictEqual(lines.filter((line) => line.includes("Releasing a data stream failed")), [])
    })))

  it.effect("no request to end a lease is sent if it was lost while protected work was ending", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      yield* a.serve(1)
      yield* TestClock.adjust("100 millis")
      const lease = yield* leaseOf(a)
      yield* Effect.forkDetach(Effect.exit(lease.protect(Effect.uninterruptible(Effect.sleep("3 seconds")))), {
        startImmediately: true
      })
      const ending = yield* Effect.forkChild(Effect.exit(lease.done), { startImmediately: true })
      yield* TestClock.adjust("100 millis")
      backend.forgetLeases()
      yield* TestClock.adjust("5 seconds")
      assert.isTrue(Exit.isFailure(yield* Fiber.join(ending)))
      assert.notInclude(a.link.calls, "done")
    })))

  it.effect.each(["has counted", "could not count"] as const)(
    "a lease that vanishes is lost at the next renewal after the backend %s a failure",
    (how) =>
      fleet.test(Effect.gen(function*() {
        const { a, backend } = yield* fleet.ofOne
        if (how === "could not count") a.link.modes.fail = "fail"
        yield* handlerFails(a, 1)
        yield* a.client.announceAll(fleet.names(1))
        yield* TestClock.adjust("1500 millis")
        assert.lengthOf(yield* a.client.owned, 1)
        backend.forgetLeases()
        // The local deadline is at 2.9 s
        yield* TestClock.adjust("700 millis")
        assert.lengthOf(yield* a.client.owned, 0)
      }))
  )
})

it.effect("the pauses between attempts to end a lease grow to at most one second", () =>
  fleet.test(Effect.gen(function*() {
    const { a } = yield* fleet.ofOne
    a.link.modes.done = "fail"
    yield* a.serve(1, Effect.void)
    yield* TestClock.adjust("10 seconds")
    const attempts = a.link.calls.filter((call) => call === "done").length
    assert.isAtLeast(attempts, 10)
    assert.isAtMost(attempts, 15)
    a.link.modes.done = "work"
  })))

describe("ending a data stream", () => {
  it.effect("a handler can protect work again after its `done` has failed", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      a.link.modes.done = "fail"
      const results: Array<unknown> = []
      yield* a.serve(1, (lease) =>
        Effect.gen(function*() {
          results.push(Exit.isSuccess(yield* Effect.exit(lease.done)))
          results.push(yield* Effect.option(lease.protect(Effect.succeed(7))))
          return yield* Effect.never
        }))
      yield* TestClock.adjust("100 millis")
      assert.deepInclude(results[1] as object, { _tag: "Some", value: 7 })
      assert.isFalse(results[0])
    })))

  it.effect("`done` from outside fails if the handler has already called it", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      const leases: Array<fleet.Lease> = []
      yield* a.serve(1, (lease) =>
        Effect.suspend(() => {
          leases.push(lease)
          return Effect.andThen(lease.done, Effect.sleep("1 hour"))
        }))
      yield* TestClock.adjust("100 millis")
      const error = yield* Effect.flip(leases[0]!.done)
      assert.isTrue(error._tag === "LeaseLost" && error.reason._tag === "Released")
    })))

  it.effect("`release` fails with LeaseLost after a loss, even while the handler is still running", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      yield* a.serve(1, Effect.uninterruptible(Effect.sleep("10 seconds")))
      yield* TestClock.adjust("100 millis")
      const lease = yield* leaseOf(a)
      backend.forgetLeases()
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Effect.flip(lease.release))._tag, "LeaseLost")
    })))

  it.effect("`done` from an earlier lease's handler counts as a call from outside, and waits until the current handler has ended", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      yield* a.serve(1, Effect.onInterrupt(Effect.never, () => Effect.sleep("1 second")))
      yield* TestClock.adjust("100 millis")
      const lease = yield* leaseOf(a)
      const earlier = { entry: lease.entry, token: 0 } as unknown as fleet.Lease
      const ending = yield* Effect.forkChild(Effect.provideService(lease.done, StreamLease.StreamLease, earlier), {
        startImmediately: true
      })
      yield* TestClock.adjust("900 millis")
      assert.deepStrictEqual(backend.done, [])
      yield* TestClock.adjust("200 millis")
      yield* Fiber.join(ending)
      assert.deepStrictEqual(backend.done, ["s1"])
    })))

  it.effect("a handler does not continue after releasing its own data stream", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      let continued = false
      yield* a.serve(1, (lease) => Effect.andThen(lease.release, Effect.sync(() => continued = true)))
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual([continued, (yield* a.client.owned).length], [false, 0])
    })))
})

it.effect("the log line about a dead letter contains the token only if this consumer had the lease", () =>
  fleet.test(Effect.gen(function*() {
    const { annotations, backend, lines, open } = yield* fleet.make
    const a = yield* open("a", { maxFailures: 1, deadLetterAfter: 0 })
    const [{ entry } = { entry: "" }] = yield* a.client.announceAll(fleet.names(2))
    // An earlier owner died while its handler was running
    backend.running.set(entry, "simba-consumer-gone@@1")
    yield* a.start(a.client.run(Effect.fail("bad"), { onError: () => Effect.void }))
    yield* TestClock.adjust("1 second")
    const about = lines.flatMap((line, i) =>
      line.includes("Data stream dead-lettered:") ? [Object.keys(annotations[i]!)] : []
    )
    assert.deepStrictEqual(about, [["stream", "entry"], ["stream", "entry", "token"]])
  })))

it.effect("a log line about losses lists at most five data streams, followed by an ellipsis if there are more", () =>
  fleet.test(Effect.gen(function*() {
    for (
      const [count, expected] of [[5, /^Warn: 5 .*: ("s\d", ){4}"s\d"$/], [
        6,
        /^Warn: 6 .*: ("s\d", ){5}\.\.\.$/
      ]] as const
    ) {
      const { a, lines } = yield* fleet.ofOne
      yield* a.serve(count)
      yield* TestClock.adjust("100 millis")
      a.link.mode = "fail"
      yield* TestClock.adjust("3 seconds")
      a.link.mode = "work"
      const [line] = lines.filter((line) => line.includes("are lost"))
      assert.match(line!, expected)
    }
  })))
