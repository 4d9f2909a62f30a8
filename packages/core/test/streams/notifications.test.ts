/** Tests notifications and claims by name for programs that run their own handlers. */
import { type StreamClient, StreamMetrics, type StreamNotification } from "@effect-simba/core/streams"
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Duration, Effect, Exit, Fiber, Metric, Option, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { check } from "../../src/streams/internal/config.ts"
import * as notificationQueue from "../../src/streams/internal/notificationQueue.ts"
import type { Backend } from "../support/streamBackend.ts"
import * as fleet from "../support/streamFleet.ts"

type Notification = StreamNotification.StreamNotification

const owned = (consumer: fleet.Consumer) =>
  Effect.map(consumer.client.owned, (leases) => leases.map(({ stream }) => stream).sort())

const collecting = (consumer: fleet.Consumer) =>
  Effect.gen(function*() {
    const observed: Array<Notification> = []
    const reading = Stream.runForEach(
      consumer.client.notifications,
      (notification) => Effect.sync(() => observed.push(notification))
    )
    const fiber = yield* Effect.forkChild(reading, { startImmediately: true })
    return { observed, fiber, tags: () => observed.map(({ _tag }) => _tag) }
  })

describe("notifications", () => {
  it.effect("notifications report added and disowned data streams, and end with StreamTerminated when the client closes", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { gracePeriod: 0, sweepInterval: "1 hour" })
      const { fiber, observed, tags } = yield* collecting(a)
      yield* a.client.announceAll(fleet.names(2))
      yield* TestClock.adjust("10 millis")
      yield* TestClock.adjust("490 millis")
      assert.deepStrictEqual(tags(), ["StreamAdded", "StreamAdded"])
      backend.entryLeases.delete(backend.rows[0]!.entry)
      backend.streamLeases.delete("s1")
      yield* TestClock.adjust("1 second")
      const last = observed[2]!
      assert.isTrue(last._tag === "StreamDisowned" && last.stream === "s1" && last.reason._tag === "Vanished")
      yield* a.close
      yield* Fiber.join(fiber)
      assert.strictEqual(tags().at(-1), "StreamTerminated")
      assert.strictEqual(observed.length, 4)
      assert.strictEqual(backend.done.length, 0)
    })))

  it.effect(
    "there is no notification about a data stream that the user marked as done or released",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a, backend } = yield* fleet.ofOne
        const { tags } = yield* collecting(a)
        yield* a.client.announceAll(fleet.names(2))
        yield* TestClock.adjust("10 millis")
        yield* a.done("s1")
        yield* a.release("s2")
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(tags(), ["StreamAdded", "StreamAdded"])
        assert.deepStrictEqual(backend.done, ["s1"])
        assert.strictEqual((yield* Effect.flip(a.done("s1")))._tag, "NotOwned")
      })),
    { tags: ["B57"] }
  )

  it.effect(
    "a backlog of notifications is bounded, blocks reading announcements, and does not delay closing",
    () =>
      fleet.test(Effect.gen(function*() {
        const { backend, open } = yield* fleet.make
        const a = yield* open("a", { capacity: 5000, gracePeriod: 0 })
        yield* a.client.announceAll(fleet.names(3000))
        // These entries are pending from the consumer's earlier process
        for (const row of backend.rows.slice(0, 1000)) row.owner = "simba-consumer-a"
        const reading = yield* a.start(Effect.scoped(
          Effect.flatMap(Stream.toPull(a.client.notifications), (pull) => Effect.andThen(pull, Effect.never))
        ))
        yield* TestClock.adjust("10 seconds")
        const held = (yield* a.client.owned).length
        // One more batch of 200 may be taken before the queue is full
        assert.isAtMost(held, 1000 + 200)
        const closing = yield* Effect.forkChild(a.close, { startImmediately: true })
        // Advance the clock in steps, because thousands of data streams take several turns of the event loop
        yield* Effect.repeat(TestClock.adjust("50 millis"), { times: 99 })
        assert.isDefined(closing.pollUnsafe())
        assert.isDefined(reading.pollUnsafe())
        assert.strictEqual(backend.rows.length, 3000)
      })),
    { tags: ["G5", "G27"] }
  )

  it.effect(
    "a lease is renewed as soon as it is granted, however late its notification is read",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a } = yield* fleet.ofOne
        const tokens: Array<number> = []
        yield* a.start(Stream.runForEach(
          a.client.notifications,
          (notification) =>
            Effect.andThen(
              Effect.sleep("1 minute"),
              Effect.sync(() => notification._tag === "StreamAdded" ? tokens.push(notification.token) : undefined)
            )
        ))
        yield* a.client.announceAll(fleet.names(2))
        yield* TestClock.adjust("10 millis")
        yield* TestClock.adjust("130 seconds")
        assert.deepStrictEqual(tokens, [1, 2])
        assert.deepStrictEqual((yield* a.client.owned).map(({ token }) => Number(token)), [1, 2])
      })),
    { tags: ["G14"] }
  )

  it.effect("StreamExpired is reported once if expiries are published, and the data stream can then be claimed", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      backend.publishesExpiries = true
      const expiring = yield* Effect.forkChild(backend.expiring)
      const a = yield* open("a")
      const b = yield* open("b", { sweepInterval: "1 hour" })
      yield* a.serve(1)
      yield* TestClock.adjust("10 millis")
      const { observed } = yield* collecting(b)
      yield* TestClock.adjust("1 second")
      yield* a.kill
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(observed.map(({ _tag }) => _tag), ["StreamExpired"])
      const lease = Option.getOrThrow(yield* b.acquire("s1"))
      yield* lease.ensure
      assert.strictEqual(lease.failures, 1)
      yield* Fiber.interrupt(expiring)
    })))

  it.effect("StreamExpired is not reported without free capacity, or for a data stream that is paused or owned by the client", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      backend.publishesExpiries = true
      const other = yield* open("other")
      const a = yield* open("a", { sweepInterval: "1 hour", capacity: 2 })
      const expire = (stream: string, entry: string) =>
        Effect.andThen(
          Effect.sync(() =>
            backend.expiry({ _tag: "Expired", stream: StreamName.make(stream), entry: EntryId.make(entry) })
          ),
          TestClock.adjust("10 millis")
        )
      const { tags } = yield* collecting(a)
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(tags(), ["StreamAdded"])
      yield* expire("s1", backend.rows[0]!.entry)
      assert.lengthOf(tags(), 1)
      yield* expire("s8", "8-0")
      assert.deepStrictEqual(tags(), ["StreamAdded", "StreamExpired"])
      backend.isPaused = true
      yield* TestClock.adjust("2 seconds")
      const before = tags().length
      yield* expire("s9", "9-0")
      assert.lengthOf(tags(), before)
      backend.isPaused = false
      yield* TestClock.adjust("2 seconds")
      yield* other.client.announceAll([{ stream: "s2" }, { stream: "s3" }])
      yield* TestClock.adjust("2 seconds")
      assert.lengthOf(yield* a.client.owned, 2)
      const full = tags().length
      yield* expire("s10", "10-0")
      assert.lengthOf(tags(), full)
    })))

  it.effect("StreamExpired is reported only once until it is read, however often the event is repeated", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      backend.publishesExpiries = true
      const a = yield* open("a", { sweepInterval: "1 hour" })
      const b = yield* open("b")
      yield* b.serve(1)
      yield* TestClock.adjust("10 millis")
      const { entry } = backend.rows[0]!
      const expire = Effect.andThen(
        Effect.sync(() => backend.expiry({ _tag: "Expired", stream: StreamName.make("s1"), entry })),
        TestClock.adjust("10 millis")
      )
      const observed: Array<string> = []
      const reader = ({ _tag }: Notification) =>
        Effect.andThen(Effect.sync(() => observed.push(_tag)), Effect.sleep("1 minute"))
      yield* a.start(Stream.runForEach(a.client.notifications, reader))
      yield* TestClock.adjust("10 millis")
      for (let i = 0; i < 4; i++) yield* expire
      yield* TestClock.adjust("10 minutes")
      // The first notification is read immediately, and the second when the reader pulls again
      assert.deepStrictEqual(observed, ["StreamExpired", "StreamExpired"])
      yield* expire
      assert.lengthOf(observed, 3)
    })))

  it.effect("the first reader keeps receiving notifications after a second reader is refused", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { sweepInterval: "1 hour" })
      const { tags } = yield* collecting(a)
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("500 millis")
      assert.strictEqual((yield* Effect.flip(Stream.runDrain(a.client.notifications)))._tag, "InvalidConfig")
      backend.entryLeases.clear()
      backend.streamLeases.clear()
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(tags(), ["StreamAdded", "StreamDisowned"])
    })))

  it.effect("notifications end with the defect, not with StreamTerminated, after a defect in the backend", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      const { fiber, tags } = yield* collecting(a)
      yield* TestClock.adjust("10 millis")
      Object.defineProperty(backend, "isPaused", {
        get: () => {
          throw new Error("a bug in the store")
        }
      })
      yield* TestClock.adjust("5 seconds")
      const exit = yield* Fiber.await(fiber)
      assert.include(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "", "a bug in the store")
      assert.deepStrictEqual(tags(), [])
    })))

  it.effect("StreamTerminated contains the reason if the backend refuses a request permanently", () =>
    fleet.test(Effect.gen(function*() {
      const { a } = yield* fleet.ofOne
      const { fiber, observed } = yield* collecting(a)
      yield* TestClock.adjust("10 millis")
      a.link.modes.read = "refuse"
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(fiber)
      const last = observed.at(-1)!
      assert.isTrue(last._tag === "StreamTerminated" && last.reason.includes("NOPERM"))
      const repeated = yield* collecting(a)
      a.link.modes.read = "work"
      yield* TestClock.adjust("1 second")
      assert.isUndefined(repeated.fiber.pollUnsafe())
      const refused = yield* Effect.flip(Stream.runDrain(a.client.notifications))
      assert.strictEqual(refused._tag, "InvalidConfig")
    })))

  it.effect("when its reader stops, a client leaves the service and releases all data streams that were not claimed by name", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { gracePeriod: "2 seconds" })
      const other = yield* open("b")
      const b = yield* other.start(other.client.run((lease) => lease.stream === "s1" ? lease.yield : Effect.never))
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("10 millis")
      yield* Fiber.interrupt(b)
      const claimed = Option.getOrThrow(yield* a.acquire("s1"))
      const { fiber } = yield* collecting(a)
      yield* a.client.announceAll(fleet.names(2))
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual(yield* owned(a), ["s1", "s2"])
      yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
      yield* TestClock.adjust("1900 millis")
      assert.deepStrictEqual(yield* owned(a), ["s1", "s2"])
      yield* TestClock.adjust("200 millis")
      assert.deepStrictEqual(yield* owned(a), ["s1"])
      yield* claimed.ensure
      assert.strictEqual(backend.rows.length, 2)
    })))
})

