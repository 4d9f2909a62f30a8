/** Owners that die, hang, stall or lose their connection, and their successors. */
import type { SimbaError } from "@effect-simba/core"
import { StreamName } from "@effect-simba/core/streams"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import { perTurn } from "../support/perTurn.ts"
import { stalling } from "../support/stalling.ts"
import * as fleet from "../support/streamFleet.ts"

const owned = (consumer: fleet.Consumer) =>
  Effect.map(consumer.client.owned, (leases) => leases.map(({ stream }) => stream).sort())

/** A handler that records when it starts and how it ends. */
const noting = () => {
  const notes: Array<string> = []
  const handler = (lease: fleet.Lease) =>
    Effect.gen(function*() {
      const begin = yield* Clock.currentTimeMillis
      notes.push(`${lease.stream} begins`)
      return yield* Effect.onInterrupt(Effect.never, () =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          Effect.map(lease.isHeld, (held) =>
            notes.push(`${lease.stream} is interrupted after ${now - begin}${held ? ", still owned" : ""}`))))
    })
  return { notes, handler }
}

const losses = (lines: ReadonlyArray<string>) => lines.filter((line) => /lost|is over/.test(line))

const lossOf = (lease: fleet.Lease) =>
  Effect.map(Effect.forkChild(lease.lost, { startImmediately: true }), (fiber) => ({
    reason: () => {
      const exit = fiber.pollUnsafe() as Exit.Exit<SimbaError.LeaseLost> | undefined
      return exit !== undefined && Exit.isSuccess(exit) ? exit.value.reason._tag : undefined
    }
  }))

describe("an outage of 30 seconds", () => {
  it.effect("all data streams are taken again within a lease and a sweep after an outage, regardless of when the outage ends", () =>
    fleet.test(Effect.gen(function*() {
      for (let millis = 30_000; millis < 36_000; millis += 300) {
        const { a } = yield* fleet.ofOne
        yield* a.serve(3)
        yield* TestClock.adjust("1 second")
        a.link.mode = "fail"
        yield* TestClock.adjust(millis)
        assert.deepStrictEqual(yield* owned(a), [])
        a.link.mode = "work"
        yield* TestClock.adjust("4400 millis")
        assert.deepStrictEqual(yield* owned(a), ["s1", "s2", "s3"])
        yield* a.kill
      }
    })))
})

describe("an owner whose event loop stalls", () => {
  it.effect("all 500 handlers are interrupted in the same turn if their deadlines pass during the stall", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const [begun, interrupted] = [yield* perTurn, yield* perTurn]
      const { clock, stall } = yield* stalling
      const a = yield* Effect.provideService(open("a", { capacity: 500 }), Clock.Clock, clock)
      yield* a.serve(
        500,
        Effect.andThen(
          Effect.sync(begun.note),
          Effect.onInterrupt(Effect.never, () => Effect.sync(interrupted.note))
        )
      )
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(begun.take().all, 500)
      a.link.mode = "hang"
      interrupted.take()
      stall.millis = 2000
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(interrupted.take(), { most: 500, all: 500 })
    })))
})

