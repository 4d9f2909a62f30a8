import { MutexSchedule } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Option, Pull, Random, Schedule } from "effect"
import { lookSchedule } from "../../src/internal/mutex/lookSchedule.ts"

/** The delays that a schedule answers to a row of inputs. */
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

  it.effect("waits for ttl after a renewal, and backs off after failures", () =>
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

  it.effect("keeps the failures of two leases apart", () =>
    Effect.gen(function*() {
      yield* delays<Schedule.Input<typeof MutexSchedule.guard>>(MutexSchedule.guard, [failed, failed, failed, failed])
      const [first] = yield* delays<Schedule.Input<typeof MutexSchedule.guard>>(MutexSchedule.guard, [failed])
      assert.isAtMost(first!, 120)
    }))
})

describe("when a waiter looks again", { tags: ["H6"] }, () => {
  const schedule = lookSchedule({ confirm: Duration.millis(1500), lease: Duration.seconds(16) })
  type Refused = Schedule.Input<typeof schedule>
  const refused = (fields: Partial<Refused>): Refused => ({
    ownership: { _tag: "Held", owner: "o", remaining: Duration.seconds(5) },
    position: 0,
    foreign: false,
    ...fields
  })

  it.effect("the first looks right after the key has expired, the next seven 30 ms apart", () =>
    Effect.gen(function*() {
      const row = yield* delays(schedule, [0, 1, 2, 7].map((position) => refused({ position })))
      assert.deepStrictEqual(row, [5001, 5031, 5061, 5211])
    }))

  it.effect("the rest spread over one confirm period", () =>
    Random.withSeed(
      Effect.gen(function*() {
        const row = yield* delays(schedule, Array.from({ length: 200 }, (_, i) => refused({ position: i + 8 })))
        for (const delay of row) {
          assert.isAtLeast(delay, 5001 + 240)
          assert.isAtMost(delay, 5001 + 1500)
        }
        assert.isAbove(new Set(row).size, 190)
        assert.isBelow(Math.min(...row), 5400)
        assert.isAbove(Math.max(...row), 6300)
      }),
      "spread"
    ), { tags: ["S17"] })

  it.effect("a mutex held without end is looked at once per lease", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* delays(schedule, [refused({ ownership: { _tag: "Held", owner: "o" } })]), [16_000])
    }), { tags: ["S20"] })

  it.effect(
    "where others take part, the first looks every confirm period and the rest every 2 s",
    () =>
      Effect.gen(function*() {
        const row = yield* delays(schedule, [
          refused({ foreign: true, position: 0 }),
          refused({ foreign: true, position: 1 }),
          refused({ foreign: true, position: 99 }),
          refused({
            foreign: true,
            position: 0,
            ownership: { _tag: "Held", owner: "o", remaining: Duration.millis(200) }
          })
        ])
        assert.deepStrictEqual(row, [1500, 2000, 2000, 201])
      }),
    { tags: ["H4"] }
  )

  it.effect("a mutex kept free for another is looked at after the confirm period", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* delays(schedule, [refused({ ownership: { _tag: "Free" } })]), [1500])
    }))
})
