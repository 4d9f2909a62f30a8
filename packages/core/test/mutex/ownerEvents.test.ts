import { Mutex, type OwnerEvent } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Latch, Layer, Queue, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { between, makeReader, serve } from "../../src/internal/mutex/ownerWatch.ts"
import { Faults, outage, refusal } from "../support/faultyStore.ts"
import { another, start, TestLive } from "../support/setup.ts"

const tags = (events: ReadonlyArray<OwnerEvent.OwnerEvent>) => events.map((event) => event._tag)

/** Runs every fiber that can run, without moving the clock. */
const settle = Effect.repeat(Effect.yieldNow, { times: 20 })

const recording = Effect.fnUntraced(function*(options?: Parameters<typeof Mutex.events>[1]) {
  const observed: Array<OwnerEvent.OwnerEvent> = []
  yield* Effect.forkScoped(
    Stream.runForEach(Mutex.events("m", options), (event) => Effect.sync(() => observed.push(event))),
    { startImmediately: true }
  )
  yield* settle
  return observed
})

describe("Mutex.events", { tags: ["S16"] }, () => {
  it.effect("reports acquisitions immediately, and hand-overs, releases and renewals when they are observed", () =>
    Effect.gen(function*() {
      const observed = yield* recording({ renewals: true })
      const first = yield* Scope.make()
      const lease = yield* Scope.provide(Mutex.acquire("m"), first)
      yield* settle
      assert.deepStrictEqual(tags(observed), ["Acquired"])
      assert.deepInclude(observed[0], { owner: lease.id, token: lease.token })
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(tags(observed), ["Acquired", "Renewed"])

      const second = yield* Scope.make()
      const waiter = yield* start(Scope.provide(Mutex.acquire("m"), second))
      yield* Scope.close(first, Exit.void)
      const successor = yield* Fiber.join(waiter)
      yield* settle
      assert.deepInclude(observed[2], { _tag: "HandedOver", owner: lease.id, successor: successor.id })

      yield* Scope.close(second, Exit.void)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(tags(observed), ["Acquired", "Renewed", "HandedOver", "Released"])
    }).pipe(Effect.provide(TestLive)))

  it.effect("starts with the current owner, and reports when the owner's lease expires", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.guard = "fail"
      faults.release = "fail"
      yield* Mutex.acquire("m")
      yield* TestClock.adjust("3 seconds")
      const observed = yield* recording()
      assert.deepStrictEqual(tags(observed), ["Acquired"])
      yield* TestClock.adjust("14 seconds")
      assert.deepStrictEqual(tags(observed), ["Acquired", "Expired"])
    }).pipe(Effect.provide(TestLive)))

  it.effect("reports a gap in an outage, and then the state if it has changed", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const observed = yield* recording()
      faults.inspect = "fail"
      yield* TestClock.adjust("2 seconds")
      assert.isAbove(observed.length, 0)
      assert.deepStrictEqual([...new Set(tags(observed))], ["Gap"])
      faults.inspect = "work"
      yield* Mutex.acquire("m")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(observed.at(-1)!._tag, "Acquired")
    }).pipe(Effect.provide(TestLive)))

  it.effect("a poll without a reply counts as an outage when a lease has passed", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const observed = yield* recording()
      faults.inspect = "hang"
      yield* TestClock.adjust("2 seconds")
      faults.inspect = "work"
      yield* Mutex.acquire("m")
      yield* TestClock.adjust("16 seconds")
      assert.deepStrictEqual(tags(observed), ["Gap", "Acquired"])
    }).pipe(Effect.provide(TestLive)))

  it.effect(
    "does not block for a slow reader, which receives a gap and the latest state",
    () =>
      Effect.gen(function*() {
        const gate = yield* Latch.make(false)
        const observed: Array<OwnerEvent.OwnerEvent> = []
        yield* Effect.forkScoped(
          Stream.runForEach(
            Mutex.events("m"),
            (event) => Effect.andThen(gate.await, Effect.sync(() => observed.push(event)))
          ),
          { startImmediately: true }
        )
        for (let i = 0; i < 300; i++) {
          yield* Effect.scoped(Effect.andThen(Mutex.acquire("m"), TestClock.adjust("1 millis")))
          yield* TestClock.adjust("1 second")
        }
        const last = yield* Mutex.acquire("m")
        yield* TestClock.adjust("1 millis")
        yield* gate.open
        yield* TestClock.adjust("1 millis")
        assert.isBelow(observed.length, 300)
        assert.include(tags(observed), "Gap")
        assert.isTrue(observed.some((event) => event._tag === "Acquired" && event.owner === last.id))
      }).pipe(Effect.provide(TestLive)),
    { tags: ["B12"] }
  )

  it.effect("fails if the backend refuses a request, but continues through an outage", () =>
    Effect.gen(function*() {
      const store = yield* MutexStore.MutexStore
      const failing = (error: typeof refusal) =>
        Layer.fresh(Mutex.layer()).pipe(
          Layer.provide(Layer.succeed(MutexStore.MutexStore, { ...store, inspect: () => Effect.fail(error) }))
        )
      const refused = yield* start(Effect.flip(Effect.provide(Stream.runDrain(Mutex.events("m")), failing(refusal))))
      const out = yield* start(Effect.provide(Stream.runDrain(Mutex.events("m")), failing(outage)))
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* Fiber.join(refused), refusal)
      assert.isUndefined(out.pollUnsafe())
    }).pipe(Effect.provide(TestLive)))

  it.effect("polls every tenth of a second if requested, and no more often", () =>
    Effect.gen(function*() {
      const store = yield* MutexStore.MutexStore
      let polls = 0
      const counting = Layer.fresh(Mutex.layer()).pipe(
        Layer.provide(Layer.succeed(MutexStore.MutexStore, {
          ...store,
          inspect: (mutex, limit) => {
            polls++
            return store.inspect(mutex, limit)
          }
        }))
      )
      yield* start(Effect.provide(Stream.runDrain(Mutex.events("m", { pollInterval: "100 millis" })), counting))
      yield* TestClock.adjust("10 seconds")
      assert.isAtLeast(polls, 95)
      // Some polls are sent early, together with polls for other mutexes
      assert.isAtMost(polls, 130)
    }).pipe(Effect.provide(TestLive)))

  it.effect("fails for invalid names and options", () =>
    Effect.gen(function*() {
      const refused = (stream: Stream.Stream<unknown, { readonly _tag: string }, Mutex.Mutex>) =>
        Effect.map(Effect.flip(Stream.runDrain(stream)), (error) => error._tag)
      assert.strictEqual(yield* refused(Mutex.events(" ")), "InvalidName")
      assert.strictEqual(yield* refused(Mutex.events("m", { pollInterval: 0 })), "InvalidConfig")
    }).pipe(Effect.provide(TestLive)))
})

