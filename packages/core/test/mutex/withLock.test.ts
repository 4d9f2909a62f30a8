import { Mutex, type SimbaError } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Context, Deferred, Effect, Exit, Fiber, Option, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import { start, TestLive } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"

const isLost = (reason: SimbaError.LossReason["_tag"]) => (error: unknown) =>
  assert.deepInclude(error as object, { _tag: "LeaseLost", reason: { _tag: reason } })

describe("withLock", () => {
  it.effect("returns the body's result, and fails with the body's error", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* Effect.succeed(1).pipe(Mutex.withLock("m")), 1)
      assert.strictEqual(yield* Effect.flip(Effect.fail("no").pipe(Mutex.withLock("m"))), "no")
      const died = yield* Effect.exit(Effect.die("bug").pipe(Mutex.withLock("m")))
      assert.isTrue(Exit.isFailure(died) && Cause.hasDies(died.cause))
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
    }).pipe(Effect.provide(TestLive)))

  it.effect("refuses an invalid name or body without sending a request", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const nothing = undefined as never
      const refused = (effect: Effect.Effect<unknown, { readonly _tag: string }, Mutex.Mutex | Scope.Scope>) =>
        Effect.map(Effect.flip(effect), ({ _tag }) => _tag)
      for (const locking of [Mutex.withLock, Mutex.withLockIfAvailable]) {
        assert.strictEqual(yield* refused(locking(nothing)(Effect.void)), "InvalidName")
        assert.strictEqual(yield* refused(locking("m")(nothing)), "InvalidConfig")
      }
      assert.strictEqual(yield* refused(Mutex.acquire(nothing)), "InvalidName")
      assert.strictEqual(yield* refused(Mutex.acquireIfAvailable(nothing)), "InvalidName")
      assert.strictEqual(yield* refused(Mutex.acquireAll([nothing])), "InvalidName")
      assert.strictEqual(yield* refused(Mutex.acquireAll(nothing)), "InvalidConfig")
      assert.deepStrictEqual(faults.calls, [])
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("passes the lease to the body if it is a function", () =>
    Effect.gen(function*() {
      const token = yield* Mutex.withLock("m")((lease) => Effect.as(lease.ensure, lease.token))
      assert.isAbove(token, 0)
    }).pipe(Effect.provide(TestLive)))

  it.effect("provides the caller's services to the body", () =>
    Effect.gen(function*() {
      class Name extends Context.Service<Name, string>()("test/Name") {}
      const body = Effect.map(Name, (name) => `hello ${name}`)
      assert.strictEqual(
        yield* body.pipe(Mutex.withLock("m"), Effect.provideService(Name, "you")),
        "hello you"
      )
    }).pipe(Effect.provide(TestLive)))

  it.effect("interrupts the body at the local deadline and fails with LeaseLost", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.guard = "hang"
      let interrupted = false
      const fiber = yield* start(
        Effect.never.pipe(
          Effect.onInterrupt(() => Effect.sync(() => interrupted = true)),
          Mutex.withLock("m"),
          Effect.flip
        )
      )
      yield* TestClock.adjust("15199 millis")
      assert.isFalse(interrupted)
      yield* TestClock.adjust("1 millis")
      assert.isTrue(interrupted)
      isLost("BackendGone")(yield* Fiber.join(fiber))
    }).pipe(Effect.provide(TestLive)), { tags: ["L3", "B12"] })

  it.effect("releases the mutex only after the body and its finalizers have ended", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const ended = yield* Deferred.make<void>()
      const fiber = yield* start(
        Effect.never.pipe(
          Effect.onInterrupt(() => Deferred.await(ended)),
          Mutex.withLock("m")
        )
      )
      const stop = yield* start(Fiber.interrupt(fiber))
      yield* TestClock.adjust("5 seconds")
      assert.notInclude(faults.calls, "release")
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Held")
      yield* Deferred.succeed(ended, undefined)
      yield* Fiber.join(stop)
      assert.include(faults.calls, "release")
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
    }).pipe(Effect.provide(TestLive)), { tags: ["L4", "S13"] })

  it.effect("fails with LeaseLost if the lease ends before an uninterruptible body succeeds", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.guard = "fail"
      const fiber = yield* start(
        Effect.sleep("20 seconds").pipe(Effect.uninterruptible, Mutex.withLock("m"), Effect.flip)
      )
      yield* TestClock.adjust("20 seconds")
      isLost("BackendGone")(yield* Fiber.join(fiber))
    }).pipe(Effect.provide(TestLive)))

  it.effect("fails with LeaseLost even if a finalizer dies after the loss", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.guard = "hang"
      const fiber = yield* start(
        Effect.never.pipe(
          Effect.ensuring(Effect.die("finalizer")),
          Mutex.withLock("m"),
          Effect.catchTag("LeaseLost", (error) => Effect.succeed(error.reason._tag))
        )
      )
      yield* TestClock.adjust("16 seconds")
      assert.strictEqual(yield* Fiber.join(fiber), "BackendGone")
    }).pipe(Effect.provide(TestLive)), { tags: ["L4"] })

  it.effect("fails with the body's error even if the lease was lost, and with its defect if that came before the interruption", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      const lateBy = (millis: number, end: Effect.Effect<never, string>) =>
        Effect.exit(Effect.sync(() => stall.millis += millis).pipe(Effect.andThen(end), Mutex.withLock("m")))
      yield* Effect.gen(function*() {
        const faults = yield* Faults
        faults.guard = "hang"
        assert.deepStrictEqual(yield* lateBy(20_000, Effect.die("bug")), Exit.die("bug"))
        assert.deepStrictEqual(yield* lateBy(20_000, Effect.fail("no")), Exit.fail("no"))
        const failing = yield* start(lateBy(0, Effect.uninterruptible(Effect.delay(Effect.fail("no"), "20 seconds"))))
        yield* TestClock.adjust("20 seconds")
        const exit = yield* Fiber.join(failing)
        assert.strictEqual(Exit.isFailure(exit) && Cause.squash(exit.cause), "no")
      }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("is only interrupted, without a defect, if its body succeeds in spite of the interruption", () =>
    Effect.gen(function*() {
      const fiber = yield* start(Effect.sleep("1 second").pipe(Effect.uninterruptible, Mutex.withLock("m")))
      const interrupting = yield* start(Fiber.interrupt(fiber))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(interrupting)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
    }).pipe(Effect.provide(TestLive)))

  it.effect("can be interrupted from outside like any effect", () =>
    Effect.gen(function*() {
      const fiber = yield* start(Mutex.withLock("m")(Effect.never))
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.hasInterrupts(exit))
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
    }).pipe(Effect.provide(TestLive)))

  const ends: ReadonlyArray<readonly [string, Effect.Effect<never, string>]> = [
    ["a finalizer that dies", Effect.onInterrupt(Effect.never, () => Effect.die("finalizer"))],
    ["a finalizer that fails", Effect.onInterrupt(Effect.never, () => Effect.fail("finalizer"))],
    ["a finalizer", Effect.onInterrupt(Effect.never, () => Effect.void)],
    ["a failure that comes first", Effect.uninterruptible(Effect.delay(Effect.fail("body"), 1))],
    ["a defect that comes first", Effect.uninterruptible(Effect.delay(Effect.die("body"), 1))]
  ]

  it.effect.each(ends)(
    "when interrupted from outside, ends as the body would without a lock: %s",
    ([, body]) =>
      Effect.gen(function*() {
        const endOf = Effect.fnUntraced(function*(effect: Effect.Effect<unknown, unknown, Mutex.Mutex>) {
          const fiber = yield* start(effect)
          yield* start(Fiber.interrupt(fiber))
          yield* TestClock.adjust(1)
          const exit = yield* Fiber.await(fiber)
          if (Exit.isSuccess(exit)) return []
          return exit.cause.reasons.map((reason) =>
            reason._tag === "Fail"
              ? `Fail ${reason.error}`
              : reason._tag === "Die"
              ? `Die ${reason.defect}`
              : reason._tag
          )
        })
        assert.sameMembers(yield* endOf(Mutex.withLock("m")(body)), yield* endOf(body))
        assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
      }).pipe(Effect.provide(TestLive))
  )

  it.effect("withLockIfAvailable runs the body, or returns None without running it", () =>
    Effect.gen(function*() {
      let ran = 0
      const body = Effect.sync(() => ++ran)
      assert.deepStrictEqual(yield* body.pipe(Mutex.withLockIfAvailable("m")), Option.some(1))
      yield* Mutex.acquire("m")
      assert.deepStrictEqual(yield* body.pipe(Mutex.withLockIfAvailable("m")), Option.none())
      assert.strictEqual(ran, 1)
    }).pipe(Effect.provide(TestLive)))
})

