/** Tests `StreamClient.run` in normal operation and when handlers fail. */
import { SimbaError } from "@effect-simba/core"
import { type StreamClient, StreamLease, StreamMetrics } from "@effect-simba/core/streams"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Metric, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { refusal } from "../support/streamBackend.ts"
import * as fleet from "../support/streamFleet.ts"

const owned = (consumer: fleet.Consumer) =>
  Effect.map(consumer.client.owned, (leases) => leases.map(({ stream }) => stream).sort())

describe("running handlers", () => {
  it.effect("each announced data stream gets one handler with its info and token, and its announcement is removed when the handler succeeds", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend, lines } = yield* fleet.ofOne
      const observed: Array<unknown> = []
      yield* a.start(a.client.run(Effect.gen(function*() {
        const lease = yield* StreamLease.StreamLease
        observed.push([lease.stream, lease.info, lease.token])
        yield* Effect.sleep("3 seconds")
        yield* lease.ensure
      })))
      yield* a.client.announceAll([{ stream: "s1", info: { a: 1 } }, { stream: "s2" }])
      yield* TestClock.adjust("2999 millis")
      assert.deepStrictEqual(yield* owned(a), ["s1", "s2"])
      assert.deepStrictEqual(observed, [["s1", { a: 1 }, 1], ["s2", {}, 2]])
      assert.deepStrictEqual(backend.done, [])
      yield* TestClock.adjust("2 millis")
      assert.deepStrictEqual(backend.done, ["s1", "s2"])
      assert.deepStrictEqual(backend.rows, [])
      assert.deepStrictEqual(yield* owned(a), [])
      assert.deepStrictEqual(lines.filter((line) => line.includes("dead letters")), [])
    })))

  it.effect(
    "a client does not join the service by announcing, and a consumer that joins later does not miss announcements",
    () =>
      fleet.test(Effect.gen(function*() {
        const { open } = yield* fleet.make
        const producer = yield* open("p")
        yield* producer.client.announceAll(fleet.names(2))
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(producer.link.calls, ["announce"])
        const a = yield* open("a")
        yield* a.start(a.client.run(Effect.never))
        yield* TestClock.adjust("10 millis")
        assert.deepStrictEqual(yield* owned(a), ["s1", "s2"])
      })),
    { tags: ["G6"] }
  )

  it.effect(
    "a consumer takes no more data streams, and reads no more announcements, than it has capacity for",
    () =>
      fleet.test(Effect.gen(function*() {
        const { backend, open } = yield* fleet.make
        const a = yield* open("a", { capacity: 2 })
        const b = yield* open("b", { capacity: 2 })
        let running = 0
        let most = 0
        const work = Effect.acquireUseRelease(
          Effect.sync(() => {
            most = Math.max(most, ++running)
          }),
          () => Effect.sleep("10 seconds"),
          () => Effect.sync(() => running--)
        )
        yield* a.client.announceAll(fleet.names(5))
        yield* a.start(a.client.run(work))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* owned(a), ["s1", "s2"])
        assert.strictEqual(
          backend.rows.filter((row) => row.owner !== undefined).length,
          2,
          "the other announcements are unread"
        )
        yield* b.start(b.client.run(Effect.never))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* owned(b), ["s3", "s4"])
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(yield* owned(a), ["s5"])
        assert.strictEqual(most, 2)
      })),
    { tags: ["G7", "G32"] }
  )

  it.effect("a client refuses a second `run` during the first one, but allows it after the first has ended", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      const first = yield* a.start(a.client.run(Effect.never))
      yield* TestClock.adjust("10 millis")
      const error = yield* Effect.flip(a.client.run(Effect.never))
      assert.strictEqual(error._tag, "InvalidConfig")
      yield* Fiber.interrupt(first)
      const second = yield* a.start(a.client.run(Effect.never))
      yield* TestClock.adjust("10 millis")
      assert.isUndefined(second.pollUnsafe())
    })))

  it.effect("a second `run` waits for an interrupted one whose handlers are still ending", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      const began: Array<string> = []
      const handler = (name: string, work: Effect.Effect<void>) =>
        Effect.andThen(Effect.sync(() => began.push(name)), work)
      yield* a.client.announceAll([{ stream: "s1" }])
      const first = yield* a.start(
        a.client.run(handler("first", Effect.onInterrupt(Effect.never, () => Effect.sleep("3 seconds"))))
      )
      yield* TestClock.adjust("1 second")
      first.interruptUnsafe()
      const second = yield* a.start(a.client.run(handler("second", Effect.void)))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(began, ["first"])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(began, ["first", "second"])
      assert.isUndefined(second.pollUnsafe())
    })))

  it.effect("a new consumer does not take data streams that are already paused, and each sweep is counted once", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a")
      yield* a.client.announceAll(fleet.names(2))
      backend.isPaused = true
      const sweeps = Effect.map(Metric.value(StreamMetrics.stream.sweeps), ({ count }) => count)
      const before = yield* sweeps
      const reads = () => a.link.calls.filter((name) => name === "pending").length
      const readsBefore = reads()
      yield* a.start(a.client.run(Effect.never))
      yield* TestClock.adjust("900 millis")
      assert.lengthOf(yield* a.client.owned, 0)
      yield* TestClock.adjust("20 seconds")
      assert.lengthOf(yield* a.client.owned, 0)
      const count = (yield* sweeps) - before
      assert.isAtLeast(count, 8)
      // The initial read of pending entries is not a sweep
      assert.strictEqual(reads() - readsBefore, count + 1)
      backend.isPaused = false
      yield* TestClock.adjust("5 seconds")
      assert.lengthOf(yield* a.client.owned, 2)
    })))

  it.effect("new announcements do not cause sweeps while there is capacity for them", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { sweepInterval: "1 hour" })
      yield* a.start(a.client.run(Effect.never))
      yield* TestClock.adjust("1 second")
      const sweeps = () => a.link.calls.filter((call) => call === "pending").length
      const before = sweeps()
      yield* a.client.announceAll(fleet.names(3))
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* owned(a), ["s1", "s2", "s3"])
      assert.strictEqual(sweeps(), before)
    })))

  it.effect("orphans are taken promptly while handlers end quickly, even with capacity for only one", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const dead = yield* open("dead")
      yield* dead.serve(20)
      yield* TestClock.adjust("1 second")
      yield* dead.kill
      const a = yield* open("a", { capacity: 1 })
      yield* a.start(a.client.run(Effect.sleep("10 millis")))
      // leaseDuration plus 1.2 times sweepInterval
      yield* TestClock.adjust("4400 millis")
      assert.isNotEmpty(backend.done)
      // A read that blocks for a second began before the first orphan was taken. After it, a sweep takes an orphan
      // every 50 ms.
      yield* TestClock.adjust("2100 millis")
      assert.lengthOf(backend.done, 20)
    })))

  it.effect(
    "data streams are never taken from an owner that is alive",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a, backend, open } = yield* fleet.ofOne
        const b = yield* open("b")
        yield* a.serve(3)
        yield* TestClock.adjust("10 millis")
        yield* b.start(b.client.run(Effect.never))
        yield* TestClock.adjust("10 minutes")
        assert.deepStrictEqual(yield* owned(a), ["s1", "s2", "s3"])
        assert.deepStrictEqual(backend.rows.map(({ deliveries }) => deliveries), [2, 2, 2])
        assert.isFalse(b.link.calls.includes("take"))
      })),
    { tags: ["B58"] }
  )

  it.effect(
    "a thousand data streams are renewed with five calls per heartbeat",
    () =>
      fleet.test(Effect.gen(function*() {
        const { open } = yield* fleet.make
        const a = yield* open("a", { capacity: 1000 })
        yield* a.serve(300)
        // The first 300 leases start earlier than the rest
        yield* TestClock.adjust("400 millis")
        yield* a.client.announceAll(fleet.names(1000))
        yield* TestClock.adjust("5 seconds")
        assert.strictEqual((yield* a.client.owned).length, 1000)
        a.link.calls.length = 0
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual(a.link.calls.filter((call) => call === "renew").length, 50)
      })),
    { tags: ["G28"] }
  )
})