describe("an owner that dies", () => {
  it.effect("a dead owner's successor logs one line for the streams that it takes over, but none for new announcements", () =>
    fleet.test(Effect.gen(function*() {
      const { lines, open } = yield* fleet.make
      const [a, b] = [yield* open("a"), yield* open("b")]
      yield* a.serve(3)
      yield* TestClock.adjust("1 second")
      yield* b.start(b.client.run(Effect.never))
      yield* TestClock.adjust("1 second")
      const takeOvers = () => lines.filter((line) => line.includes("Took over"))
      assert.deepStrictEqual(takeOvers(), [])
      yield* a.kill
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(takeOvers(), ["Info: Took over 3 data streams that had no owner"])
    })))

  it.effect("losses within half a second are logged as one line, and a single loss is logged with its reason", () =>
    fleet.test(Effect.gen(function*() {
      const { lines, open } = yield* fleet.make
      const a = yield* open("a", { capacity: 500 })
      yield* a.serve(1)
      yield* TestClock.adjust("1 second")
      a.link.mode = "fail"
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(losses(lines), [
        "Warn: Lease 1 of data stream \"s1\" is over: no renewal succeeded before its deadline, or its layer was closed. " +
        "Stop touching what it protects: another consumer may own it."
      ])
      a.link.mode = "work"
      const names = fleet.names(400)
      yield* a.client.announceAll(names.slice(0, 200))
      yield* TestClock.adjust("400 millis")
      yield* a.client.announceAll(names.slice(200))
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* owned(a)).length, 400)
      // Each second, two batches are renewed, so at some point their deadlines are less than half a second apart
      for (let spread = Infinity; spread >= 500;) {
        yield* TestClock.adjust("20 millis")
        const left = yield* Effect.flatMap(
          a.client.owned,
          Effect.forEach(({ timeLeft }) => Effect.map(timeLeft, Duration.toMillis))
        )
        spread = Math.max(...left) - Math.min(...left)
      }
      a.link.mode = "fail"
      yield* TestClock.adjust("3 seconds")
      const [, ...others] = losses(lines)
      assert.lengthOf(others, 1, others.join("\n"))
      assert.match(others[0]!, /^Warn: 400 data streams are lost \(BackendGone\): ("s\d+", ){5}\.\.\.$/)
      a.link.mode = "work"
    })))

  it.effect(
    "a dead owner is replaced within a lease and a sweep, even without published events",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a, backend, open } = yield* fleet.ofOne
        const b = yield* open("b")
        yield* a.serve(3)
        yield* TestClock.adjust("7 seconds")
        yield* b.start(b.client.run(Effect.never))
        yield* TestClock.adjust("7 seconds")
        yield* a.kill
        assert.deepStrictEqual(yield* owned(b), [])
        // A lease of 2 s, and a sweep interval of 2 s plus 20%
        yield* TestClock.adjust("4400 millis")
        assert.deepStrictEqual(yield* owned(b), ["s1", "s2", "s3"])
        assert.deepStrictEqual([...backend.failures.values()], [1, 1, 1])
        assert.isTrue((yield* b.client.owned).every(({ failures }) => failures === 1))
      })),
    { tags: ["G15"] }
  )

  it.effect("a dead owner is replaced immediately if expiries are published", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      backend.publishesExpiries = true
      const expiring = yield* Effect.forkChild(backend.expiring)
      const a = yield* open("a")
      const b = yield* open("b", { sweepInterval: "1 hour" })
      yield* a.serve(3)
      yield* b.start(b.client.run(Effect.never))
      yield* TestClock.adjust("5 seconds")
      yield* a.kill
      yield* TestClock.adjust("2200 millis")
      assert.deepStrictEqual(yield* owned(b), ["s1", "s2", "s3"])
      yield* Fiber.interrupt(expiring)
    })))

  it.effect(
    "a consumer that restarts under the same name immediately resumes its data streams",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a, backend, open } = yield* fleet.ofOne
        yield* a.serve(2)
        yield* TestClock.adjust("1 second")
        yield* a.kill
        const [first] = backend.rows
        // The old process's leases are already gone, as after a clean shutdown
        backend.entryLeases.clear()
        backend.streamLeases.clear()
        const repeated = yield* open("a", { sweepInterval: "1 hour" })
        yield* repeated.start(repeated.client.run(Effect.never))
        yield* TestClock.adjust("10 millis")
        assert.deepStrictEqual(yield* owned(repeated), ["s1", "s2"])
        assert.strictEqual(backend.rows[0], first)
      })),
    { tags: ["G16"] }
  )

  // With a short interval, there is almost always a sweep just before capacity becomes free
  it.effect.each(["2 seconds", "50 millis", "55 millis"] as const)(
    "a consumer takes orphans before new data streams (sweep interval: %s)",
    (sweep) =>
      fleet.test(Effect.gen(function*() {
        const { open } = yield* fleet.make
        const a = yield* open("a", { capacity: 1 })
        const b = yield* open("b", { capacity: 1, sweepInterval: sweep })
        const order: Array<string> = []
        yield* a.client.announceAll(fleet.names(6))
        yield* a.start(a.client.run(Effect.never))
        yield* TestClock.adjust("10 millis")
        yield* b.start(b.client.run(({ stream }) => {
          order.push(stream)
          return Effect.sleep("6 seconds")
        }))
        yield* TestClock.adjust("1 second")
        yield* a.kill
        yield* TestClock.adjust("18 seconds")
        assert.deepStrictEqual(order, ["s2", "s1", "s3", "s4"])
      }))
  )

  it.effect("a consumer does not request a data stream while its handler for an earlier lease is still running", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { sweepInterval: "500 millis" })
      yield* a.serve(1, Effect.uninterruptible(Effect.sleep("1 minute")))
      yield* TestClock.adjust("1 second")
      backend.entryLeases.clear()
      backend.streamLeases.clear()
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* owned(a), [])
      const asked = () => a.link.calls.filter((call) => call === "take").length
      assert.strictEqual(asked(), 1)
      yield* TestClock.adjust("40 seconds")
      assert.strictEqual(asked(), 1)
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(yield* owned(a), ["s1"])
    })))

  it.effect("a dead Go consumer's data streams are taken until the capacity is used up", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const go = yield* open("go")
      yield* go.serve(5)
      yield* TestClock.adjust("10 millis")
      yield* go.kill
      backend.goConsumers.add("simba-consumer-go")
      const a = yield* open("a", { capacity: 2 })
      yield* a.start(a.client.run(Effect.never))
      yield* TestClock.adjust("39 seconds")
      assert.lengthOf(yield* owned(a), 0)
      yield* TestClock.adjust("10 seconds")
      assert.lengthOf(yield* owned(a), 2)
    })))

  it.effect("an entry is not taken if another consumer has just read it, even before that consumer has a lease", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend, open } = yield* fleet.ofOne
      const b = yield* open("b")
      yield* b.client.announceAll(fleet.names(1))
      const [row] = backend.rows
      // Consumer a has read the entry, and is about to take the lease
      a.link.modes.take = "hang"
      yield* a.start(a.client.run(Effect.never))
      yield* TestClock.adjust("10 millis")
      b.link.delays.take = 300
      yield* b.start(b.client.run(Effect.never))
      while (!b.link.calls.includes("take")) yield* TestClock.adjust("10 millis")
      row!.delivered = backend.now()
      yield* TestClock.adjust("1 second")
      assert.strictEqual(row!.owner, "simba-consumer-a")
      assert.deepStrictEqual(yield* owned(b), [])
    })))

  it.effect(
    "a data stream is dead-lettered after maxFailures of its owners have died",
    () =>
      fleet.test(Effect.gen(function*() {
        const { backend, open } = yield* fleet.make
        for (let i = 0; i < 3; i++) {
          const a = yield* open(`a${i}`, { maxFailures: 3, deadLetterAfter: 0 })
          yield* a.serve(1)
          yield* TestClock.adjust("4400 millis")
          assert.deepStrictEqual(yield* owned(a), ["s1"])
          yield* a.kill
        }
        const b = yield* open("b", { maxFailures: 3, deadLetterAfter: 0 })
        yield* b.start(b.client.run(Effect.never))
        yield* TestClock.adjust("4400 millis")
        assert.deepStrictEqual(yield* owned(b), [])
        assert.strictEqual(backend.dead.length, 1)
      })),
    { tags: ["B52"] }
  )

  it.effect(
    "a loss does not count as a failure if the handler was waiting for messages",
    () =>
      fleet.test(Effect.gen(function*() {
        const { backend, open } = yield* fleet.make
        const a = yield* open("a", { deadLetterAfter: 0 })
        let runs = 0
        yield* a.start(a.client.run((lease) =>
          Effect.suspend(() => {
            runs++
            return lease.messagesAfter("0-0" as never, 1)
          })
        ))
        yield* a.client.announceAll(fleet.names(3))
        for (let i = 0; i < 12; i++) {
          yield* TestClock.adjust("10 seconds")
          a.link.mode = "fail"
          yield* TestClock.adjust("3 seconds")
          a.link.mode = "work"
        }
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual(runs, 39)
        assert.deepStrictEqual([...backend.failures.values()], [])
        assert.strictEqual((yield* owned(a)).length, 3)
      })),
    { tags: ["B52"] }
  )

  it.effect("a lease starts just before the claim is sent, not when the reply arrives", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      a.link.delays.take = 400
      yield* a.serve(1)
      while ((yield* a.client.owned).length === 0) yield* TestClock.adjust("1 millis")
      const [lease] = yield* a.client.owned
      assert.isAtMost(Duration.toMillis(yield* lease!.timeLeft), 1500)
    })))

  it.effect("if the reply to a claim arrives after the lease has expired, the stream is released without starting a handler", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const { clock, stall } = yield* stalling
      const a = yield* Effect.provideService(open("a"), Clock.Clock, clock)
      a.link.delays.take = 100
      let runs = 0
      yield* a.start(Effect.provideService(
        a.client.run(() => Effect.andThen(Effect.sync(() => runs++), Effect.never)),
        Clock.Clock,
        clock
      ))
      yield* a.client.announceAll(fleet.names(1))
      while (!a.link.calls.includes("take")) yield* TestClock.adjust("1 millis")
      stall.millis = 1950
      yield* TestClock.adjust("150 millis")
      assert.deepStrictEqual([runs, a.link.calls.filter((call) => call === "release").length], [0, 1])
      assert.strictEqual(backend.running.size, 0)
    })))

  it.effect("a dead owner is replaced within a sweep after the end of a long outage", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      yield* a.serve(3)
      for (let i = 0; i < 10; i++) {
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual((yield* owned(a)).length, 3)
        a.link.mode = "fail"
        yield* TestClock.adjust("30 seconds")
        a.link.mode = "work"
        yield* TestClock.adjust("2500 millis")
        assert.strictEqual((yield* owned(a)).length, 3)
      }
    })))

  it.effect("a process takes a lost data stream again only once its uninterruptible handler has ended", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      let running = 0
      let most = 0
      const work = Effect.acquireUseRelease(
        Effect.sync(() => {
          most = Math.max(most, ++running)
        }),
        () => Effect.uninterruptible(Effect.sleep("30 seconds")),
        () => Effect.sync(() => running--)
      )
      yield* a.serve(1, Effect.andThen(work, Effect.never))
      yield* TestClock.adjust("1 second")
      a.link.mode = "fail"
      yield* TestClock.adjust("3 seconds")
      a.link.mode = "work"
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(yield* owned(a), [])
      assert.isTrue(Option.isNone(yield* a.acquire("s1")))
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* owned(a), ["s1"])
      assert.strictEqual(most, 1)
      yield* TestClock.adjust("30 seconds")
    })))

  it.effect(
    "a consumer with free capacity takes a dead owner's data streams, even beyond its fair share",
    () =>
      fleet.test(Effect.gen(function*() {
        const { open } = yield* fleet.make
        const a = yield* open("a", { rebalance: true })
        const b = yield* open("b", { rebalance: true })
        yield* a.start(a.client.run(Effect.never))
        yield* b.start(b.client.run(Effect.never))
        yield* a.client.announceAll(fleet.names(10))
        yield* TestClock.adjust("1 minute")
        assert.strictEqual((yield* owned(a)).length, 5)
        yield* a.kill
        yield* TestClock.adjust("4400 millis")
        assert.strictEqual((yield* owned(b)).length, 10)
      })),
    { tags: ["B56"] }
  )
})

