import { type FencingToken, Mutex, MutexName } from "@effect-simba/core"
import type { LeaseLost } from "@effect-simba/core/SimbaError"
import { assert, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, References, Scope, Stream } from "effect"
import { protect, type Table } from "../../src/internal/lease/leaseHandle.ts"
import { HeldLease } from "../../src/internal/mutex/heldLease.ts"
import { LeaseGroupImpl, LeaseImpl } from "../../src/internal/mutex/leaseHandle.ts"
import { settingsOf } from "../../src/internal/mutex/leaseOptions.ts"
import { TestLive } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"

const settings = settingsOf({ ttl: Duration.seconds(10), transition: Duration.seconds(6), localTurn: Duration.zero })

const leaseOf = (name: string) => {
  const id = `1-aaaaaaaaaaaa:${name}` as MutexName.LeaseId
  const token = 1 as FencingToken.FencingToken
  return new HeldLease(MutexName.MutexName.make(name), id, token, settings, { monotonic: 0, wall: 0 })
}

it.effect("a fiber that yields to the scheduler as it begins to wait for a loss is notified of the loss", () =>
  Effect.gen(function*() {
    const missed: Array<number> = []
    for (let before = 0; before < 40; before++) {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        const lease = yield* Mutex.acquire(`m${before}`)
        const waiting = yield* Effect.forkChild(
          Effect.provideService(
            Effect.andThen(Effect.forEach(Array.from({ length: before }), () => Effect.void), lease.lost),
            References.MaxOpsBeforeYield,
            40
          ),
          { startImmediately: true }
        )
        stall.millis = 20_000
        assert.isFalse(yield* lease.isHeld)
        for (let i = 0; i < 50; i++) yield* Effect.yieldNow
        if (waiting.pollUnsafe() === undefined) missed.push(before)
      }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }
    assert.deepStrictEqual(missed, [])
  }))

it.effect("work does not start after a loss, even if its fiber yields to the scheduler as its protection begins", () =>
  Effect.gen(function*() {
    const late: Array<number> = []
    for (let before = 0; before < 40; before++) {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        const lease = yield* Mutex.acquire(`m${before}`)
        let isLost = false
        yield* Effect.forkChild(
          Effect.provideService(
            Effect.andThen(
              Effect.forEach(Array.from({ length: before }), () => Effect.void),
              lease.protect(Effect.sync(() => void (isLost && late.push(before))))
            ),
            References.MaxOpsBeforeYield,
            40
          ),
          { startImmediately: true }
        )
        stall.millis = 20_000
        isLost = !(yield* lease.isHeld)
        assert.isTrue(isLost)
        for (let i = 0; i < 50; i++) yield* Effect.yieldNow
      }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }
    assert.deepStrictEqual(late, [])
  }))

it.effect("several leases are checked together, even if the fiber yields to the scheduler", () =>
  Effect.gen(function*() {
    let turn = 0
    const turns = new Set<number>()
    const table = {
      now: () => ({ monotonic: 1, wall: 1 }),
      check: () => void turns.add(turn)
    } as Partial<Table<HeldLease>> as Table<HeldLease>
    const leases = ["a", "b", "c"].map((name) => new LeaseImpl(table, leaseOf(name)))
    const group = new LeaseGroupImpl(leases, (effect) => effect)
    for (const check of [group.isHeld, group.ensure]) {
      for (let ops = 3; ops < 20; ops++) {
        turns.clear()
        yield* Effect.forkChild(
          Effect.provideService(check as Effect.Effect<unknown, LeaseLost>, References.MaxOpsBeforeYield, ops),
          { startImmediately: true }
        )
        for (let i = 0; i < 50; i++) {
          turn++
          yield* Effect.yieldNow
        }
        assert.strictEqual(turns.size, 1)
      }
    }
  }))

it.effect("work under two leases does not begin if checking the second lease ends the first", () =>
  Effect.gen(function*() {
    const [first, second] = [leaseOf("a"), leaseOf("b")]
    // Simulates a finalizer of overdue work that closes the scope of another lease
    const leases = {
      now: () => ({ monotonic: 1, wall: 1 }),
      check: (lease: HeldLease) => {
        if (lease === second) first.state = "released"
      }
    } as Partial<Table<HeldLease>> as Table<HeldLease>
    let hasBegun = false
    const work = protect(leases, [first, second], Effect.sync(() => void (hasBegun = true)))
    assert.isTrue(Exit.isFailure(yield* Effect.exit(work)))
    assert.isFalse(hasBegun)
  }))