/** Announces a data stream with an entry that is pending for a dead consumer. */
const orphan = (backend: Backend, consumer: fleet.Consumer) =>
  Effect.gen(function*() {
    yield* consumer.client.announceAll(fleet.names(1))
    backend.rows[0]!.owner = "redis-consumer-gone"
    yield* TestClock.adjust("3 seconds")
  })

describe("claims", () => {
  it.effect(
    "a claim returns None while any consumer owns the data stream, including this client",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a, open } = yield* fleet.ofOne
        const b = yield* open("b")
        yield* a.serve(1)
        yield* TestClock.adjust("10 seconds")
        for (const client of [a, b]) assert.isTrue(Option.isNone(yield* client.acquire("s1")))
        assert.strictEqual((yield* Effect.flip(b.acquire("s9")))._tag, "StreamNotFound")
        assert.strictEqual((yield* Effect.flip(b.acquire(" ")))._tag, "InvalidName")
        assert.deepStrictEqual(yield* owned(a), ["s1"])
      })),
    { tags: ["G9"] }
  )

  it.effect("a claim before the first delivery is refused without taking anything", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      yield* a.client.announceAll(fleet.names(1))
      yield* TestClock.adjust("10 seconds")
      const error = yield* Effect.flip(a.acquire("s1"))
      assert.strictEqual(error._tag, "StreamNotFound")
      assert.include(error.message, "it has not been delivered yet")
      assert.strictEqual(backend.streamLeases.size, 0)
    })))

  it.effect("a claim does not take a data stream that another consumer has just read and is about to take", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend, open } = yield* fleet.ofOne
      const b = yield* open("b")
      a.link.modes.take = "hang"
      yield* a.serve(1)
      yield* TestClock.adjust("10 millis")
      assert.strictEqual(backend.rows[0]!.owner, "simba-consumer-a")
      assert.isTrue(Option.isNone(yield* b.acquire("s1")))
      assert.strictEqual(backend.streamLeases.size, 0)
    })))

  it.effect(
    "a claim lasts until its scope closes, and then its data stream is released",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a, backend } = yield* fleet.ofOne
        yield* orphan(backend, a)
        yield* Effect.scoped(Effect.gen(function*() {
          const lease = yield* a.client.acquireIfAvailable("s1").pipe(
            Effect.timeout("5 seconds"),
            Effect.map(Option.getOrThrow)
          )
          const later = Effect.andThen(TestClock.adjust("1 hour"), lease.ensure)
          yield* later
        }))
        assert.deepStrictEqual(yield* owned(a), [])
        assert.deepStrictEqual([backend.streamLeases.size, backend.rows.length, backend.done], [0, 1, []])
        yield* Effect.scoped(
          Effect.flatMap(a.client.acquireIfAvailable("s1"), (lease) => Option.getOrThrow(lease).done)
        )
        assert.deepStrictEqual(backend.done, ["s1"])
      })),
    { tags: ["G12"] }
  )

  it.effect("a claim is released in the background if the backend does not reply when the scope closes", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", {
        releaseTimeout: "300 millis",
        leaseDuration: "1 hour",
        heartbeatInterval: "1 minute"
      })
      yield* orphan(backend, a)
      yield* TestClock.adjust("1 hour")
      const closing = yield* Effect.forkChild(Effect.scoped(Effect.andThen(
        a.client.acquireIfAvailable("s1"),
        Effect.sync(() => a.link.modes.release = "fail")
      )))
      yield* TestClock.adjust("400 millis")
      assert.isDefined(closing.pollUnsafe())
      assert.deepStrictEqual(yield* owned(a), ["s1"])
      a.link.modes.release = "work"
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual([yield* owned(a), backend.streamLeases.size], [[], 0])
    })))

  it.effect("a loss interrupts work under a claim, and the work fails with LeaseLost", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      yield* orphan(backend, a)
      const lease = Option.getOrThrow(yield* a.acquire("s1"))
      assert.strictEqual(yield* lease.protect(Effect.succeed(7)), 7)
      assert.strictEqual(yield* Effect.flip(lease.protect(Effect.fail("its own"))), "its own")
      let cleaned = false
      const work = yield* Effect.forkChild(
        Effect.flip(lease.protect(Effect.onInterrupt(Effect.never, () => Effect.sync(() => cleaned = true)))),
        { startImmediately: true }
      )
      backend.streamLeases.clear()
      backend.entryLeases.clear()
      yield* TestClock.adjust("2 seconds")
      assert.deepInclude(yield* Fiber.join(work), { _tag: "LeaseLost", kind: "stream", resource: "s1" })
      assert.isTrue(cleaned)
      assert.strictEqual((yield* Effect.flip(lease.protect(Effect.void)))._tag, "LeaseLost")
    })))

  it.effect("a lost claim reports the reason to later callers, while a claim that ended normally is never reported as lost", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      yield* a.client.announceAll(fleet.names(2))
      for (const row of backend.rows) row.owner = "redis-consumer-gone"
      yield* TestClock.adjust("3 seconds")
      const [lost, done] = [
        Option.getOrThrow(yield* a.acquire("s1")),
        Option.getOrThrow(yield* a.acquire("s2"))
      ]
      const shown = (lease: fleet.Lease) => (JSON.parse(JSON.stringify(lease)) as { timeLeft: string }).timeLeft
      assert.deepStrictEqual([shown(lost), shown(done)], ["1s 900ms", "1s 900ms"])
      assert.isTrue(yield* lost.isHeld)
      backend.entryLeases.delete(lost.entry)
      backend.streamLeases.delete(lost.stream)
      yield* done.done
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([shown(lost), shown(done)], ["0", "0"])
      assert.strictEqual((yield* lost.lost).reason._tag, "Vanished")
      assert.isFalse(yield* lost.isHeld)
      const asking = yield* Effect.forkChild(done.lost, { startImmediately: true })
      yield* TestClock.adjust("1 hour")
      assert.isUndefined(asking.pollUnsafe())
      assert.strictEqual((yield* Effect.flip(done.ensure)).reason._tag, "Released")
    })))
})