describe("an owner that is cut off", () => {
  it.effect(
    "handlers are interrupted at the local deadline, before successors start",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a, open } = yield* fleet.ofOne
        const b = yield* open("b")
        const { handler, notes } = noting()
        yield* a.serve(1, handler)
        yield* b.start(b.client.run(handler))
        yield* TestClock.adjust("500 millis")
        const loss = yield* lossOf((yield* a.client.owned)[0]!)
        a.link.mode = "hang"
        yield* TestClock.adjust("1399 millis")
        assert.isUndefined(loss.reason())
        yield* TestClock.adjust("1 millis")
        assert.strictEqual(loss.reason(), "BackendGone")
        yield* TestClock.adjust("5 seconds")
        assert.deepStrictEqual(notes, ["s1 begins", "s1 is interrupted after 1900", "s1 begins"])
        a.link.mode = "work"
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(yield* owned(b), ["s1"])
        assert.deepStrictEqual(yield* owned(a), [])
      })),
    { tags: ["B57"] }
  )

  it.effect(
    "failed renewals are retried, and no data stream is lost in a short outage, whenever it begins",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a } = yield* fleet.ofOne
        const { handler, notes } = noting()
        yield* a.serve(1, handler)
        yield* TestClock.adjust("900 millis")
        for (let i = 0; i < 40; i++) {
          // The lease of 2 s, less the margin, a heartbeat and the last pause. Hanging calls also take until their
          // timeout.
          const [mode, length] = i % 2 === 0 ? ["fail", 700] as const : ["hang", 250] as const
          a.link.mode = mode
          yield* TestClock.adjust(length)
          a.link.mode = "work"
          yield* TestClock.adjust(1000 + 37 * i)
        }
        assert.deepStrictEqual(notes, ["s1 begins"])
      })),
    { tags: ["G11"] }
  )

  it.effect("a renewed lease starts just before the renewal is sent, not when the reply arrives", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      a.link.delays.renew = 400
      yield* a.serve(1)
      yield* TestClock.adjust("10 millis")
      const [lease] = yield* a.client.owned
      const left = Effect.map(lease!.timeLeft, (left) => Math.round(Duration.toMillis(left)))
      const before = yield* left
      // The renewal is sent a second after the claim, and its reply arrives 400 ms later
      yield* TestClock.adjust("1389 millis")
      assert.strictEqual(yield* left, before - 1389)
      yield* TestClock.adjust("2 millis")
      assert.isAbove(yield* left, 1400)
      assert.isAtMost(yield* left, 1500)
    })))

  it.effect("an owner resumes work after an outage that was longer than the lease", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      const { handler, notes } = noting()
      yield* a.serve(1, handler)
      yield* TestClock.adjust("500 millis")
      a.link.mode = "fail"
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* owned(a), [])
      a.link.mode = "work"
      yield* TestClock.adjust("8 seconds")
      assert.deepStrictEqual(notes, ["s1 begins", "s1 is interrupted after 1900", "s1 begins"])
      assert.deepStrictEqual(backend.dead, [])
    })))

  it.effect("a machine that wakes up after its leases have ended has lost its data streams", () =>
    fleet.test(Effect.gen(function*() {
      const base = yield* Clock.Clock
      let asleep = 0
      const clock: Clock.Clock = {
        ...base,
        currentTimeMillisUnsafe: () => base.currentTimeMillisUnsafe() + asleep,
        currentTimeMillis: Effect.sync(() => base.currentTimeMillisUnsafe() + asleep),
        monotonicTimeNanosUnsafe: () => base.monotonicTimeNanosUnsafe(),
        sleep: (duration) => base.sleep(duration)
      }
      const { open } = yield* fleet.make
      const a = yield* Effect.provideService(open("a"), Clock.Clock, clock)
      yield* a.start(Effect.provideService(a.client.run(Effect.never), Clock.Clock, clock))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("500 millis")
      const [lease] = yield* a.client.owned
      yield* lease!.ensure
      asleep = 1399
      yield* lease!.ensure
      asleep = 1400
      assert.strictEqual((yield* Effect.flip(lease!.ensure)).reason._tag, "Expired")
      assert.strictEqual(Duration.toMillis(yield* lease!.timeLeft), 0)
    })))

  it.effect("a claim is repeated if its reply is lost, with one owner, one token and no failure", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      a.link.modes.take = "lost"
      yield* a.serve(1)
      yield* TestClock.adjust("400 millis")
      a.link.modes.take = "work"
      yield* TestClock.adjust("1 second")
      const [lease] = yield* a.client.owned
      assert.strictEqual(lease?.token, 1)
      assert.deepStrictEqual([...backend.failures.values()], [])
    })))
})