describe("handlers that fail", () => {
  const failing = (failures: number) => {
    const state = { runs: 0, observed: [] as Array<number> }
    return {
      state,
      handler: Effect.suspend(() => ++state.runs <= failures ? Effect.fail("broken") : Effect.void),
      onError: ({ failures }: { readonly failures: number }) => Effect.sync(() => state.observed.push(failures))
    }
  }

  it.effect("a failed handler runs again on the retry schedule without losing its data stream, and onError receives every failure", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      const { handler, onError, state } = failing(3)
      yield* a.start(a.client.run(handler, { retry: Schedule.spaced("5 seconds"), onError }))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("14900 millis")
      assert.deepStrictEqual(yield* owned(a), ["s1"])
      assert.strictEqual(state.runs, 3)
      yield* TestClock.adjust("200 millis")
      assert.strictEqual(state.runs, 4)
      assert.deepStrictEqual(state.observed, [1, 2, 3])
      assert.deepStrictEqual(backend.done, ["s1"])
    })))

  it.effect("when the retry schedule ends, the data stream is dead-lettered with the cause, and others continue", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend, lines } = yield* fleet.ofOne
      yield* a.start(a.client.run(
        (lease) => lease.stream === "s1" ? Effect.die(new Error("poisoned")) : Effect.void,
        { retry: Schedule.recurs(2) }
      ))
      yield* a.client.announceAll(fleet.names(2))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(backend.done, ["s2"])
      assert.strictEqual(backend.dead.length, 1)
      assert.strictEqual(backend.dead[0]!.reason, "Error: poisoned")
      assert.deepStrictEqual(backend.rows, [])
      assert.include(lines, "Error: Data stream dead-lettered: its handlers failed 3 time(s)")
    })))

  it.effect("dead-lettering is logged even if the reply to the first request is lost", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend, lines } = yield* fleet.ofOne
      a.link.modes.deadLetter = "lost"
      yield* a.start(a.client.run(() => Effect.die(new Error("poisoned")), { retry: Schedule.recurs(0) }))
      yield* a.client.announceAll(fleet.names(1))
      while (backend.dead.length === 0) yield* TestClock.adjust("10 millis")
      a.link.modes.deadLetter = "work"
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(backend.dead.length, 1)
      assert.include(lines, "Error: Data stream dead-lettered: its handlers failed 1 time(s)")
      assert.deepStrictEqual(lines.filter((line) => line.includes("is lost")), [])
    })))

  it.effect(
    "a data stream is dead-lettered after maxFailures failures across all consumers, regardless of the retry schedule",
    () =>
      fleet.test(Effect.gen(function*() {
        const { backend, lines, open } = yield* fleet.make
        const a = yield* open("a", { maxFailures: 5, deadLetterAfter: 0 })
        const { handler, onError, state } = failing(Infinity)
        yield* a.start(a.client.run(handler, { retry: Schedule.spaced("100 millis"), onError }))
        const [{ entry } = { entry: "" }] = yield* a.client.announceAll(fleet.names(1))
        yield* TestClock.adjust("250 millis")
        // Simulates a failure on another consumer
        backend.failures.set(entry, backend.failures.get(entry)! + 1)
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(state.observed, [1, 2, 3, 5])
        assert.strictEqual(backend.dead.length, 1)
        assert.include(lines, "Error: Data stream dead-lettered: its handlers failed 5 time(s)")
      })),
    { tags: ["B52", "G1"] }
  )

  it.effect("a commit resets the failure count and restarts the retry schedule", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { maxFailures: 3, deadLetterAfter: 0 })
      let runs = 0
      const observed: Array<number> = []
      yield* a.start(a.client.run(
        (lease) =>
          Effect.andThen(
            lease.commit(`${++runs}-0` as never),
            Effect.fail("after some progress")
          ),
        { retry: Schedule.recurs(1), onError: ({ failures }) => Effect.sync(() => observed.push(failures)) }
      ))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("10 millis")
      assert.isAbove(observed.length, 5)
      assert.deepStrictEqual([...new Set(observed)], [1])
      assert.deepStrictEqual(backend.dead, [])
      yield* a.close
    })))

  it.effect("a data stream is not dead-lettered for occasional failures if its handler reports progress", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { maxFailures: 3, deadLetterAfter: 0 })
      let steps = 0
      const observed: Array<number> = []
      const step = (lease: fleet.Lease) => {
        steps++
        // The next failure follows immediately, before a renewal can report the progress
        return steps % 80 === 0 ? Effect.fail("now and then") : Effect.delay(lease.progress, "10 millis")
      }
      yield* a.start(a.client.run((lease) => Effect.forever(Effect.suspend(() => step(lease))), {
        retry: Schedule.spaced("20 millis"),
        onError: ({ failures }) => Effect.sync(() => observed.push(failures))
      }))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("20 seconds")
      assert.isAbove(observed.length, 20)
      assert.deepStrictEqual([...new Set(observed)], [1])
      assert.deepStrictEqual(backend.dead, [])
    })))

  it.effect("no data stream is dead-lettered before deadLetterAfter, even while a dependency is down", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      yield* a.start(a.client.run(Effect.fail("downstream"), { onError: () => Effect.void }))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("59 minutes")
      assert.deepStrictEqual(backend.dead, [])
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual(backend.dead.length, 1)
    })))

  it.effect("yielding does not count as a failure, and lets other consumers take the data stream first", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend, open } = yield* fleet.ofOne
      const b = yield* open("b")
      let runs = 0
      yield* a.serve(1, (lease) => Effect.suspend(() => ++runs === 1 ? lease.yield : Effect.never))
      yield* TestClock.adjust("10 millis")
      assert.deepStrictEqual(yield* owned(a), [])
      assert.strictEqual(runs, 1)
      assert.deepStrictEqual([...backend.failures.values()], [])
      yield* b.start(b.client.run(Effect.never))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* owned(b), ["s1"])
    })))

  it.effect("yielding does not count as a failure, even if the handler is interrupted at the same time", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      let runs = 0
      yield* a.serve(
        1,
        (lease) =>
          Effect.suspend(() =>
            ++runs > 1 ?
              Effect.never :
              Effect.catchCause(lease.yield, (cause) => Effect.failCause(Cause.combine(cause, Cause.interrupt())))
          )
      )
      yield* TestClock.adjust("10 millis")
      assert.deepStrictEqual(yield* owned(a), [])
      assert.deepStrictEqual([...backend.failures.values()], [])
    })))

  it.effect("a handler counts as failed if it interrupts itself", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      const causes: Array<Cause.Cause<unknown>> = []
      yield* a.start(a.client.run(Effect.interrupt, { onError: ({ cause }) => Effect.sync(() => causes.push(cause)) }))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("500 millis")
      assert.strictEqual(causes.length, 1)
      assert.isTrue(Cause.hasInterruptsOnly(causes[0]!))
      assert.deepStrictEqual(yield* owned(a), ["s1"])
    })))

  it.effect(
    "a done request is retried if it fails, and the data stream stays owned in the meantime",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a, backend } = yield* fleet.ofOne
        a.link.modes.done = "fail"
        yield* a.serve(1, Effect.void)
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(yield* owned(a), ["s1"])
        a.link.modes.done = "work"
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(backend.done, ["s1"])
        assert.deepStrictEqual(yield* owned(a), [])
      })),
    { tags: ["G17"] }
  )

  it.effect(
    "if the reply to a done request is lost, the data stream counts as done, not as lost",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a, backend } = yield* fleet.ofOne
        a.link.modes.done = "lost"
        yield* a.serve(1, Effect.void)
        yield* TestClock.adjust("1500 millis")
        a.link.modes.done = "work"
        yield* TestClock.adjust("2 seconds")
        assert.deepStrictEqual(backend.done, ["s1"])
        assert.deepStrictEqual(yield* owned(a), [])
        assert.strictEqual((yield* Metric.value(StreamMetrics.stream.ends.done)).count, 1)
        for (const loss of Object.values(StreamMetrics.stream.losses)) {
          assert.strictEqual((yield* Metric.value(loss)).count, 0)
        }
      })).pipe(Effect.provideService(Metric.MetricRegistry, new Map())),
    { tags: ["G17"] }
  )

  it.effect("a failing done request is logged on the first retry and when the consumer gives up", () =>
    fleet.test(Effect.gen(function*() {
      const { a, lines } = yield* fleet.ofOne
      a.link.modes.done = "fail"
      yield* a.serve(1, Effect.void)
      yield* TestClock.adjust("10 seconds")
      const about = () => lines.filter((line) => line.includes("Marking a data stream as done failed"))
      assert.deepStrictEqual(about(), ["Warn: Marking a data stream as done failed; retrying"])
      a.link.modes.done = "refuse"
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(about().slice(1), ["Warn: Marking a data stream as done failed; its lease will expire"])
    })))

  it.effect("each handler run is counted once, by outcome", () =>
    Effect.gen(function*() {
      yield* fleet.test(Effect.gen(function*() {
        const { open } = yield* fleet.make
        const a = yield* open("a", { gracePeriod: 0 })
        const runs = new Map<string, number>()
        yield* a.serve(4, (lease): Effect.Effect<void, unknown> => {
          const run = (runs.get(lease.stream) ?? 0) + 1
          runs.set(lease.stream, run)
          if (lease.stream === "s1") return Effect.sleep("10 millis")
          if (lease.stream === "s2" && run <= 2) return Effect.fail("not yet")
          if (lease.stream === "s3" && run === 1) return lease.yield
          return Effect.never
        })
        yield* TestClock.adjust("20 seconds")
      }))
      const outcomes = Object.entries(StreamMetrics.stream.processingTime)
      const counts = yield* Effect.forEach(outcomes, ([name, metric]) =>
        Effect.map(Metric.value(metric), ({ count }) => [name, count]))
      assert.deepStrictEqual(Object.fromEntries(counts), { success: 1, failure: 2, yielded: 1, interrupted: 3 })
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())))

  it.effect("a permanent refusal of a done request ends the lease", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      a.link.modes.done = "refuse"
      yield* a.serve(1, Effect.void)
      yield* TestClock.adjust("10 millis")
      assert.deepStrictEqual(yield* owned(a), [])
      assert.deepStrictEqual(backend.done, [])
    })))

  it.effect("if the backend refuses to count a failure, that is logged and the lease is kept", () =>
    fleet.test(Effect.gen(function*() {
      const { a, lines } = yield* fleet.ofOne
      a.link.modes.fail = "refuse"
      yield* a.serve(1, Effect.fail("bad"))
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* owned(a), ["s1"])
      const counting = lines.filter((line) => line.includes("Counting a failure"))
      assert.isNotEmpty(counting)
      for (const line of counting) assert.include(line, "failed; it does not count")
    })))

  it.effect(
    "if the retry schedule dies, the lease ends and a failure is counted, so no data stream is owned without a handler",
    () =>
      fleet.test(Effect.gen(function*() {
        const { backend, lines, open } = yield* fleet.make
        const a = yield* open("a", { maxFailures: 3, deadLetterAfter: 0 })
        const retry = Schedule.spaced("1 second").pipe(Schedule.while((): boolean => {
          throw new Error("a mistake")
        }))
        yield* a.start(a.client.run(Effect.fail("x"), { retry }))
        yield* a.client.announceAll(fleet.names(1))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* owned(a), [])
        assert.include(lines, "Error: A data stream's runner crashed; its lease will expire")
        yield* TestClock.adjust("1 minute")
        assert.lengthOf(backend.dead, 1)
      })),
    { tags: ["B52"] }
  )

  it.effect("after a permanent refusal by the backend, everything is released and `run` fails with that error", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      const running = yield* a.serve(1)
      yield* TestClock.adjust("10 millis")
      a.link.modes.read = "refuse"
      yield* TestClock.adjust("10 seconds")
      const exit = running.pollUnsafe()
      assert.isTrue(exit !== undefined && Exit.isFailure(exit) && Cause.squash(exit.cause) === refusal)
      assert.strictEqual(backend.entryLeases.size, 0)
      assert.strictEqual(backend.rows.length, 1)
    })))
})