describe("work under a claim", () => {
  const ends: Record<
    string,
    (
      setup: { readonly a: fleet.Consumer; readonly lease: fleet.Lease; readonly scope: Scope.Closeable }
    ) => Effect.Effect<void, unknown>
  > = {
    "its release": ({ lease }) => lease.release,
    "its done": ({ lease }) => lease.done,
    "closing its scope": ({ scope }) => Scope.close(scope, Exit.void),
    "closing its client": ({ a }) => a.close
  }
  for (const [name, end] of Object.entries(ends)) {
    it.effect(`${name} interrupts and awaits protected work`, () =>
      fleet.test(Effect.gen(function*() {
        const { a, backend } = yield* fleet.ofOne
        yield* orphan(backend, a)
        const scope = yield* Scope.make()
        const lease = Option.getOrThrow(yield* Scope.provide(a.client.acquireIfAvailable("s1"), scope))
        let ownedAtEnd: boolean | undefined
        const work = yield* Effect.forkDetach(
          lease.protect(Effect.onInterrupt(Effect.never, () =>
            Effect.andThen(
              Effect.sleep("1 second"),
              Effect.sync(() => ownedAtEnd = backend.lease(backend.entryLeases, lease.entry) !== undefined)
            ))),
          { startImmediately: true }
        )
        const ending = yield* Effect.forkChild(end({ a, lease, scope }), { startImmediately: true })
        yield* TestClock.adjust("10 seconds")
        assert.isTrue(ownedAtEnd)
        assert.isTrue(Exit.isSuccess(yield* Fiber.await(ending)))
        assert.strictEqual(backend.lease(backend.entryLeases, lease.entry), undefined)
        yield* Fiber.interrupt(work)
      })))
  }

  it.effect("no protected work starts while `done` waits for earlier work", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      yield* orphan(backend, a)
      const lease = Option.getOrThrow(yield* a.acquire("s1"))
      yield* Effect.forkDetach(lease.protect(Effect.uninterruptible(Effect.sleep("1 second"))), {
        startImmediately: true
      })
      const ending = yield* Effect.forkChild(lease.done, { startImmediately: true })
      yield* TestClock.adjust("500 millis")
      assert.isTrue(yield* lease.isHeld)
      let hasBegun = false
      const refused = yield* Effect.flip(lease.protect(Effect.sync(() => void (hasBegun = true))))
      assert.deepStrictEqual([hasBegun, refused.reason._tag], [false, "Released"])
      yield* TestClock.adjust("500 millis")
      yield* Fiber.join(ending)
    })))

  it.effect("protected work continues if it ends the lease itself, even in a child fiber", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      yield* orphan(backend, a)
      const lease = Option.getOrThrow(yield* a.acquire("s1"))
      const other = yield* Effect.forkDetach(Effect.flip(lease.protect(Effect.never)), { startImmediately: true })
      const work = yield* Effect.forkChild(
        lease.protect(Effect.as(Effect.timeout(lease.done, "1 second"), "its result")),
        { startImmediately: true }
      )
      yield* TestClock.adjust("100 millis")
      assert.strictEqual(yield* Fiber.join(work), "its result")
      assert.deepStrictEqual(backend.done, ["s1"])
      assert.deepInclude(yield* Fiber.join(other), { _tag: "LeaseLost", resource: "s1", reason: { _tag: "Released" } })
    })))
})

