/** When a waiter polls if it is not notified. */
import type { LeaseId } from "@effect-simba/core/MutexName"
import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { pollDelay } from "../../src/internal/mutex/pollDelay.ts"

const owner = "1:1@simba" as LeaseId
const periods = { confirm: Duration.millis(1500), lease: Duration.seconds(16), random: 0.5 }
const held = (seconds: number) => ({ _tag: "Held", owner, timeLeft: Duration.seconds(seconds) }) as const
const delay = (ownership: Parameters<typeof pollDelay>[0]["ownership"], position: number, foreign: boolean) =>
  pollDelay({ foreign, ownership, position }, periods)

describe("a waiter polls", () => {
  it("just after the owner's lease ends, the first eight waiters 30 ms apart, the others within a confirm period", () => {
    assert.deepStrictEqual([0, 1, 7, 8, 100].map((position) => delay(held(5), position, false)), [
      5001,
      5031,
      5211,
      5001 + 240 + 630,
      5001 + 240 + 630
    ])
  })

  it("right after the first eight if the confirm period is shorter than the time that their polls take", () => {
    const short = { ...periods, confirm: Duration.millis(100) }
    assert.strictEqual(pollDelay({ foreign: false, ownership: held(5), position: 8 }, short), 5001 + 240)
  })

  it("after the duration of its own lease if the owner's lease is longer or never ends", () => {
    assert.strictEqual(delay(held(60), 0, false), 16_001)
    assert.strictEqual(delay({ _tag: "Held", owner }, 0, false), 16_000)
  })

  it("after a confirm period if the mutex is free but reserved for another", () => {
    assert.strictEqual(delay({ _tag: "Free" }, 1, false), 1530)
  })

  it("with Simba contenders, every confirm period if it is first, otherwise every two seconds", () => {
    assert.deepStrictEqual([0, 1, 9].map((position) => delay(held(5), position, true)), [1500, 2000, 2000])
    assert.strictEqual(delay(held(1), 0, true), 1001)
  })
})