describe("lease.protect", () => {
  it.effect("a loss interrupts work under `protect`, but not the lease's holder", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.guard = "hang"
      const lease = yield* Mutex.acquire("m")
      const bare = yield* start(Effect.never)
      const guarded = yield* start(Effect.flip(lease.protect(Effect.never)))
      yield* TestClock.adjust("16 seconds")
      assert.isUndefined(bare.pollUnsafe())
      isLost("BackendGone")(yield* Fiber.join(guarded))
      isLost("BackendGone")(yield* Effect.flip(lease.ensure))
      isLost("BackendGone")(yield* lease.lost)
      isLost("BackendGone")(yield* Effect.flip(lease.protect(Effect.void)))
    }).pipe(Effect.provide(TestLive)), { tags: ["L3"] })

  it.effect("interrupts all work under one lease", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.guard = "hang"
      const lease = yield* Mutex.acquire("m")
      const works = yield* Effect.forEach([1, 2, 3], () => start(Effect.flip(lease.protect(Effect.never))))
      yield* TestClock.adjust("16 seconds")
      const errors = yield* Fiber.joinAll(works)
      errors.forEach(isLost("BackendGone"))
    }).pipe(Effect.provide(TestLive)))
})

describe("closing a lease's scope", () => {
  it.effect(
    "interrupts protected work in other fibers, and awaits it before the release",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const scope = yield* Scope.make()
        const ended = yield* Deferred.make<void>()
        const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
        const work = yield* start(
          Effect.flip(lease.protect(Effect.onInterrupt(Effect.never, () => Deferred.await(ended))))
        )
        const closing = yield* start(Scope.close(scope, Exit.void))
        yield* TestClock.adjust("1 minute")
        // The lease is kept while the work continues, but no new work may start
        assert.strictEqual((yield* Mutex.owner("m"))._tag, "Held")
        assert.notInclude(faults.calls, "release")
        isLost("Released")(yield* Effect.flip(lease.ensure))
        yield* Deferred.succeed(ended, undefined)
        yield* Fiber.join(closing)
        isLost("Released")(yield* Fiber.join(work))
        assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
      }).pipe(Effect.provide(TestLive)),
    { tags: ["L4", "B26"] }
  )

  it.effect("awaits work whose first step closes the scope", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
      const started = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<void>()
      const closing = yield* start(Effect.andThen(Deferred.await(started), Scope.close(scope, Exit.void)))
      const work = yield* start(Effect.flip(lease.protect(
        Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
          Effect.onInterrupt(() => Deferred.await(ended))
        )
      )))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Held")
      assert.isUndefined(closing.pollUnsafe())
      yield* Deferred.succeed(ended, undefined)
      isLost("Released")(yield* Fiber.join(work))
      yield* Fiber.join(closing)
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
    }).pipe(Effect.provide(TestLive)), { tags: ["L4"] })
})

