import { Mutex, MutexSchedule } from "@effect-simba/core"
import * as MutexConfig from "@effect-simba/core/MutexConfig"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Option, Pull, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { pollDelay } from "../../src/internal/mutex/pollDelay.ts"
import * as FaultyStore from "../support/faultyStore.ts"
import { Faults } from "../support/faultyStore.ts"
import { hold } from "../support/waiters.ts"

/** The delays that a schedule produces for a sequence of inputs. */
const delays = <I>(schedule: Schedule.Schedule<unknown, I>, inputs: ReadonlyArray<I>) =>
  Effect.gen(function*() {
    const step = yield* Schedule.toStep(schedule)
    const result: Array<number> = []
    for (const input of inputs) {
      const next = yield* Pull.matchEffect(step(0, input), {
        onSuccess: ([, delay]) => Effect.succeedSome(delay),
        onFailure: Effect.failCause,
        onDone: () => Effect.succeedNone
      })
      if (Option.isSome(next)) result.push(Duration.toMillis(next.value))
    }
    return result
  })

describe("the guard schedule", { tags: ["L5"] }, () => {
  const renewed = { _tag: "Renewed", ttl: Duration.seconds(10) } as const
  const failed = { _tag: "Failed" } as const

  it.effect("waits for the ttl after a renewal, and backs off after failures", () =>
    Effect.gen(function*() {
      const row = yield* delays<Schedule.Input<typeof MutexSchedule.guard>>(MutexSchedule.guard, [
        renewed,
        failed,
        failed,
        failed,
        failed,
        failed,
        failed,
        renewed,
        failed
      ])
      assert.strictEqual(row[0], 10_000)
      assert.strictEqual(row[7], 10_000)
      const expected = [100, 200, 400, 800, 1000, 1000]
      expected.forEach((base, i) => {
        assert.isAtLeast(row[i + 1]!, base * 0.8)
        assert.isAtMost(row[i + 1]!, base * 1.2)
      })
      assert.isAtMost(row[8]!, 120)
    }))

  it.effect("counts the failures of two leases separately", () =>
    Effect.gen(function*() {
      yield* delays<Schedule.Input<typeof MutexSchedule.guard>>(MutexSchedule.guard, [failed, failed, failed, failed])
      const [first] = yield* delays<Schedule.Input<typeof MutexSchedule.guard>>(MutexSchedule.guard, [failed])
      assert.isAtMost(first!, 120)
    }))
})

describe("a user's guard", { tags: ["L5"] }, () => {
  const guarded = (guard: MutexSchedule.MutexSchedule) =>
    Mutex.layer({ processName: "us", guard }).pipe(Layer.provideMerge(FaultyStore.layer))
  const renewals = Effect.map(Faults, ({ calls }) => calls.filter((call) => call.startsWith("guard")).length)

  it.effect("determines the time before the first renewal and between later ones", () =>
    Effect.gen(function*() {
      yield* Mutex.acquire("m")
      yield* TestClock.adjust("1900 millis")
      assert.strictEqual(yield* renewals, 0)
      yield* TestClock.adjust("200 millis")
      assert.strictEqual(yield* renewals, 1)
      yield* TestClock.adjust("4 seconds")
      assert.strictEqual(yield* renewals, 3)
    }).pipe(Effect.scoped, Effect.provide(guarded(Schedule.spaced("2 seconds")))))

  it.effect("also applies to a lease that another fiber has handed on", () =>
    Effect.gen(function*() {
      const holder = yield* hold({ localTurn: "1 minute" })
      const next = yield* hold({ localTurn: "1 minute" })
      yield* TestClock.adjust("1 second")
      yield* holder.letGo
      const lease = yield* next.lease
      assert.strictEqual(lease.id, (yield* holder.lease).id)
      yield* TestClock.adjust("5100 millis")
      assert.strictEqual(yield* renewals, 3)
      yield* next.letGo
    }).pipe(Effect.provide(guarded(Schedule.spaced("2 seconds")))))

  it.effect("determines the time before the next attempt after a failure", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* Mutex.acquire("m")
      faults.guard = "fail"
      yield* TestClock.adjust("7900 millis")
      assert.strictEqual(yield* renewals, 3)
    }).pipe(Effect.scoped, Effect.provide(guarded(Schedule.spaced("2 seconds")))))

  it.effect("falls back to the ttl when it ends or delays longer than the ttl", () =>
    Effect.forEach([Schedule.recurs(0), Schedule.spaced("1 day")], (guard) =>
      Effect.gen(function*() {
        const lease = yield* Mutex.acquire("m")
        yield* TestClock.adjust("1 minute")
        yield* lease.ensure
        assert.strictEqual(yield* renewals, 6)
      }).pipe(Effect.scoped, Effect.provide(Layer.fresh(guarded(guard))))))

  it.effect("does not end the lease if it crashes", () =>
    Effect.gen(function*() {
      const lease = yield* Mutex.acquire("m")
      yield* TestClock.adjust("1 minute")
      yield* lease.ensure
    }).pipe(Effect.scoped, Effect.provide(guarded(Schedule.fromStep(Effect.die("boom"))))))

  it.effect("is refused with an error that names the option if it is not a schedule", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(MutexConfig.make({ guard: "often" as never }))
      assert.strictEqual(error.option, "guard")
    }))
})

describe("when a waiter polls", { tags: ["H6"] }, () => {
  const [confirm, lease] = [Duration.millis(1500), Duration.seconds(16)]
  const delay = (fields: Partial<Parameters<typeof pollDelay>[0]>, random = 0) =>
    pollDelay({
      ownership: { _tag: "Held", owner: "o", timeLeft: Duration.seconds(5) },
      position: 0,
      foreign: false,
      ...fields
    }, { confirm, lease, random })

  it("the first waiter polls right after the key has expired, and the next seven follow 30 ms apart", () =>
    assert.deepStrictEqual([0, 1, 2, 7].map((position) => delay({ position }, 0.5)), [5001, 5031, 5061, 5211]))

  it(
    "the other waiters are spread over one confirm period",
    { tags: ["S17"] },
    () =>
      assert.deepStrictEqual([0, 0.5, 1].map((random) => delay({ position: 8 }, random)), [
        5001 + 240,
        5001 + 240 + 630,
        5001 + 1500
      ])
  )

  it(
    "if the owner's lease never ends, waiters poll once per lease duration",
    { tags: ["S20"] },
    () => assert.strictEqual(delay({ ownership: { _tag: "Held", owner: "o" } }), 16_000)
  )

  it(
    "with Simba contenders, the first waiter polls every confirm period and the others every 2 s",
    { tags: ["H4"] },
    () => {
      const soon = { _tag: "Held", owner: "o", timeLeft: Duration.millis(200) } as const
      assert.deepStrictEqual([
        delay({ foreign: true }),
        delay({ foreign: true, position: 1 }),
        delay({ foreign: true, position: 99 }),
        delay({ foreign: true, ownership: soon })
      ], [1500, 2000, 2000, 201])
    }
  )

  it("waiters poll after the confirm period if the mutex is free but reserved for another contender", () =>
    assert.strictEqual(delay({ ownership: { _tag: "Free" } }), 1500))
})