describe("abandoned claims", () => {
  it.effect(
    "an interrupted claim leaves nothing behind, even if it is granted later",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a, backend } = yield* fleet.ofOne
        yield* orphan(backend, a)
        a.link.delays.take = 300
        a.link.modes.release = "fail"
        const claiming = yield* Effect.forkChild(Effect.exit(Effect.timeout(a.acquire("s1"), "100 millis")))
        yield* TestClock.adjust("1 second")
        assert.isDefined(claiming.pollUnsafe())
        a.link.modes.release = "work"
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* owned(a), [])
        assert.deepStrictEqual([backend.streamLeases.size, backend.running.size], [0, 0])
        a.link.delays.take = 0
        yield* Option.getOrThrow(yield* a.acquire("s1")).ensure
      })),
    { tags: ["H7"] }
  )
})

describe("announcing", () => {
  it.effect(
    "a list of announcements with an invalid name is refused before any request is sent",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a } = yield* fleet.ofOne
        for (const stream of ["", "  ", "a<MUTEX_KEY_SEP>b"]) {
          const error = yield* Effect.flip(a.client.announceAll([{ stream: "fine" }, { stream }]))
          assert.isTrue(error._tag === "InvalidName" && error.kind === "stream" && error.value === stream)
        }
        assert.deepStrictEqual(a.link.calls, [])
        assert.deepStrictEqual(yield* a.client.announceAll([]), [])
      })),
    { tags: ["G30"] }
  )

  it.effect(
    "announcing again does no harm while the first announcement is unfinished",
    () =>
      fleet.test(Effect.gen(function*() {
        const { a } = yield* fleet.ofOne
        const [first] = yield* a.client.announceAll(fleet.names(1))
        const [second] = yield* a.client.announceAll(fleet.names(1))
        assert.deepStrictEqual([first!.isNew, second!.isNew], [true, false])
        assert.strictEqual(first!.entry, second!.entry)
      })),
    { tags: ["G8"] }
  )
})