describe("done, called from outside the handler", () => {
  it.effect("done interrupts and awaits the handler, so each data stream has at most one handler", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      let running = 0
      yield* a.start(a.client.run(() =>
        Effect.acquireUseRelease(
          Effect.sync(() => assert.strictEqual(++running, 1)),
          () => Effect.never,
          () => Effect.andThen(Effect.sleep("1 second"), Effect.sync(() => running--))
        )
      ))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("10 millis")
      const done = yield* Effect.forkChild(a.done("s1"), { startImmediately: true })
      yield* TestClock.adjust("900 millis")
      assert.deepStrictEqual([running, backend.done.length], [1, 0])
      yield* TestClock.adjust("200 millis")
      yield* Fiber.join(done)
      assert.deepStrictEqual(backend.done, ["s1"])
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(running, 1)
    })))

  it.effect("done called before a retry prevents the retry", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      let runs = 0
      yield* a.start(
        a.client.run(() => Effect.suspend(() => Effect.fail(++runs)), { retry: Schedule.spaced("1 hour") })
      )
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("10 millis")
      yield* a.done("s1")
      assert.deepStrictEqual([runs, backend.done, backend.dead], [1, ["s1"], []])
    })))

  it.effect("a failure while the handler is being interrupted is reported to onError", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      const reported: Array<unknown> = []
      yield* a.start(a.client.run(Effect.onInterrupt(Effect.never, () => Effect.die("finalizer")), {
        onError: ({ cause }) =>
          Effect.sync(() => reported.push(...Cause.prettyErrors(cause).map(({ message }) => message)))
      }))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("10 millis")
      yield* a.done("s1")
      assert.include(reported, "finalizer")
      assert.deepStrictEqual(backend.done, ["s1"])
    })))

  it.effect("if interrupting the handler causes more than maxFailures failures, the data stream is done, not a dead letter", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { maxFailures: 1, deadLetterAfter: 0 })
      yield* a.serve(1, Effect.onInterrupt(Effect.never, () => Effect.die("finalizer")))
      yield* TestClock.adjust("10 millis")
      yield* a.done("s1")
      assert.deepStrictEqual([backend.done, backend.dead], [["s1"], []])
    })))

  it.effect("done fails if the backend refuses the request", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      a.link.modes.done = "refuse"
      yield* a.serve(1)
      yield* TestClock.adjust("10 millis")
      assert.strictEqual((yield* Effect.flip(a.done("s1")))._tag, "LeaseLost")
      assert.deepStrictEqual(yield* owned(a), [])
    })))

  it.effect.each(["yield its data stream", "become a dead letter"] as const)(
    "done fails if the handler is just about to %s",
    (what) =>
      fleet.test(Effect.gen(function*() {
        const { backend, open } = yield* fleet.make
        const a = yield* open("a", { maxFailures: 1, deadLetterAfter: 0 })
        a.link.delays.release = a.link.delays.deadLetter = 200
        yield* a.start(
          a.client.run((lease): Effect.Effect<never, unknown> =>
            what === "become a dead letter" ? Effect.fail("x") : lease.yield
          )
        )
        yield* a.client.announceAll(fleet.names(1))
        yield* TestClock.adjust("100 millis")
        const error = yield* Effect.forkChild(Effect.flip(a.done("s1")), { startImmediately: true })
        yield* TestClock.adjust("150 millis")
        assert.deepInclude(yield* Fiber.join(error), { _tag: "LeaseLost", reason: { _tag: "Released" } })
        assert.deepStrictEqual([backend.done, backend.dead.length], [[], what === "become a dead letter" ? 1 : 0])
      }))
  )

  it.effect("if onError calls done, the data stream is done immediately and onError continues", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      const reported: Array<string> = []
      const onError = ({ lease: { done, stream } }: StreamClient.HandlerFailure) =>
        Effect.andThen(done, Effect.sync(() => reported.push(stream)))
      yield* a.start(
        a.client.run((lease) => Effect.fail(lease.stream), {
          onError: (failure) =>
            failure.stream === "s1"
              ? Effect.orDie(onError(failure))
              : Effect.uninterruptible(Effect.orDie(onError(failure)))
        })
      )
      yield* a.client.announceAll(fleet.names(2))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([backend.done, reported], [["s1", "s2"], ["s1", "s2"]])
    })))

  it.effect("if a handler calls done, its lease ends and its reads fail", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { capacity: 1 })
      const ends: Array<unknown> = []
      let runs = 0
      yield* a.start(a.client.run((lease) =>
        Effect.gen(function*() {
          if (++runs > 1) return yield* Effect.never
          const reading = yield* Effect.forkChild(lease.messagesAfter("0-0" as never, 1), { startImmediately: true })
          yield* lease.done
          ends.push(Cause.squash(yield* Effect.flip(Effect.sandbox(Fiber.join(reading)))))
          yield* Effect.sleep("10 seconds")
        })
      ))
      yield* a.client.announceAll(fleet.names(2))
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(ends.map((end) => end instanceof SimbaError.LeaseLost && end.reason._tag), ["Released"])
      assert.deepStrictEqual([backend.done, runs], [["s1"], 1])
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(runs, 2)
    })))
})

