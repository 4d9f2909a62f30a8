/** Tests hand-overs between members, including those whose old owner or receiver dies. */
import { StreamMetrics, StreamName } from "@effect-simba/core/streams"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Metric, Schedule } from "effect"
import { TestClock } from "effect/testing"
import * as fleet from "../support/streamFleet.ts"

const count = (consumer: fleet.Consumer) => Effect.map(consumer.client.owned, ({ length }) => length)

describe("balance", () => {
  it.effect(
    "a new consumer gets its share one data stream at a time, and no stream ever has two handlers",
    () =>
      fleet.test(Effect.gen(function*() {
        const { backend, open } = yield* fleet.make
        const running = new Set<string>()
        let moves = 0
        const handler = (lease: fleet.Lease) =>
          Effect.acquireUseRelease(
            Effect.sync(() => {
              assert.isFalse(running.has(lease.stream))
              running.add(lease.stream)
              moves++
            }),
            () => Effect.andThen(lease.revoked, lease.yield),
            () => Effect.andThen(Effect.sleep("200 millis"), Effect.sync(() => running.delete(lease.stream)))
          )
        const a = yield* open("a", { rebalance: true })
        yield* a.serve(9, handler)
        yield* TestClock.adjust("20 seconds")
        const b = yield* open("b", { rebalance: true, capacity: 32 })
        yield* b.start(b.client.run(handler))
        yield* TestClock.adjust("2 minutes")
        // The capacities are 64 and 32
        assert.deepStrictEqual([yield* count(a), yield* count(b)], [6, 3])
        assert.strictEqual(moves, 12)
        yield* TestClock.adjust("10 minutes")
        assert.strictEqual(moves, 12, "nothing moves after that")
        assert.deepStrictEqual([...backend.failures.values()], [])
        assert.isTrue((yield* b.client.owned).every(({ info }) => info !== undefined))
      })),
    { tags: ["G32", "B55"] }
  )

  it.effect("a handler that ignores its revocation is interrupted after the grace period, and then its data stream is handed over", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true, gracePeriod: "3 seconds" })
      const b = yield* open("b", { rebalance: true })
      yield* a.serve(2)
      yield* TestClock.adjust("20 seconds")
      yield* b.start(b.client.run(Effect.never))
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual([yield* count(a), yield* count(b)], [1, 1])
    })))

  it.effect("data streams with waiting handlers are handed over, and handlers that are processing a message are not interrupted", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true, gracePeriod: "3 seconds" })
      const b = yield* open("b", { rebalance: true })
      const interrupted: Array<string> = []
      // Only the handler for s1, the oldest data stream, is waiting
      const handler = (lease: fleet.Lease) =>
        Effect.timeoutOption(lease.messagesAfter("0-0" as never, 1), "10 millis").pipe(
          Effect.andThen(lease.stream === "s1" ? lease.messagesAfter("0-0" as never, 1) : Effect.sleep("1 hour")),
          Effect.onInterrupt(() => Effect.sync(() => interrupted.push(lease.stream)))
        )
      yield* a.serve(3, handler)
      yield* TestClock.adjust("20 seconds")
      yield* b.start(b.client.run(handler))
      yield* TestClock.adjust("30 minutes")
      assert.deepStrictEqual(interrupted, ["s1"])
      assert.deepStrictEqual((yield* b.client.owned).map(({ stream }) => stream), ["s1"])
      yield* TestClock.adjust("31 minutes")
    })))

  /** A handler that reads through its lease, and processes a message for this many milliseconds. */
  const busyFor = (millis: number, notes: Array<string>) => (lease: fleet.Lease) =>
    Effect.timeoutOption(lease.messagesAfter("0-0" as never, 1), "10 millis").pipe(
      Effect.andThen(Effect.sleep(millis)),
      Effect.onInterrupt(() => Effect.sync(() => notes.push(`${lease.stream} is interrupted`))),
      Effect.andThen(Effect.map(lease.isRevoked, (isRevoked) => notes.push(`${lease.stream} ${isRevoked}`))),
      Effect.andThen(lease.yield)
    )

  it.effect("a data stream is handed over only after its current message has been processed, however long that takes", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true, gracePeriod: "3 seconds" })
      const b = yield* open("b", { rebalance: true })
      const notes: Array<string> = []
      yield* a.serve(2, busyFor(60_000, notes))
      yield* TestClock.adjust("20 seconds")
      yield* b.start(b.client.run(Effect.never))
      yield* TestClock.adjust("39 seconds")
      assert.deepStrictEqual(notes, [])
      assert.strictEqual(yield* count(b), 0)
      yield* TestClock.adjust("5 seconds")
      assert.include(notes, "s2 true")
      assert.isAtLeast(yield* count(b), 1)
      assert.notInclude(notes.join(), "interrupted")
    })))

  it.effect("a pause interrupts a busy handler after the grace period, even if its data stream was already revoked for another consumer", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true, gracePeriod: "3 seconds" })
      const b = yield* open("b", { rebalance: true })
      const notes: Array<string> = []
      yield* a.serve(2, busyFor(3_600_000, notes))
      yield* TestClock.adjust("20 seconds")
      yield* b.start(b.client.run(Effect.never))
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(notes, [])
      backend.isPaused = true
      yield* TestClock.adjust("5 seconds")
      assert.sameMembers(notes, ["s1 is interrupted", "s2 is interrupted"])
      assert.deepStrictEqual([yield* count(a), yield* count(b)], [0, 0])
      assert.deepStrictEqual([...backend.failures.values()], [])
    })))

  it.effect("a pause keeps a data stream revoked, even if another one is handed over in its place", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true, gracePeriod: "3 seconds" })
      const b = yield* open("b", { rebalance: true })
      const notes: Array<string> = []
      const wait = (lease: fleet.Lease) => lease.messagesAfter("0-0" as never, 1)
      // Both handlers are busy when the other consumer joins, and s2 is revoked. Later, the handler for s1 waits for
      // messages, and s2 is paused.
      yield* a.serve(2, (lease): Effect.Effect<unknown, unknown> =>
        Effect.gen(function*() {
          yield* Effect.timeoutOption(wait(lease), "10 millis")
          if (lease.stream === "s1") return yield* Effect.andThen(Effect.sleep("40 seconds"), wait(lease))
          yield* Effect.sleep("30 seconds")
          notes.push(`revoked ${yield* lease.isRevoked}`)
          yield* Effect.sleep("12500 millis")
          notes.push(`revoked ${yield* lease.isRevoked}`)
          return yield* lease.yield
        }))
      yield* TestClock.adjust("20 seconds")
      yield* b.start(b.client.run(wait))
      yield* TestClock.adjust("19 seconds")
      backend.pausedStreams = [StreamName.StreamName.make("s2")]
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(notes, ["revoked true", "revoked true"])
      assert.deepStrictEqual([yield* count(a), yield* count(b)], [0, 1])
    })))

  it.effect("a data stream that is paused during its hand-over is not adopted, and no failure is counted", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true, gracePeriod: "10 seconds" })
      const b = yield* open("b", { rebalance: true })
      let revoked = 0
      yield* a.serve(2, (lease) =>
        lease.revoked.pipe(
          Effect.andThen(Effect.sync(() => {
            if (revoked++ === 0) backend.isPaused = true
          })),
          Effect.andThen(Effect.sleep("3 seconds")),
          Effect.andThen(lease.yield)
        ))
      yield* TestClock.adjust("20 seconds")
      let started = 0
      yield* b.start(b.client.run(Effect.andThen(Effect.sync(() => started++), Effect.never)))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(revoked, 2)
      assert.deepStrictEqual([started, yield* count(a), yield* count(b)], [0, 0, 0])
      assert.deepStrictEqual([...backend.failures.values()], [])
      backend.isPaused = false
      yield* TestClock.adjust("1 minute")
      // The consumer that sweeps first takes both data streams, then hands one over
      assert.include([1, 2], started)
      assert.deepStrictEqual([yield* count(a), yield* count(b)], [1, 1])
      assert.deepStrictEqual([...backend.failures.values()], [])
    })))

  it.effect("a message is not interrupted, even if its processing starts just as the data stream is revoked", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true, gracePeriod: "1 second" })
      const b = yield* open("b", { rebalance: true })
      const interrupted: Array<string> = []
      // Waits briefly for messages until it is revoked, then works for an hour
      yield* a.serve(2, (lease) =>
        Effect.gen(function*() {
          while (!(yield* lease.isRevoked)) {
            yield* Effect.timeoutOption(lease.messagesAfter("0-0" as never, 1), "10 millis")
          }
          yield* Effect.onInterrupt(Effect.sleep("1 hour"), () => Effect.sync(() => interrupted.push(lease.stream)))
        }))
      yield* TestClock.adjust("20 seconds")
      yield* b.start(b.client.run(Effect.never))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(interrupted, [])
    })))

  it.effect.each(["is processing a message", "cannot be interrupted"] as const)(
    "a handler that %s does not prevent idle data streams from being handed over after the grace period",
    (how) =>
      fleet.test(Effect.gen(function*() {
        const { lines, open } = yield* fleet.make
        const a = yield* open("a", { rebalance: true, gracePeriod: "3 seconds" })
        const b = yield* open("b", { rebalance: true })
        let isStuck = 0
        const wait = (lease: fleet.Lease) => lease.messagesAfter("0-0" as never, 1)
        const stuck = (lease: fleet.Lease): Effect.Effect<unknown, unknown> =>
          how === "cannot be interrupted"
            ? Effect.uninterruptible(Effect.sleep("1 hour"))
            : Effect.andThen(Effect.timeoutOption(wait(lease), "10 millis"), Effect.sleep("1 hour"))
        // Both handlers are busy when the other consumer joins. Later, the handler for s1 waits for messages.
        yield* a.serve(2, (lease): Effect.Effect<unknown, unknown> =>
          lease.stream === "s2" ? Effect.suspend(() => (isStuck++, stuck(lease))) : Effect.andThen(
            Effect.timeoutOption(wait(lease), "10 millis"),
            Effect.andThen(Effect.sleep("40 seconds"), wait(lease))
          ))
        yield* TestClock.adjust("20 seconds")
        yield* b.start(b.client.run(wait))
        yield* TestClock.adjust("15 seconds")
        assert.lengthOf(
          lines.filter((line) =>
            line.includes("is revoked for simba-consumer-b")
          ),
          1
        )
        yield* TestClock.adjust("25 seconds")
        assert.deepStrictEqual((yield* b.client.owned).map(({ stream }) => stream), ["s1"])
        // s2 stays with its owner, because its revocation is withdrawn
        yield* TestClock.adjust("30 seconds")
        assert.deepStrictEqual([yield* count(a), yield* count(b), isStuck], [1, 1, 1])
        assert.notInclude(lines.join(), "0 data streams are revoked")
        yield* TestClock.adjust("1 hour")
      }))
  )

  it.effect("a handler that yields after its revocation was withdrawn runs again on the same consumer", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true, gracePeriod: "3 seconds" })
      const b = yield* open("b", { rebalance: true })
      const began: Array<string> = []
      const wait = (lease: fleet.Lease) => lease.messagesAfter("0-0" as never, 1)
      yield* a.serve(2, (lease) =>
        Effect.suspend(() => {
          began.push(lease.stream)
          const end: Effect.Effect<unknown, unknown> = lease.stream === "s2"
            ? Effect.andThen(lease.isRevoked, Effect.andThen(Effect.sleep("30 seconds"), lease.yield))
            : wait(lease)
          return Effect.timeoutOption(wait(lease), "10 millis").pipe(
            Effect.andThen(Effect.sleep("40 seconds")),
            Effect.andThen(end)
          )
        }))
      yield* TestClock.adjust("20 seconds")
      yield* b.start(b.client.run(wait))
      yield* TestClock.adjust("80 seconds")
      assert.deepStrictEqual(began, ["s1", "s2", "s2"])
      assert.deepStrictEqual((yield* a.client.owned).map(({ stream }) => stream), ["s2"])
      assert.notInclude(a.link.calls, "release")
      // The second run yields without a revocation
      yield* TestClock.adjust("1 minute")
      assert.include(a.link.calls, "release")
    })))

  it.effect("a handler that fails after its revocation was withdrawn and then yields does not run a third time", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true, gracePeriod: "3 seconds" })
      const b = yield* open("b", { rebalance: true })
      let runs = 0
      const wait = (lease: fleet.Lease): Effect.Effect<unknown, unknown> => lease.messagesAfter("0-0" as never, 1)
      const failing = (lease: fleet.Lease): Effect.Effect<unknown, unknown> =>
        Effect.andThen(lease.isRevoked, Effect.andThen(Effect.sleep("30 seconds"), Effect.fail("no")))
      yield* a.start(
        a.client.run(
          (lease): Effect.Effect<unknown, unknown> =>
            lease.stream === "s2" && ++runs > 1 ? lease.yield : Effect.timeoutOption(wait(lease), "10 millis").pipe(
              Effect.andThen(Effect.sleep("40 seconds")),
              Effect.andThen(lease.stream === "s2" ? failing(lease) : wait(lease))
            ),
          {
            retry: Schedule.spaced("1 second"),
            onError: () => Effect.void
          }
        )
      )
      yield* a.client.announceAll(fleet.names(2))
      yield* TestClock.adjust("20 seconds")
      yield* b.start(b.client.run(wait))
      yield* TestClock.adjust("51500 millis")
      assert.deepStrictEqual([runs, a.link.calls.filter((call) => call === "release").length], [2, 1])
    })))

  it.effect("a surplus of hundreds of idle data streams is handed over within a minute without interrupting a handler", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, lines, open } = yield* fleet.make
      const interrupted = new Set<string>()
      const wait = (lease: fleet.Lease) =>
        Effect.andThen(
          Effect.raceFirst(lease.messagesAfter("0-0" as never, 1), lease.revoked),
          Effect.onInterrupt(lease.yield, () => Effect.sync(() => interrupted.add(lease.stream)))
        )
      const a = yield* open("a", { rebalance: true, capacity: 600 })
      yield* a.serve(600, wait)
      yield* TestClock.adjust("20 seconds")
      const b = yield* open("b", { rebalance: true, capacity: 600 })
      yield* b.start(b.client.run(wait))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([yield* count(a), yield* count(b), backend.failures.size], [300, 300, 0])
      assert.strictEqual(interrupted.size, 0)
      assert.isTrue(lines.some((line) => /\d\d data streams are revoked for simba-consumer-b/.test(line)))
    })))

  it.effect("after a hand-over, the lease starts just before the confirmation is sent", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true })
      const b = yield* open("b", { rebalance: true })
      const handler = (lease: fleet.Lease) => Effect.andThen(lease.revoked, lease.yield)
      yield* a.serve(2, handler)
      yield* TestClock.adjust("20 seconds")
      b.link.delays.renew = 400
      yield* b.start(b.client.run(handler))
      while ((yield* count(b)) === 0) yield* TestClock.adjust("1 millis")
      const [lease] = yield* b.client.owned
      assert.isAtMost(Duration.toMillis(yield* lease!.timeLeft), 1500)
    })))

  it.effect("a hand-over is not logged as a loss if its reply is lost", () =>
    fleet.test(Effect.gen(function*() {
      const { lines, open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true })
      const b = yield* open("b", { rebalance: true })
      yield* a.serve(2, (lease) => Effect.andThen(lease.revoked, lease.yield))
      yield* TestClock.adjust("20 seconds")
      a.link.modes.handOver = "lost"
      yield* b.start(b.client.run(Effect.never))
      while ((yield* count(b)) === 0) yield* TestClock.adjust("100 millis")
      a.link.modes.handOver = "work"
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual([yield* count(a), yield* count(b)], [1, 1])
      assert.deepStrictEqual(lines.filter((line) => line.includes("is lost")), [])
      assert.lengthOf(lines.filter((line) => line.includes("Handing a data stream over failed; retrying")), 1)
    })))

  it.effect("if a hand-over signal is lost, the next sweep adopts the data stream", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      backend.hint = () => {}
      const a = yield* open("a", { rebalance: true, sweepInterval: "1 hour" })
      const b = yield* open("b", { rebalance: true, sweepInterval: "500 millis" })
      yield* a.serve(2, (lease) => Effect.andThen(lease.revoked, lease.yield))
      yield* TestClock.adjust("20 seconds")
      const before = yield* Metric.value(StreamMetrics.stream.acquisitions.handOver)
      yield* b.start(b.client.run(Effect.never))
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual([yield* count(a), yield* count(b)], [1, 1])
      const { count: adopted } = yield* Metric.value(StreamMetrics.stream.acquisitions.handOver)
      assert.strictEqual(adopted - before.count, 1)
    })))

  it.effect("rebalancing can be disabled on either side", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true })
      const b = yield* open("b", { rebalance: false })
      yield* a.serve(4)
      yield* TestClock.adjust("10 seconds")
      yield* b.start(b.client.run(Effect.never))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([yield* count(a), yield* count(b)], [4, 0])
      assert.deepStrictEqual([...backend.members.keys()], ["simba-consumer-a"])
    })))

  it.effect(
    "a data stream that is handed over to a dead member is an orphan after the confirm period, and is taken",
    () =>
      fleet.test(Effect.gen(function*() {
        const { backend, open } = yield* fleet.make
        const a = yield* open("a", { rebalance: true })
        const b = yield* open("b", { rebalance: true })
        yield* a.serve(4, (lease) => Effect.andThen(lease.revoked, lease.yield))
        yield* TestClock.adjust("20 seconds")
        yield* b.start(b.client.run(Effect.never))
        yield* TestClock.adjust("1500 millis")
        // b stays registered, but receives neither hand-overs nor announcements
        b.link.modes.handedOver = "hang"
        b.link.modes.renew = "hang"
        b.link.modes.pending = "hang"
        b.link.modes.read = "hang"
        let handedOver = false
        for (let i = 0; i < 200 && !handedOver; i++) {
          yield* TestClock.adjust("100 millis")
          handedOver = backend.rows.some((row) => row.owner === "simba-consumer-b")
        }
        assert.isTrue(handedOver)
        assert.strictEqual(yield* count(a), 3)
        b.link.mode = "hang"
        yield* TestClock.adjust("8 seconds")
        assert.strictEqual(yield* count(a), 4)
      })),
    { tags: ["B55"] }
  )

  it.effect("a data stream is not owned if it is gone before its hand-over is confirmed", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true, sweepInterval: "1 hour" })
      const b = yield* open("b", { rebalance: true, sweepInterval: "1 hour" })
      yield* a.serve(2, (lease) => Effect.andThen(lease.revoked, lease.yield))
      yield* TestClock.adjust("20 seconds")
      yield* b.start(b.client.run(Effect.never))
      b.link.delays.renew = 300
      while (!b.link.calls.includes("renew")) yield* TestClock.adjust("50 millis")
      const [row] = backend.rows.filter(({ owner }) => owner === "simba-consumer-b")
      backend.entryLeases.delete(row!.entry)
      backend.streamLeases.delete(row!.content._tag === "Announced" ? row!.content.stream : "")
      yield* TestClock.adjust("350 millis")
      assert.strictEqual(yield* count(b), 0)
    })))

  it.effect("if a hand-over cannot be confirmed, the data stream is released and no failure is counted", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, lines, open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true })
      const b = yield* open("b", { rebalance: true })
      yield* a.serve(2, (lease) => Effect.andThen(lease.revoked, lease.yield))
      yield* TestClock.adjust("20 seconds")
      yield* b.start(b.client.run(Effect.never))
      b.link.modes.renew = "fail"
      // Keep b from taking anything in its own sweeps
      b.link.modes.pending = "hang"
      while (!b.link.calls.includes("renew")) yield* TestClock.adjust("50 millis")
      yield* TestClock.adjust("5 seconds")
      assert.isTrue(b.link.calls.includes("release"))
      assert.deepStrictEqual([...backend.failures.values()], [])
      assert.match(lines.join("\n"), /Warn: Cannot confirm 1 data stream\(s\) that were handed over: /)
    })))

  it.effect("failures before a hand-over count until the receiver's handler reports progress", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true })
      const b = yield* open("b", { rebalance: true })
      const retry = Schedule.spaced("1 second")
      yield* a.start(a.client.run(
        (lease): Effect.Effect<never, unknown> =>
          lease.failures < 2 ? Effect.fail("a") : Effect.andThen(lease.revoked, lease.yield),
        { retry }
      ))
      yield* a.client.announceAll(fleet.names(2))
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual([...backend.failures.values()], [2, 2])
      const before: Array<number> = []
      yield* b.start(b.client.run(
        (lease) => {
          before.push(lease.failures)
          return lease.progress.pipe(Effect.andThen(Effect.sleep("100 millis")), Effect.andThen(Effect.fail("b")))
        },
        { retry }
      ))
      while (before.length < 2) yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual(before, [2, 1])
      assert.deepStrictEqual([...backend.failures.values()].sort(), [1, 2])
    })))

  it.effect("a closing consumer is no longer a member while its handlers are ending", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true })
      yield* a.serve(1)
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(backend.members.size, 1)
      const closing = yield* Effect.forkChild(a.close, { startImmediately: true })
      yield* TestClock.adjust("100 millis")
      assert.strictEqual(backend.members.size, 0)
      assert.strictEqual(yield* count(a), 1)
      yield* TestClock.adjust("10 seconds")
      assert.isDefined(closing.pollUnsafe())
    })))

  it.effect("if a consumer dies during a handler's grace period, all its data streams are taken over", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true, gracePeriod: "10 seconds" })
      const b = yield* open("b", { rebalance: true })
      let asked = false
      yield* a.start(a.client.run((lease) =>
        Effect.andThen(
          lease.revoked,
          Effect.suspend(() => {
            asked = true
            return Effect.never
          })
        )
      ))
      yield* a.client.announceAll(fleet.names(4))
      yield* TestClock.adjust("20 seconds")
      yield* b.start(b.client.run(Effect.never))
      for (let i = 0; i < 200 && !asked; i++) yield* TestClock.adjust("100 millis")
      assert.isTrue(asked)
      yield* a.kill
      yield* TestClock.adjust("4400 millis")
      assert.strictEqual(yield* count(b), 4)
    })))
})