describe("protected work that closes the scope of its own lease", () => {
  const moments = [["in its first step", Effect.void], ["later", Effect.sleep("1 second")]] as const

  it.effect.each(moments)(
    "releases the mutex once all other work has ended, and is then interrupted: %s",
    ([, first]) =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const scope = yield* Scope.make()
        const ended = yield* Deferred.make<void>()
        const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
        const other = yield* start(
          Effect.flip(lease.protect(Effect.onInterrupt(Effect.never, () => Deferred.await(ended))))
        )
        let closed = false
        let ranOn = false
        const work = yield* start(Effect.flip(lease.protect(
          first.pipe(
            Effect.andThen(Scope.close(scope, Exit.void).pipe(Effect.ensuring(Effect.sync(() => closed = true)))),
            Effect.andThen(Effect.sleep("1 second")),
            Effect.andThen(Effect.sync(() => ranOn = true))
          )
        )))
        yield* TestClock.adjust("1 second")
        assert.notInclude(faults.calls, "release")
        yield* Deferred.succeed(ended, undefined)
        isLost("Released")(yield* Fiber.join(other))
        isLost("Released")(yield* Fiber.join(work))
        assert.deepStrictEqual([closed, ranOn], [true, false])
        assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
        yield* TestClock.adjust("1 minute")
        assert.notInclude(faults.calls, "guard 1")
      }).pipe(Effect.provide(TestLive))
  )

  it.effect("releases the mutex even if a child fiber closes the scope", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
      const closing = Effect.forkChild(Scope.close(scope, Exit.void))
      const work = yield* start(Effect.flip(lease.protect(Effect.flatMap(closing, Fiber.join))))
      yield* TestClock.adjust("1 second")
      assert.isDefined(work.pollUnsafe())
      isLost("Released")(yield* Fiber.join(work))
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
    }).pipe(Effect.provide(TestLive)))
})

