import { assert, describe, it } from "@effect/vitest"
import { Clock, type Duration, Effect, Exit, Fiber, Logger, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import { IndexedHeap, type Item } from "../../src/internal/lease/indexedHeap.ts"
import { instant } from "../../src/internal/lease/instant.ts"
import * as alarmsOf from "../../src/internal/lease/timerQueue.ts"
import { stalling } from "../support/stalling.ts"
import { suspending } from "../support/suspending.ts"

const keysTo = (maximum: number) => Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum })))

describe("the heap", () => {
  const givesAll = ([first, changes]: readonly [ReadonlyArray<number>, ReadonlyArray<number>]) => {
    const heap = new IndexedHeap<Item>()
    const items = first.map((key): Item => ({ key, position: -1, before: undefined, behind: undefined }))
    for (const item of items) heap.place(item, item.key)
    const inside = new Set(items)
    changes.forEach((change, index) => {
      const item = items[(change * 7 + index) % Math.max(1, items.length)]
      if (item === undefined) return
      if (change % 3 === 0) {
        heap.remove(item)
        inside.delete(item)
      } else {
        heap.place(item, change)
        inside.add(item)
      }
    })
    const expected = [...inside].map(({ key }) => key).sort((a, b) => a - b)
    const passed: Array<number> = []
    for (let item = heap.first; item !== undefined; item = heap.first) {
      passed.push(item.key)
      heap.remove(item)
      assert.strictEqual(item.position, -1)
    }
    assert.deepStrictEqual(passed, expected)
  }

  it.prop(
    "returns items in the order of their keys, even after moves and removals",
    [keysTo(20), keysTo(20)],
    givesAll,
    { arbitrary: { size: 100 } }
  )
  it.prop("returns all items with equal keys", [keysTo(2), keysTo(4)], givesAll, { arbitrary: { size: 100 } })
})