describe("losses, free capacity and unexpected entries", () => {
  it.effect("a loss interrupts a handler that is waiting for protected work, so it does not continue when that work ends", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      const ends: Array<string> = []
      yield* a.serve(
        1,
        (lease) =>
          Effect.onExit(Effect.ignore(lease.protect(Effect.never)), (exit) => Effect.sync(() => ends.push(exit._tag)))
      )
      yield* TestClock.adjust("500 millis")
      a.link.mode = "hang"
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(ends, ["Failure"])
    })))

  it.effect("vanished leases are lost and never recreated", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { sweepInterval: "1 hour" })
      const { handler, notes } = noting()
      yield* a.serve(1, handler)
      yield* TestClock.adjust("500 millis")
      const loss = yield* lossOf((yield* a.client.owned)[0]!)
      backend.entryLeases.clear()
      backend.streamLeases.clear()
      yield* TestClock.adjust("1 second")
      assert.strictEqual(loss.reason(), "Vanished")
      assert.deepStrictEqual(notes, ["s1 begins", "s1 is interrupted after 1000"])
      assert.strictEqual(backend.entryLeases.size, 0)
    })), { tags: ["G10"] })

  it.effect(
    "a handler that ends after its lease was lost does not affect a newer lease on the same data stream",
    () =>
      fleet.test(Effect.gen(function*() {
        const { backend, open } = yield* fleet.make
        const [a, b] = [yield* open("a"), yield* open("b")]
        // This uninterruptible handler runs long after its lease was lost
        yield* a.serve(1, Effect.uninterruptible(Effect.sleep("20 seconds")))
        yield* TestClock.adjust("500 millis")
        yield* b.start(b.client.run(Effect.never))
        backend.entryLeases.clear()
        backend.streamLeases.clear()
        yield* TestClock.adjust("5 seconds")
        const [lease] = yield* b.client.owned
        assert.strictEqual(lease?.token, 2)
        yield* TestClock.adjust("1 minute")
        yield* lease!.ensure
        assert.deepStrictEqual(backend.done, [])
      })),
    { tags: ["G13"] }
  )

  it.effect(
    "a done request that arrives after its lease has expired does not affect a newer lease",
    () =>
      fleet.test(Effect.gen(function*() {
        const { backend, open } = yield* fleet.make
        const [a, b] = [yield* open("a"), yield* open("b", { sweepInterval: "50 millis" })]
        a.link.modes.renew = "fail"
        a.link.delays.done = 490
        yield* a.serve(1, Effect.sleep("1600 millis"))
        yield* TestClock.adjust("1700 millis")
        yield* b.start(b.client.run(Effect.never))
        backend.entryLeases.clear()
        backend.streamLeases.clear()
        // The lease is lost at 1,900 ms, and b takes the data stream after 2,000 ms. The done request arrives at 2,090
        // ms.
        yield* TestClock.adjust("380 millis")
        const [lease] = yield* b.client.owned
        assert.strictEqual(lease?.token, 2)
        yield* TestClock.adjust("10 seconds")
        yield* lease!.ensure
      })),
    { tags: ["G13"] }
  )

  it.effect("a handler that outlives its lease uses up capacity until it ends", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { capacity: 1 })
      let running = 0
      yield* a.start(a.client.run(() => {
        running++
        assert.strictEqual(running, 1)
        return Effect.ensuring(Effect.uninterruptible(Effect.sleep("20 seconds")), Effect.sync(() => running--))
      }))
      yield* a.client.announceAll(fleet.names(2))
      yield* TestClock.adjust("500 millis")
      backend.entryLeases.clear()
      backend.streamLeases.clear()
      yield* TestClock.adjust("19 seconds")
      assert.deepStrictEqual(yield* owned(a), [])
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual((yield* owned(a)).length, 1)
    })))

  it.effect("a lost data stream's handler ends immediately, even if requests for hundreds of other streams get no reply", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { capacity: 500 })
      a.link.modes.done = "hang"
      yield* a.serve(401, (lease) => lease.stream === "s401" ? Effect.never : Effect.sleep("900 millis"))
      yield* Effect.repeat(TestClock.adjust("10 millis"), { times: 9 })
      assert.lengthOf(yield* owned(a), 401)
      backend.entryLeases.delete(backend.rows[400]!.entry)
      backend.streamLeases.delete("s401")
      yield* TestClock.adjust("1150 millis")
      assert.lengthOf(a.link.calls.filter((call) => call === "done"), 400)
      // The claim is sent because this consumer no longer uses the data stream
      yield* Effect.exit(a.acquire("s401"))
      assert.include(a.link.calls, "find")
    })))

  it.effect("orphans that a sweep had no capacity for are taken as soon as capacity is free, not only at the next sweep", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a")
      yield* a.serve(4)
      yield* TestClock.adjust("1 second")
      yield* a.kill
      const b = yield* open("b", { capacity: 1, sweepInterval: "20 seconds" })
      const ends: Array<number> = []
      yield* b.start(b.client.run(Effect.andThen(
        Effect.sleep("10 millis"),
        Effect.map(Clock.currentTimeMillis, (now) => ends.push(now))
      )))
      yield* TestClock.adjust("30 seconds")
      assert.lengthOf(ends, 4)
      // A blocked read of announcements ends within a second
      assert.isBelow(ends[3]! - ends[0]!, 4000)
    })))

  it.effect("an announcement that is read while an orphan uses up the capacity is taken before the next one, without waiting for a sweep", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const gone = yield* open("gone")
      gone.link.modes.take = "hang"
      yield* gone.serve(1)
      yield* TestClock.adjust("10 millis")
      yield* gone.kill
      const b = yield* open("b", { capacity: 2, sweepInterval: "1 hour" })
      b.link.delays.read = 50
      yield* b.start(b.client.run(Effect.sleep("5 seconds")))
      yield* TestClock.adjust("2500 millis")
      // The blocked read of consumer b asks for at most two announcements
      b.link.delays.take = 300
      const [row] = backend.rows
      backend.hint({ _tag: "Released", stream: StreamName.StreamName.make("s1"), entry: row!.entry })
      yield* TestClock.adjust("150 millis")
      const producer = yield* open("producer")
      yield* producer.client.announceAll(fleet.names(3))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* owned(b), ["s1", "s2"])
      assert.strictEqual(backend.rows[2]!.owner, "simba-consumer-b")
      yield* TestClock.adjust("14 seconds")
      assert.deepStrictEqual(backend.done, ["s1", "s2", "s3"])
    })))

  it.effect("a loss frees the capacity for one data stream", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { capacity: 1 })
      yield* a.serve(6)
      for (let i = 0; i < 3; i++) {
        yield* TestClock.adjust("10 seconds")
        assert.lengthOf(yield* owned(a), 1)
        backend.entryLeases.clear()
        backend.streamLeases.clear()
      }
      yield* TestClock.adjust("10 seconds")
      assert.lengthOf(yield* owned(a), 1)
    })))

  it.effect(
    "a consumer continues with other entries if one cannot be taken or read",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a, backend } = yield* fleet.ofOne
        yield* a.start(a.client.run(Effect.never))
        backend.add({ problem: "no JSON" })
        yield* a.client.announceAll(fleet.names(1))
        a.link.modes.take = "fail"
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual(backend.dead[0]?.reason, "no JSON")
        a.link.modes.take = "work"
        backend.add({ problem: "no JSON either" })
        yield* a.client.announceAll(fleet.names(2))
        yield* TestClock.adjust("8 seconds")
        assert.deepStrictEqual(yield* owned(a), ["s1", "s2"])
        assert.strictEqual(backend.dead.length, 2)
      })),
    { tags: ["G1", "G2"] }
  )

  it.effect("another consumer's unreadable entry is left to that consumer until it has been silent for a long time", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { reapAfter: "1 minute" })
      backend.add({ problem: "not for us" })
      backend.rows[0]!.owner = "redis-consumer-of-another-kind"
      a.link.modes.read = "hang"
      yield* a.start(a.client.run(Effect.never))
      yield* TestClock.adjust("55 seconds")
      assert.lengthOf(backend.dead, 0)
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(backend.dead.map(({ reason }) => reason), ["not for us"])
    })))

  it.effect("a second entry for the same data stream is taken when the first one is done", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      let running = 0
      yield* a.start(a.client.run(() => {
        assert.strictEqual(++running, 1)
        return Effect.ensuring(Effect.sleep("10 seconds"), Effect.sync(() => running--))
      }))
      backend.add({ stream: "s1" })
      backend.add({ stream: "s1" })
      yield* TestClock.adjust("25 seconds")
      assert.deepStrictEqual(backend.done, ["s1", "s1"])
    })))
})