describe("what happened between two polls", () => {
  const nobody = { owner: undefined, token: undefined, end: Infinity }
  const held = (owner: string, end: number) => ({ owner, token: undefined, end })

  it.effect.each(
    [
      ["free, then owned", nobody, held("a", 100), 0, ["Acquired"]],
      ["still free", nobody, nobody, 0, []],
      ["renewed", held("a", 100), held("a", 300), 50, ["Renewed"]],
      ["the same lease, with a slightly later end", held("a", 100), held("a", 150), 50, []],
      [
        "the same lease, with an end later by more than the variation in round trips",
        held("a", 100),
        held("a", 151),
        50,
        ["Renewed"]
      ],
      ["gone before its end", held("a", 100), nobody, 50, ["Released"]],
      ["gone at its end", held("a", 100), nobody, 100, ["Expired"]],
      ["gone after its end", held("a", 100), nobody, 101, ["Expired"]],
      ["another before its end", held("a", 100), held("b", 200), 50, ["HandedOver"]],
      ["another after its end", held("a", 100), held("b", 200), 101, ["Expired", "Acquired"]],
      ["held without an expiry, then gone", held("a", Infinity), nobody, 1e9, ["Released"]]
    ] as const
  )("%s", ([, before, after, now, expected]) =>
    Effect.sync(() => {
      assert.deepStrictEqual(tags(between("m", before, after, now, true)), [...expected])
    }))

  it("an event has the token if it is known", () => {
    const event = { _tag: "Acquired", mutex: "m", owner: "a" }
    assert.deepStrictEqual<unknown>(between("m", nobody, held("a", 100), 0, true), [event])
    const token = 7 as never
    assert.deepStrictEqual<unknown>(between("m", nobody, { ...held("a", 100), token }, 0, true), [{ ...event, token }])
  })

  it.effect("renewals are reported only on request", () =>
    Effect.sync(() => assert.deepStrictEqual(between("m", held("a", 100), held("a", 900), 50, false), [])))
})

it.effect("a reader that falls behind by more than 128 events gets a gap in place of the events that it misses", () =>
  Effect.gen(function*() {
    const all = Array.from({ length: 300 }, (_, n) => ({ _tag: "Acquired", mutex: "m", owner: `${n}` }) as const)
    const gap = { _tag: "Gap", mutex: "m" } as const
    const expected = [
      [128, all.slice(0, 128)],
      [129, [gap, all[128]]],
      [255, [gap, ...all.slice(128, 255)]],
      [256, [gap, all[255]]]
    ] as const
    for (const [count, events] of expected) {
      const reader = yield* makeReader
      serve(reader, all.slice(0, count))
      assert.deepStrictEqual<unknown>(yield* Queue.takeAll(reader), events)
    }
  }))