describe("a release requested by the handler", () => {
  const ways: ReadonlyArray<readonly [string, (release: Effect.Effect<void>) => Effect.Effect<unknown>]> = [
    ["as its last step", (release) => Effect.andThen(Effect.sleep("1 second"), release)],
    ["in a finalizer", (release) => Effect.ensuring(Effect.sleep("1 second"), release)],
    [
      "in a fiber that a finalizer waits for",
      (release) => Effect.ensuring(Effect.sleep("1 second"), Effect.flatMap(Effect.forkDetach(release), Fiber.await))
    ]
  ]

  it.effect.each(ways)(
    "takes effect once the handler has ended, even if it is requested %s",
    ([, way]) =>
      fleet.test(Effect.gen(function*() {
        const { backend, open } = yield* fleet.make
        const a = yield* open("a", { sweepInterval: "1 minute" })
        yield* a.start(
          a.client.run(({ release }) => Effect.ensuring(way(Effect.orDie(release)), Effect.sleep("1 second")))
        )
        yield* a.client.announceAll(fleet.names(1))
        yield* TestClock.adjust("1900 millis")
        assert.deepStrictEqual(yield* owned(a), ["s1"])
        yield* TestClock.adjust("200 millis")
        assert.deepStrictEqual(yield* owned(a), [])
        assert.deepStrictEqual([backend.rows.length, backend.done, [...backend.failures.values()]], [1, [], []])
      }))
  )
})