it.effect("protected work that releases its lease and ends in its first step returns its result", () =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
    const close = Effect.forkDetach(Scope.close(scope, Exit.void), { startImmediately: true })
    assert.strictEqual(yield* lease.protect(Effect.as(close, "result")), "result")
    assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
  }).pipe(Effect.provide(TestLive)))

describe("a nested lock on the same name", () => {
  it.effect("fails immediately with AlreadyHeld, even in child fibers", () =>
    Effect.gen(function*() {
      const nested = Mutex.withLock("m")(Effect.void)
      const error = yield* Effect.flip(nested.pipe(Mutex.withLock("m")))
      assert.strictEqual(error._tag, "AlreadyHeld")
      const child = Effect.flatMap(Effect.forkChild(Effect.scoped(Mutex.acquire("m"))), Fiber.join)
      assert.deepInclude(yield* Effect.flip(child.pipe(Mutex.withLock("m"))), { _tag: "AlreadyHeld", mutex: "m" })
      const deep = nested.pipe(Mutex.withLock("n"), Mutex.withLock("m"))
      assert.deepInclude(yield* Effect.flip(deep), { _tag: "AlreadyHeld" })
    }).pipe(Effect.provide(TestLive)))

  it.effect("is allowed once the outer lease has ended, and always for other names and layers", () =>
    Effect.gen(function*() {
      yield* Mutex.withLock("n")(Effect.void).pipe(Mutex.withLock("m"))
      const orphan = yield* Effect.forkDetach(
        Effect.andThen(Effect.sleep("1 second"), Mutex.withLock("m")(Effect.succeed("later")))
      ).pipe(Mutex.withLock("m"))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(orphan), "later")
      assert.deepStrictEqual(
        yield* Mutex.withLockIfAvailable("m")(Effect.void).pipe(Mutex.withLock("m")),
        Option.none()
      )
    }).pipe(Effect.provide(TestLive)))
})

describe("work that starts its next run in a detached fiber", () => {
  /** How many surrounding locks and protected effects the fiber remembers. */
  const inherited = Effect.map(Effect.context<never>(), ({ mapUnsafe }) => {
    let locks = 0
    for (let lock = mapUnsafe.get("@effect-simba/core/internal/Nesting"); lock !== undefined; lock = lock.outer) locks++
    return locks + (mapUnsafe.get("@effect-simba/core/internal/Containing")?.length ?? 0)
  })
  const underLock = <E>(work: Effect.Effect<void, E, Mutex.Mutex>) => Mutex.withLock("m")(work)
  const underLease = <E>(work: Effect.Effect<void, E, Mutex.Mutex>) =>
    Effect.scoped(Effect.flatMap(Mutex.acquire("m"), (lease) => lease.protect(work)))

  it.effect.each([["withLock", underLock], ["protect", underLease]] as const)(
    "does not keep earlier runs in memory (%s)",
    ([, protect]) =>
      Effect.gen(function*() {
        const counts: Array<number> = []
        const run = (runs: number): Effect.Effect<void, unknown, Mutex.Mutex> =>
          protect(Effect.gen(function*() {
            counts.push(yield* inherited)
            if (runs > 1) yield* Effect.forkDetach(Effect.delay(run(runs - 1), "1 second"))
          }))
        yield* run(5)
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(counts, [1, 1, 1, 1, 1])
      }).pipe(Effect.provide(TestLive))
  )

  it.effect("does not keep earlier runs in memory if each run overlaps the next one, on another mutex", () =>
    Effect.gen(function*() {
      const counts: Array<number> = []
      const run = (runs: number): Effect.Effect<void, unknown, Mutex.Mutex> =>
        Mutex.withLock(`m${runs % 2}`)(Effect.gen(function*() {
          counts.push(yield* inherited)
          if (runs > 1) yield* Effect.forkDetach(Effect.delay(run(runs - 1), "1 second"))
          yield* Effect.sleep("1500 millis")
        }))
      yield* Effect.forkChild(run(6))
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(counts, [1, 2, 2, 2, 2, 2])
    }).pipe(Effect.provide(TestLive)))
})