describe("the timer queue", () => {
  const now = Effect.map(Clock.Clock, (clock) => instant(clock).monotonic)

  it.effect("fires each timer once and on time, unless it is cancelled", () =>
    Effect.gen(function*() {
      const alarms = yield* alarmsOf.make
      const start = yield* now
      const rung: Array<string> = []
      alarms.at(start + 300, () => rung.push("c"))
      alarms.at(start + 100, () => rung.push("a"))
      const callOff = alarms.at(start + 150, () => rung.push("never"))
      alarms.at(start + 200, () => rung.push("b"))
      callOff()
      yield* TestClock.adjust(99)
      assert.deepStrictEqual(rung, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(rung, ["a"])
      callOff()
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(rung, ["a", "b"])
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(rung, ["a", "b", "c"])
    }).pipe(Effect.scoped))

  it.effect("a timer may add other timers, even for a time in the past", () =>
    Effect.gen(function*() {
      const alarms = yield* alarmsOf.make
      const start = yield* now
      const rung: Array<string> = []
      alarms.at(start + 100, () => {
        rung.push("first")
        alarms.at(start, () => rung.push("late"))
        alarms.at(start + 101, () => rung.push("next"))
      })
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(rung, ["first", "late"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(rung, ["first", "late", "next"])
    }).pipe(Effect.scoped))

  it.effect("a suspension counts as elapsed time for polls, but not for other timers", () =>
    Effect.gen(function*() {
      const { clock, suspension } = yield* suspending
      const alarms = yield* Effect.provideService(alarmsOf.make, Clock.Clock, clock)
      const start = yield* now
      const rung: Array<string> = []
      alarms.pollAt(start + 20_000, () => rung.push("poll"))
      alarms.at(start + 20_000, () => rung.push("timer"))
      const callOff = alarms.pollAt(start + 19_000, () => rung.push("never"))
      yield* TestClock.adjust(500)
      suspension.millis = 16_000
      callOff()
      yield* TestClock.adjust(3499)
      assert.deepStrictEqual(rung, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(rung, ["poll"])
      // A new poll is affected neither by setting the wall clock back nor by an earlier suspension
      suspension.millis = 0
      alarms.pollAt(start + 19_000, () => rung.push("second poll"))
      suspension.millis = -3000
      yield* TestClock.adjust(14_999)
      assert.deepStrictEqual(rung, ["poll"])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(rung, ["poll", "second poll"])
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(rung, ["poll", "second poll", "timer"])
    }).pipe(Effect.scoped))

  it.effect("a suspension counts if it follows a backward step of the wall clock, but not if it ended before the poll was added", () =>
    Effect.gen(function*() {
      const { clock, suspension } = yield* suspending
      suspension.millis = 50_000
      const alarms = yield* Effect.provideService(alarmsOf.make, Clock.Clock, clock)
      let rung = 0
      alarms.pollAt((yield* now) + 20_000, () => rung++)
      yield* TestClock.adjust(1500)
      assert.strictEqual(rung, 0)
      suspension.millis = 0
      yield* TestClock.adjust(1000)
      suspension.millis = 17_500
      yield* TestClock.adjust(1000)
      assert.strictEqual(rung, 1)
    }).pipe(Effect.scoped))

  it.effect("an overdue poll fires within a second after the machine wakes up", () =>
    Effect.gen(function*() {
      const { clock, suspension } = yield* suspending
      const alarms = yield* Effect.provideService(alarmsOf.make, Clock.Clock, clock)
      let rung = 0
      alarms.pollAt((yield* now) + 60_000, () => rung++)
      yield* TestClock.adjust(100)
      suspension.millis = 60_000
      alarms.pollAt((yield* now) + 120_000, () => {})
      yield* TestClock.adjust(1000)
      assert.strictEqual(rung, 1)
    }).pipe(Effect.scoped))

  it.effect("sleeps once, and again only if a timer is set for an earlier time", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      let sleeps = 0
      const counting: Clock.Clock = Object.assign(Object.create(clock), {
        sleep: (duration: Duration.Duration) => Effect.andThen(Effect.sync(() => sleeps++), clock.sleep(duration))
      })
      const alarms = yield* Effect.provideService(alarmsOf.make, Clock.Clock, counting)
      const start = yield* now
      for (const [millis, expected] of [[200, 1], [300, 1], [100, 2], [150, 2]] as const) {
        alarms.at(start + millis, () => {})
        yield* TestClock.adjust(0)
        assert.strictEqual(sleeps, expected, String(millis))
      }
    }).pipe(Effect.scoped))

  it.effect("timers keep up when turns are long, because later slices are larger", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      const alarms = yield* Effect.provideService(alarmsOf.make, Clock.Clock, clock)
      const at = (yield* now) + 100
      const [all, counted] = [1000, { rung: 0, turns: 0 }]
      for (let i = 0; i < all; i++) alarms.at(at, () => counted.rung++)
      const busy = yield* Effect.forkChild(Effect.whileLoop({
        while: () => counted.rung < all,
        body: () => Effect.yieldNow,
        step: () => {
          if (counted.rung === 0) return
          counted.turns++
          stall.millis += 1000
        }
      }))
      yield* TestClock.adjust(100)
      yield* Fiber.join(busy)
      assert.isAtLeast(counted.turns, 3)
      assert.isAtMost(counted.turns, 6)
    }).pipe(Effect.scoped))
})

it.effect("when the queue closes, it calls all timers even if one of them throws, and later timers immediately", () =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const alarms = yield* Scope.provide(alarmsOf.make, scope)
    const rung: Array<number> = []
    for (let i = 0; i < 4; i++) {
      alarms.at(1000 + i, () => {
        rung.push(i)
        if (i % 2 === 0) throw new Error("timer")
      })
    }
    assert.isTrue(Exit.isSuccess(yield* Effect.exit(Scope.close(scope, Exit.void))))
    assert.deepStrictEqual(rung, [0, 1, 2, 3])
    alarms.at(1000, () => rung.push(4))
    assert.deepStrictEqual(rung, [0, 1, 2, 3, 4])
  }).pipe(Effect.provide(Logger.layer([]))))