describe("a handler that makes no progress", { tags: ["G32"] }, () => {
  it.effect("a handler keeps its data stream while it makes progress, and otherwise loses it even though its lease is renewed", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { progressTimeout: "10 seconds" })
      const b = yield* open("b", { progressTimeout: "10 seconds" })
      yield* a.serve(1)
      yield* TestClock.adjust("1 second")
      const loss = yield* lossOf((yield* a.client.owned)[0]!)
      yield* b.start(b.client.run((lease) => Effect.forever(Effect.andThen(Effect.sleep("9 seconds"), lease.progress))))
      yield* TestClock.adjust("8900 millis")
      assert.isUndefined(loss.reason())
      yield* TestClock.adjust("200 millis")
      assert.strictEqual(loss.reason(), "Stalled")
      // Either consumer may take it. Consumer a hangs again and loses it, while b keeps it.
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(yield* owned(b), ["s1"])
      // Progress reset the count of failures
      assert.deepStrictEqual([...backend.failures.values()], [0])
    })))

  it.effect("commits count as progress, and waiting for messages is not a lack of progress", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { progressTimeout: "10 seconds" })
      let commits = 0
      yield* a.start(a.client.run((lease) =>
        lease.stream === "s1"
          ? lease.messagesAfter("0-0" as never, 10)
          : Effect.forever(Effect.andThen(
            Effect.sleep("9 seconds"),
            Effect.suspend(() => lease.commit(`${++commits}-0` as never))
          ))
      ))
      yield* a.client.announceAll(fleet.names(2))
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual(yield* owned(a), ["s1", "s2"])
      assert.isAbove(commits, 30)
      assert.deepStrictEqual((yield* a.client.owned).map(({ token }) => token), [1, 2])
    })))
})