it.effect("a release that is requested by starting work awaits all starting work", () =>
  Effect.gen(function*() {
    const lease = leaseOf("m")
    // The work starts other work that synchronously closes the lease's scope
    lease.work.start()
    lease.work.start()
    const ending = yield* Effect.forkChild(lease.endWork()!, { startImmediately: true })
    const [outer, inner] = [yield* Effect.forkChild(Effect.never), yield* Effect.forkChild(Effect.never)]
    lease.work.add(inner, false)
    yield* Effect.repeat(Effect.yieldNow, { times: 10 })
    assert.isUndefined(ending.pollUnsafe())
    lease.work.add(outer, false)
    yield* Fiber.join(ending)
    assert.isDefined(outer.pollUnsafe())
    assert.isDefined(inner.pollUnsafe())
  }))

it.effect("a fiber that yields to the scheduler as it gives up releases a lease that it receives in the meantime", () =>
  Effect.gen(function*() {
    const left: Array<number> = []
    for (let ops = 3; ops < 40; ops++) {
      yield* Effect.gen(function*() {
        const scope = yield* Scope.make()
        yield* Scope.provide(Mutex.acquire("m"), scope)
        const waiting = yield* Effect.forkChild(
          Effect.provideService(Effect.scoped(Mutex.acquire("m")), References.MaxOpsBeforeYield, ops),
          { startImmediately: true }
        )
        for (let i = 0; i < 50; i++) yield* Effect.yieldNow
        waiting.interruptUnsafe()
        yield* Scope.close(scope, Exit.void)
        yield* Fiber.await(waiting)
        for (let i = 0; i < 50; i++) yield* Effect.yieldNow
        if ((yield* Mutex.owner("m"))._tag === "Held") left.push(ops)
      }).pipe(Effect.provide(TestLive))
    }
    assert.deepStrictEqual(left, [])
  }))

it.effect("fibers that yield to the scheduler as they acquire get the mutex, even if others use it in the meantime", () =>
  Effect.gen(function*() {
    const stuck: Array<number> = []
    for (let ops = 3; ops < 40; ops++) {
      yield* Effect.gen(function*() {
        const acquiring = Effect.scoped(Effect.andThen(Mutex.acquire("m", { timeout: "1 minute" }), Effect.yieldNow))
        const fibers = yield* Effect.forEach([1, 2], () =>
          Effect.forkChild(
            Effect.provideService(acquiring, References.MaxOpsBeforeYield, ops),
            { startImmediately: true }
          ))
        yield* Mutex.withLockIfAvailable("m")(Effect.void)
        for (let i = 0; i < 100; i++) yield* Effect.yieldNow
        if (fibers.some((fiber) => fiber.pollUnsafe() === undefined)) stuck.push(ops)
        yield* Fiber.interruptAll(fibers)
      }).pipe(Effect.provide(TestLive))
    }
    assert.deepStrictEqual(stuck, [])
  }))

it.effect("work that requests protection as a release begins does not outlast the lease", () =>
  Effect.gen(function*() {
    const unprotected: Array<number> = []
    for (let ops = 3; ops < 40; ops++) {
      yield* Effect.gen(function*() {
        const scope = yield* Scope.make()
        const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
        const closing = yield* Effect.forkChild(
          Effect.provideService(Scope.close(scope, Exit.void), References.MaxOpsBeforeYield, ops),
          { startImmediately: true }
        )
        let isRunning = false
        const work = Effect.acquireUseRelease(
          Effect.sync(() => void (isRunning = true)),
          () => Effect.never,
          () => Effect.sync(() => void (isRunning = false))
        )
        const working = yield* Effect.forkChild(lease.protect(work), { startImmediately: true })
        yield* Fiber.await(closing)
        if (isRunning) unprotected.push(ops)
        yield* Fiber.interrupt(working)
      }).pipe(Effect.provide(TestLive))
    }
    assert.deepStrictEqual(unprotected, [])
  }))

it.effect("a reader that yields to the scheduler as its change stream begins gets the latest state", () =>
  Effect.gen(function*() {
    const missed: Array<number> = []
    for (let ops = 3; ops < 80; ops++) {
      yield* Effect.scoped(Effect.gen(function*() {
        const contender = yield* Mutex.contend("m")
        for (let i = 0; i < 50; i++) yield* Effect.yieldNow
        let last: string | undefined
        yield* Effect.forkChild(
          Effect.provideService(
            Stream.runForEach(contender.changes, ({ _tag }) => Effect.sync(() => void (last = _tag))),
            References.MaxOpsBeforeYield,
            ops
          ),
          { startImmediately: true }
        )
        yield* contender.stop
        for (let i = 0; i < 50; i++) yield* Effect.yieldNow
        if (last !== (yield* contender.state)._tag) missed.push(ops)
      })).pipe(Effect.provide(TestLive))
    }
    assert.deepStrictEqual(missed, [])
  }))