describe("a lease in a handler", () => {
  it.effect("rejects a commit after the owner was replaced, without moving the checkpoint, and then ends", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      const errors: Array<unknown> = []
      yield* a.start(a.client.run((lease) =>
        Effect.andThen(
          Effect.sleep("300 millis"),
          Effect.uninterruptible(
            Effect.tapError(lease.commit("7-0" as never), (error) => Effect.sync(() => errors.push(error)))
          )
        )
      ))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("100 millis")
      const [entry, lease] = [...backend.entryLeases][0]!
      const other = { ...lease, value: "somebody", epoch: "else" }
      backend.entryLeases.set(entry, other)
      backend.streamLeases.set("s1", { ...backend.streamLeases.get("s1")!, ...other })
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual(
        errors.map((error) => error instanceof SimbaError.LeaseLost ? error.reason._tag : error),
        ["TakenOver"]
      )
      assert.strictEqual(backend.checkpoints.size, 0)
      assert.deepStrictEqual(yield* owned(a), [])
    })))
})

it.effect("if dead-lettering an unreadable announcement fails, the consumer continues and tries again later", () =>
  fleet.test(Effect.gen(function*() {
    const { a, backend } = yield* fleet.ofOne
    backend.add({ problem: "no JSON" })
    a.link.modes.deadLetterMalformed = "refuse"
    const running = yield* a.serve(1)
    yield* TestClock.adjust("30 seconds")
    assert.isUndefined(running.pollUnsafe())
    assert.lengthOf(yield* a.client.owned, 1)
    a.link.modes.deadLetterMalformed = "work"
    yield* TestClock.adjust("30 seconds")
    assert.deepStrictEqual(backend.dead.map(({ reason }) => reason), ["no JSON"])
  })))