it.effect("a reader receives the events before a refusal, even if others follow it", () =>
  Effect.gen(function*() {
    const event = { _tag: "Acquired", mutex: "m", owner: "1" } as const
    const before = Array.from({ length: 128 }, () => event)
    const reader = yield* makeReader
    serve(reader, before)
    yield* Queue.fail(reader, refusal)
    serve(reader, [event])
    assert.deepStrictEqual<unknown>(yield* Queue.takeN(reader, 128), before)
    assert.isTrue(Exit.isFailure(yield* Effect.exit(Queue.take(reader))))
  }))

describe("an operator", { tags: ["B59"] }, () => {
  it.effect("can read the owner, the remaining time, the token, and the queue with waiting times", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* Mutex.inspect("m"), {
        ownership: { _tag: "Free" },
        token: undefined,
        waiting: 0,
        waiters: []
      })
      const lease = yield* Mutex.acquire("m")
      const [b, c] = [yield* another("b"), yield* another("c")]
      yield* Effect.provide(start(Mutex.acquire("m")), b)
      yield* TestClock.adjust("3 seconds")
      yield* Effect.provide(start(Mutex.acquire("m")), c)
      yield* TestClock.adjust("1 second")
      const state = yield* Mutex.inspect("m", { limit: 1 })
      assert.strictEqual(state.token, lease.token)
      assert.strictEqual(state.waiting, 2)
      assert.deepStrictEqual(state.waiters.map(({ waited }) => Duration.toMillis(waited)), [4000])
      assert.isTrue(state.ownership._tag === "Held" && state.ownership.owner === lease.id)
    }).pipe(Effect.provide(TestLive)))

  it.effect("can request any number of waiters", () =>
    Effect.gen(function*() {
      const store = yield* MutexStore.MutexStore
      const limits: Array<number> = []
      const recording = Layer.succeed(MutexStore.MutexStore, {
        ...store,
        inspect: (mutex, limit) => Effect.suspend(() => (limits.push(limit), store.inspect(mutex, limit)))
      })
      yield* Effect.forEach([Infinity, 1.5, 0, -1, NaN], (limit) => Mutex.inspect("m", { limit })).pipe(
        Effect.provide(Layer.provide(Mutex.layer(), recording))
      )
      // Redis accepts only integers, and counts negative ones from the end
      assert.deepStrictEqual(limits, [1_000_000_000, 1, 0, 0, 0])
    }).pipe(Effect.provide(TestLive)))

  it.effect("can list owned mutexes, without released ones", () =>
    Effect.gen(function*() {
      yield* Mutex.acquire("a")
      yield* Mutex.acquire("b")
      yield* Effect.scoped(Mutex.acquire("c"))
      const names = yield* Stream.runCollect(Mutex.list)
      assert.deepStrictEqual([...names].sort(), ["a", "b"])
    }).pipe(Effect.provide(TestLive)))

  it.effect("hands the mutex over with a larger token by forcing a release, which immediately notifies the old owner", () =>
    Effect.gen(function*() {
      const old = yield* Mutex.acquire("m")
      const work = yield* start(Effect.flip(old.protect(Effect.never)))
      const waiter = yield* start(Mutex.acquire("m"))
      const from = yield* Mutex.forceRelease("m")
      assert.isTrue(from._tag === "Held" && from.owner === old.id)
      const next = yield* Fiber.join(waiter)
      assert.isAbove(next.token, old.token)
      assert.strictEqual((yield* Fiber.join(work)).reason._tag, "ForcedRelease")
      assert.isTrue(yield* next.isHeld)
    }).pipe(Effect.provide(TestLive)))

  it.effect("frees a mutex without waiters by forcing a release, after which the next token is larger", () =>
    Effect.gen(function*() {
      const old = yield* Mutex.acquire("m")
      const lost = yield* start(old.lost)
      yield* Mutex.forceRelease("m")
      assert.strictEqual((yield* Fiber.join(lost)).reason._tag, "ForcedRelease")
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
      assert.isAbove((yield* Mutex.acquire("m")).token, old.token)
    }).pipe(Effect.provide(TestLive)))

  it.effect("a false hint causes one request, but no loss", () =>
    Effect.gen(function*() {
      const lease = yield* Mutex.acquire("m")
      const store = yield* MutexStore.MutexStore
      const forged = Layer.effect(
        MutexStore.MutexStore,
        Effect.succeed({
          ...store,
          inbox: (key, onForced) =>
            Effect.tap(
              store.inbox(key, onForced),
              Effect.forkScoped(Effect.forever(Effect.delay(Effect.sync(() => onForced(lease.id)), 100)))
            )
        })
      )
      yield* Effect.gen(function*() {
        const mine = yield* Mutex.acquire("n")
        yield* TestClock.adjust("1 second")
        assert.isTrue(yield* mine.isHeld)
      }).pipe(Effect.provide(Mutex.layer().pipe(Layer.provide(forged))))
      assert.isTrue(yield* lease.isHeld)
    }).pipe(Effect.provide(TestLive)), { tags: ["H5"] })
})