describe("acquireAll", () => {
  it.effect("holds all mutexes through one lease object", () =>
    Effect.gen(function*() {
      yield* Effect.scoped(Effect.gen(function*() {
        const group = yield* Mutex.acquireAll(["b", "a", "b"])
        assert.deepStrictEqual([...group.tokens.keys()], ["a", "b"])
        assert.isTrue(yield* group.isHeld)
        yield* group.ensure
        assert.strictEqual(yield* group.protect(Effect.succeed(1)), 1)
        assert.strictEqual((yield* Mutex.owner("a"))._tag, "Held")
        assert.strictEqual((yield* Mutex.owner("b"))._tag, "Held")
      }))
      assert.strictEqual((yield* Mutex.owner("a"))._tag, "Free")
      assert.strictEqual((yield* Mutex.owner("b"))._tag, "Free")
    }).pipe(Effect.provide(TestLive)))

  it.effect("does not deadlock, regardless of the order of the names", () =>
    Effect.gen(function*() {
      let rounds = 0
      const work = (names: ReadonlyArray<string>) =>
        Effect.andThen(Mutex.acquireAll(names), Effect.sleep("10 millis")).pipe(
          Effect.scoped,
          Effect.tap(() => Effect.sync(() => rounds++)),
          Effect.repeat({ times: 9 })
        )
      const fibers = yield* Effect.forEach(
        [["a", "b", "c"], ["c", "b", "a"], ["b", "c"], ["c", "a"]],
        (names) => start(work(names))
      )
      yield* TestClock.adjust("1 minute")
      yield* Fiber.joinAll(fibers)
      assert.strictEqual(rounds, 40)
    }).pipe(Effect.provide(TestLive)))

  it.effect("takes all mutexes or none: a timeout releases those that were acquired", () =>
    Effect.gen(function*() {
      yield* Mutex.acquire("b")
      const fiber = yield* start(Effect.flip(Effect.scoped(Mutex.acquireAll(["a", "b"], { timeout: "3 seconds" }))))
      assert.strictEqual((yield* Mutex.owner("a"))._tag, "Held")
      yield* TestClock.adjust("3 seconds")
      const error = yield* Fiber.join(fiber)
      assert.deepInclude(error, { _tag: "AcquireTimeout", mutex: "b" })
      assert.strictEqual((yield* Mutex.owner("a"))._tag, "Free")
      assert.strictEqual((yield* Effect.flip(Effect.scoped(Mutex.acquireAll([]))))._tag, "InvalidConfig")
    }).pipe(Effect.provide(TestLive)))

  it.effect("is lost as soon as one of its leases is lost", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const group = yield* Mutex.acquireAll(["a", "b"])
      const fiber = yield* start(Effect.flip(group.protect(Effect.never)))
      faults.guard = "hang"
      yield* TestClock.adjust("16 seconds")
      isLost("BackendGone")(yield* Fiber.join(fiber))
      isLost("BackendGone")(yield* group.lost)
      assert.isFalse(yield* group.isHeld)
    }).pipe(Effect.provide(TestLive)))

  it.effect(
    "interrupts the work when any lease is lost, and releases the other leases only after the work has ended",
    () =>
      Effect.gen(function*() {
        const admin = yield* Mutex.Mutex
        for (const name of ["a", "b"]) {
          const scope = yield* Scope.make()
          const group = yield* Scope.provide(Mutex.acquireAll(["a", "b"]), scope)
          const ended = yield* Deferred.make<void>()
          const work = yield* start(
            Effect.flip(group.protect(Effect.onInterrupt(Effect.never, () => Deferred.await(ended))))
          )
          yield* admin.forceRelease(name)
          yield* TestClock.adjust("11 seconds")
          const closing = yield* start(Scope.close(scope, Exit.void))
          const other = name === "a" ? "b" : "a"
          assert.deepStrictEqual((yield* Mutex.owner(other))._tag, "Held")
          yield* Deferred.succeed(ended, undefined)
          assert.deepInclude(yield* Fiber.join(work), { _tag: "LeaseLost", resource: name })
          yield* Fiber.join(closing)
          assert.deepStrictEqual((yield* Mutex.owner(other))._tag, "Free")
        }
      }).pipe(Effect.provide(TestLive)),
    { tags: ["L4"] }
  )

  it.effect("can protect work with two thousand leases without a stack overflow", () =>
    Effect.gen(function*() {
      const group = yield* Mutex.acquireAll(Array.from({ length: 2000 }, (_, i) => `m${i}`))
      assert.strictEqual(yield* group.protect(Effect.succeed("ok")), "ok")
      assert.strictEqual(yield* group.protect(Effect.as(Effect.yieldNow, "ok")), "ok")
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})