describe("options", { tags: ["G29"] }, () => {
  const refused: ReadonlyArray<readonly [option: string, options: Partial<StreamClient.Options>]> = [
    ["service", { service: " " }],
    ["processName", { processName: "a@@b" }],
    ["capacity", { capacity: 0 }],
    ["capacity", { capacity: 1.5 }],
    ["leaseDuration", { leaseDuration: "1600 millis" }],
    ["leaseDuration", { heartbeatInterval: "1400 millis" }],
    ["leaseDuration", { leaseDuration: "1 hour", heartbeatInterval: "57 minutes" }],
    ["confirmTimeout", { confirmTimeout: "500 millis" }],
    ["sweepInterval", { sweepInterval: "nonsense" as never }],
    ["gracePeriod", { gracePeriod: Infinity }],
    ["maxFailures", { maxFailures: 0 }],
    ["rebalance", { rebalance: "yes" as never }],
    ["progressTimeout", { progressTimeout: 0 }]
  ]

  for (const [option, options] of refused) {
    it.effect(`${JSON.stringify(options)} is refused, and the error names the option`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(check({ service: "svc", ...options }))
        assert.strictEqual(error.option, option)
      }))
  }
})

describe("defaults and bounds", { tags: ["G29"] }, () => {
  it.effect("omitted options have the documented defaults", () =>
    Effect.gen(function*() {
      const config = yield* check({ service: "svc", processName: "a" })
      const shown = Object.entries(config).map(([name, value]) => [
        name,
        Duration.isDuration(value) ? Duration.toMillis(value) : value
      ])
      assert.deepStrictEqual(Object.fromEntries(shown), {
        service: "svc",
        consumer: "simba-consumer-a",
        capacity: 64,
        leaseDuration: 2000,
        heartbeatInterval: 1000,
        commandTimeout: 500,
        sweepInterval: 2000,
        gracePeriod: 5000,
        releaseTimeout: 2000,
        maxFailures: 10,
        deadLetterAfter: 3_600_000,
        streakEndsAfter: 3_600_000,
        rebalance: true,
        confirmTimeout: 1500,
        progressTimeout: undefined,
        enableEvents: false,
        reapAfter: 600_000,
        checkpointRetention: 7 * 86_400_000
      })
    }))

  it.effect("options are refused just outside their bounds, and accepted just inside", () =>
    Effect.gen(function*() {
      const isRefused = (options: Partial<StreamClient.Options>) =>
        Effect.match(check({ service: "svc", ...options }), { onFailure: () => true, onSuccess: () => false })
      const bounds: ReadonlyArray<
        readonly [refused: Partial<StreamClient.Options>, fine: Partial<StreamClient.Options>]
      > = [
        [{ leaseDuration: 1600 }, { leaseDuration: 1601 }],
        [{ confirmTimeout: 500 }, { confirmTimeout: 501 }],
        [{ checkpointRetention: 7 * 86_400_000 - 1 }, { checkpointRetention: "7 days" }],
        [{ capacity: 0 }, { capacity: 1 }],
        [{ maxFailures: 0 }, { maxFailures: 1 }]
      ]
      for (const [refused, fine] of bounds) {
        assert.deepStrictEqual([yield* isRefused(refused), yield* isRefused(fine)], [true, false], JSON.stringify(fine))
      }
      const streakOf = (deadLetterAfter: Duration.Input) =>
        Effect.map(check({ service: "svc", deadLetterAfter }), (config) => Duration.toMinutes(config.streakEndsAfter))
      assert.deepStrictEqual([yield* streakOf(0), yield* streakOf("90 minutes")], [60, 90])
    }))
})

