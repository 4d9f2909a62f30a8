/** Closing a consumer revokes all its data streams, and does not acknowledge unfinished ones. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schedule } from "effect"
import { TestClock } from "effect/testing"
import * as fleet from "../support/streamFleet.ts"

const owned = (consumer: fleet.Consumer) =>
  Effect.map(consumer.client.owned, (leases) => leases.map(({ stream }) => stream).sort())

describe("closing a consumer", () => {
  it.effect(
    "closing revokes all data streams, interrupts their handlers after the grace period, and releases each stream when its handler ends",
    () =>
      fleet.test(Effect.gen(function*() {
        const { backend, open } = yield* fleet.make
        const a = yield* open("a", { gracePeriod: "5 seconds" })
        const notes: Array<string> = []
        const running = yield* a.start(a.client.run((lease) =>
          Effect.gen(function*() {
            yield* lease.revoked
            notes.push(`${lease.stream} revoked`)
            if (lease.stream === "s1") return yield* lease.yield
            if (lease.stream === "s2") return yield* Effect.sleep("3 seconds")
            return yield* Effect.onInterrupt(Effect.never, () =>
              Effect.gen(function*() {
                yield* Effect.sleep("4 seconds")
                notes.push(`${lease.stream} cleaned up, owned: ${yield* lease.isHeld}`)
              }))
          })
        ))
        yield* a.client.announceAll(fleet.names(3))
        yield* TestClock.adjust("10 seconds")
        const closing = yield* Effect.forkChild(Fiber.interrupt(running), { startImmediately: true })
        yield* TestClock.adjust("10 millis")
        assert.deepStrictEqual(notes, ["s1 revoked", "s2 revoked", "s3 revoked"])
        assert.deepStrictEqual(yield* owned(a), ["s2", "s3"])
        yield* TestClock.adjust("3 seconds")
        assert.deepStrictEqual(backend.done, ["s2"])
        yield* TestClock.adjust("5900 millis")
        assert.isUndefined(closing.pollUnsafe())
        assert.deepStrictEqual(yield* owned(a), ["s3"])
        yield* TestClock.adjust("200 millis")
        assert.isDefined(closing.pollUnsafe())
        assert.strictEqual(notes[3], "s3 cleaned up, owned: true")
        assert.deepStrictEqual(backend.rows.map(({ content }) => "stream" in content ? String(content.stream) : ""), [
          "s1",
          "s3"
        ])
        assert.strictEqual(backend.entryLeases.size, 0)
        assert.deepStrictEqual([...backend.failures.values()], [])
      })),
    { tags: ["B57", "G20"] }
  )

  it.effect("a closing consumer leaves the group, while a closing producer sends nothing because it never joined", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const [runner, claimer, producer] = [yield* open("a"), yield* open("b"), yield* open("c")]
      const leaves = (consumer: fleet.Consumer) =>
        consumer.link.calls.filter((call) => call === "removeConsumer").length
      yield* runner.start(runner.client.run(Effect.void))
      yield* producer.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("1 second")
      yield* Effect.ignore(claimer.acquire("s2"))
      for (const consumer of [runner, claimer, producer]) yield* consumer.close
      assert.deepStrictEqual([runner, claimer, producer].map(leaves), [1, 0, 0])
    })))

  it.effect("closing does not wait forever for a reply to the request to leave the group", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      yield* a.start(a.client.run(Effect.void))
      yield* TestClock.adjust("1 second")
      a.link.modes.removeConsumer = "hang"
      const closing = yield* Effect.forkChild(a.close)
      yield* TestClock.adjust("1 second")
      assert.isDefined(closing.pollUnsafe())
    })))

  it.effect("a warning is logged if the backend refuses to let a consumer leave the group, but not in an outage", () =>
    fleet.test(Effect.gen(function*() {
      for (const mode of ["refuse", "fail"] as const) {
        const { a, lines } = yield* fleet.ofOne
        yield* a.serve(1)
        yield* TestClock.adjust("1 second")
        a.link.modes.removeConsumer = mode
        const closing = yield* Effect.forkChild(a.close, { startImmediately: true })
        yield* TestClock.adjust("20 seconds")
        assert.isDefined(closing.pollUnsafe())
        assert.lengthOf(
          lines.filter((line) => line.startsWith("Warn: Cannot leave the group")),
          mode === "refuse" ? 1 : 0
        )
      }
    })))

  it.effect(
    "other consumers take over immediately on a release signal, without counting a failure",
    () =>
      fleet.test(Effect.gen(function*() {
        const { backend, open } = yield* fleet.make
        const a = yield* open("a", { gracePeriod: 0 })
        const b = yield* open("b", { sweepInterval: "1 hour" })
        yield* a.serve(3)
        yield* b.start(b.client.run(Effect.never))
        yield* TestClock.adjust("5 seconds")
        yield* a.close
        yield* TestClock.adjust("200 millis")
        assert.deepStrictEqual(yield* owned(b), ["s1", "s2", "s3"])
        assert.deepStrictEqual(backend.done, [])
        assert.isTrue((yield* b.client.owned).every(({ failures }) => failures === 0))
      })),
    { tags: ["G20"] }
  )

  it.effect.each([true, false])(
    "a consumer with capacity for one data stream takes over one after another on signals (rebalance: %s)",
    (rebalance) =>
      fleet.test(Effect.gen(function*() {
        const { backend, open } = yield* fleet.make
        const a = yield* open("a", { gracePeriod: 0, rebalance })
        const b = yield* open("b", { sweepInterval: "1 hour", capacity: 1, rebalance })
        yield* a.serve(6)
        yield* TestClock.adjust("1 second")
        yield* b.start(b.client.run(Effect.sleep("100 millis")))
        yield* TestClock.adjust("2 seconds")
        yield* a.close
        yield* TestClock.adjust("5 seconds")
        assert.deepStrictEqual([...backend.done].sort(), ["s1", "s2", "s3", "s4", "s5", "s6"])
      }))
  )

  it.effect(
    "closing immediately stops a blocked read of announcements, without waiting for its reply",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a } = yield* fleet.ofOne
        const running = yield* a.start(a.client.run(Effect.never))
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(running)
        yield* a.close
      })),
    { tags: ["G31"] }
  )

  it.effect("a done request that is in flight at the end of the grace period is retried only once", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      for (const isRepaired of [true, false]) {
        const a = yield* open(`a${isRepaired}`, { gracePeriod: "300 millis", commandTimeout: "500 millis" })
        yield* a.serve(1, (lease) => lease.revoked)
        yield* TestClock.adjust("1 second")
        a.link.modes.done = "hang"
        const closing = yield* Effect.forkChild(a.close, { startImmediately: true })
        yield* TestClock.adjust("450 millis")
        if (isRepaired) a.link.modes.done = "work"
        yield* TestClock.adjust("2 seconds")
        assert.isDefined(closing.pollUnsafe())
        assert.deepStrictEqual(a.link.calls.filter((call) => call === "done").length, 2)
        assert.deepStrictEqual(backend.done, ["s1"])
      }
    })))

  it.effect("while the backend hangs, closing takes at most the release timeout, however many data streams are owned", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { gracePeriod: 0, capacity: 300 })
      yield* a.serve(300)
      yield* TestClock.adjust("900 millis")
      a.link.mode = "hang"
      const closing = yield* Effect.forkChild(a.close, { startImmediately: true })
      yield* TestClock.adjust("4 seconds")
      assert.isDefined(closing.pollUnsafe())
    })))

  const interrupted = () => Effect.never
  const yielding = (lease: fleet.Lease) => Effect.andThen(lease.revoked, lease.yield)
  const finishing = () => Effect.sleep("3100 millis")

  it.effect.each(
    [
      ["interrupted handlers", "release", interrupted],
      ["yielding handlers", "release", yielding],
      ["finishing handlers", "done", finishing]
    ] as const
  )(
    "on a slow backend, all 1,500 data streams end without retries while renewals continue: %s",
    ([, request, handler]) =>
      fleet.test(Effect.gen(function*() {
        const { backend, open } = yield* fleet.make
        const a = yield* open("a", { gracePeriod: 0, capacity: 1500, leaseDuration: "5 seconds" })
        yield* a.serve(1500, handler)
        // Advance the clock in small steps, to start all handlers at about the same time
        yield* Effect.repeat(TestClock.adjust("1 millis"), { times: 100 })
        assert.lengthOf(yield* owned(a), 1500)
        yield* TestClock.adjust("2900 millis")
        assert.lengthOf(yield* owned(a), 1500)
        // These requests take three times the command timeout in total
        a.link.busy[request] = 1
        const renewals = () => a.link.calls.filter((name) => name === "renew").length
        const before = renewals()
        if (request === "release") yield* Effect.forkChild(a.close, { startImmediately: true })
        yield* Effect.repeat(TestClock.adjust("20 millis"), { times: 110 })
        assert.strictEqual(backend.streamLeases.size, 0)
        assert.lengthOf(a.link.calls.filter((name) => name === request), 1500)
        assert.isAbove(renewals(), before)
        assert.strictEqual(backend.rows.length, request === "done" ? 0 : 1500)
      }))
  )

  it.effect("closing does not wait for an onError that hangs", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { gracePeriod: "1 second" })
      yield* a.start(a.client.run(Effect.fail("x"), { onError: () => Effect.never }))
      yield* a.client.announceAll(fleet.names(2))
      yield* TestClock.adjust("1 minute")
      assert.lengthOf(yield* owned(a), 2)
      backend.streamLeases.delete("s1")
      yield* TestClock.adjust("2 seconds")
      assert.include([...backend.failures.values()], 1)
      const closing = yield* Effect.forkChild(a.close, { startImmediately: true })
      yield* TestClock.adjust("1100 millis")
      assert.isDefined(closing.pollUnsafe())
      assert.strictEqual(backend.streamLeases.size, 0)
    })))

  it.effect.each([["ends", Effect.void], ["hangs", Effect.never]] as const)(
    "a failure during the interruption is reported to onError, and delays closing only briefly if onError %s",
    ([, onError]) =>
      fleet.test(Effect.gen(function*() {
        const { backend, open } = yield* fleet.make
        const a = yield* open("a", { gracePeriod: "1 second" })
        const reported: Array<number> = []
        yield* a.start(a.client.run(Effect.onInterrupt(Effect.never, () => Effect.die("finalizer")), {
          onError: ({ failures }) => Effect.andThen(Effect.sync(() => reported.push(failures)), onError)
        }))
        yield* a.client.announceAll(fleet.names(1))
        yield* TestClock.adjust("1 second")
        const closing = yield* Effect.forkChild(a.close, { startImmediately: true })
        yield* TestClock.adjust("3100 millis")
        assert.isDefined(closing.pollUnsafe())
        assert.deepStrictEqual([reported, backend.streamLeases.size], [[1], 0])
      }))
  )

  it.effect("closing does not wait until a pending join succeeds", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      a.link.mode = "fail"
      // Forked outside the client's scope
      const running = yield* Effect.forkChild(Effect.exit(a.client.run(Effect.never)), { startImmediately: true })
      yield* TestClock.adjust("2 seconds")
      const closing = yield* Effect.forkChild(a.close, { startImmediately: true })
      yield* TestClock.adjust("10 millis")
      assert.isDefined(closing.pollUnsafe())
      assert.isDefined(running.pollUnsafe())
    })))

  it.effect("an uninterruptible handler's lease is renewed until the handler ends", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { gracePeriod: 0 })
      const b = yield* open("b")
      yield* a.serve(1, () => Effect.uninterruptible(Effect.sleep("1 minute")))
      yield* TestClock.adjust("10 millis")
      yield* b.start(b.client.run(Effect.never))
      const closing = yield* Effect.forkChild(a.close, { startImmediately: true })
      yield* TestClock.adjust("59 seconds")
      assert.isUndefined(closing.pollUnsafe())
      assert.deepStrictEqual(yield* owned(b), [])
      yield* TestClock.adjust("2 seconds")
      assert.isDefined(closing.pollUnsafe())
    })))

  // Closes at many different times while handlers keep succeeding and failing, so that there are always requests in
  // flight
  for (const slow of ["prepare", "read", "take", "renew", "done", "fail", "release"] as const) {
    it.effect(`closing leaves nothing behind, regardless of when it happens, while ${slow} is slow`, () =>
      fleet.test(Effect.gen(function*() {
        for (let at = 0; at <= 2500; at += 250) {
          const { backend, open } = yield* fleet.make
          const a = yield* open("a", { gracePeriod: 200, capacity: 2, sweepInterval: "300 millis" })
          let runs = 0
          a.link.delays[slow] = 130
          yield* a.start(a.client.run(() =>
            Effect.andThen(
              Effect.sleep("150 millis"),
              Effect.suspend(() => ++runs % 2 === 0 ? Effect.fail("x") : Effect.void)
            )
          ))
          yield* a.client.announceAll(fleet.names(20))
          yield* TestClock.adjust(at)
          const closing = yield* Effect.forkChild(a.close, { startImmediately: true })
          yield* TestClock.adjust("5 seconds")
          assert.isDefined(closing.pollUnsafe(), `closing at ${at} ms completes`)
          assert.strictEqual(backend.done.length + backend.rows.length, 20, "no announcement is lost")
          for (const row of backend.rows) {
            assert.isUndefined(
              backend.lease(backend.entryLeases, row.entry),
              `no lease is left after closing at ${at} ms`
            )
          }
        }
      })))
  }
})

describe("releasing a data stream", () => {
  it.effect("a release interrupts and awaits the handler, and lets other consumers take the data stream first", () =>
    fleet.test(Effect.gen(function*() {
      const { a, open } = yield* fleet.ofOne
      const b = yield* open("b", { sweepInterval: "1 hour" })
      yield* a.serve(1, () => Effect.onInterrupt(Effect.never, () => Effect.sleep("1 second")))
      yield* TestClock.adjust("10 millis")
      yield* b.start(b.client.run(Effect.never))
      const releasing = yield* Effect.forkChild(a.release("s1"), { startImmediately: true })
      yield* TestClock.adjust("900 millis")
      assert.deepStrictEqual(yield* owned(a), ["s1"])
      assert.isUndefined(releasing.pollUnsafe())
      yield* TestClock.adjust("300 millis")
      yield* Fiber.join(releasing)
      assert.deepStrictEqual(yield* owned(b), ["s1"])
      assert.strictEqual((yield* Effect.flip(a.release("s1")))._tag, "NotOwned")
    })))
})

it.effect("a hanging retry schedule does not prevent its consumer from closing", () =>
  fleet.test(Effect.gen(function*() {
    const { open } = yield* fleet.make
    const a = yield* open("a", { gracePeriod: "1 second" })
    const undecided = Schedule.fromStep(Effect.succeed(() => Effect.never))
    yield* a.start(a.client.run(Effect.fail("bad"), { retry: undecided }))
    yield* a.client.announceAll(fleet.names(1))
    yield* TestClock.adjust("5 seconds")
    const closing = yield* Effect.forkChild(a.close)
    yield* TestClock.adjust("10 seconds")
    assert.isDefined(closing.pollUnsafe())
  })))