describe("the notification queue", () => {
  it.effect("the queue is full at 256 notifications, contains at most one expiry per entry, and accepts nothing after its end", () =>
    Effect.gen(function*() {
      let queued = 0
      const recorder = { modify: (_: unknown, by: number) => void (queued += by) }
      const queue = yield* notificationQueue.make(recorder as never)
      const isReady = () =>
        Effect.gen(function*() {
          const fiber = yield* Effect.forkChild(queue.ready, { startImmediately: true })
          const exit = fiber.pollUnsafe()
          yield* Fiber.interrupt(fiber)
          return exit !== undefined
        })
      const expire = (n: number) => queue.expired(StreamName.make("s"), EntryId.make(`${n}-0`))
      for (let n = 1; n <= 255; n++) yield* expire(n)
      yield* expire(7)
      assert.deepStrictEqual([yield* isReady(), queued], [true, 255])
      yield* expire(256)
      assert.deepStrictEqual([yield* isReady(), queued], [false, 256])
      const waiting = yield* Effect.forkChild(expire(257), { startImmediately: true })
      assert.isUndefined(waiting.pollUnsafe())
      yield* Effect.scoped(Effect.gen(function*() {
        const pull = yield* Stream.toPull(queue.stream)
        yield* pull
        yield* Fiber.join(waiting)
        assert.strictEqual(queued, 256)
        // Entry 1 can be queued again once its notification has been read
        yield* pull
        yield* expire(1)
        assert.strictEqual(queued, 256)
        yield* queue.end("closed")
        queue.push({ _tag: "StreamTerminated", reason: "again" })
        assert.strictEqual(queued, 257)
        yield* queue.abandon
        assert.strictEqual(queued, 0)
      }))
    }))
})

describe("metrics", () => {
  it.effect("each event is counted once, and gauges return to zero", () =>
    Effect.gen(function*() {
      yield* fleet.test(Effect.gen(function*() {
        const { open } = yield* fleet.make
        const a = yield* open("a", { gracePeriod: 0, rebalance: true })
        yield* a.serve(3, (lease) => lease.stream === "s1" ? Effect.sleep("3 seconds") : Effect.never)
        yield* TestClock.adjust("1500 millis")
        assert.strictEqual((yield* Metric.value(StreamMetrics.stream.owned)).value, 3)
        yield* TestClock.adjust("3 seconds")
      }))
      const count = (metric: Metric.Counter<number>) => Effect.map(Metric.value(metric), ({ count }) => count)
      assert.strictEqual(yield* count(StreamMetrics.stream.acquisitions.announcement), 3)
      assert.strictEqual(yield* count(StreamMetrics.stream.takes.taken), 3)
      assert.strictEqual(yield* count(StreamMetrics.stream.ends.done), 1)
      assert.strictEqual(yield* count(StreamMetrics.stream.ends.released), 2)
      assert.isAtLeast(yield* count(StreamMetrics.stream.renewals.renewed), 6)
      assert.strictEqual((yield* Metric.value(StreamMetrics.stream.processingTime.success)).count, 1)
      assert.strictEqual((yield* Metric.value(StreamMetrics.stream.processingTime.interrupted)).count, 2)
      assert.strictEqual((yield* Metric.value(StreamMetrics.stream.owned)).value, 0)
      assert.strictEqual((yield* Metric.value(StreamMetrics.stream.queued)).value, 0)
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())))
})
