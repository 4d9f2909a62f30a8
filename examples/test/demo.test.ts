import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { direct } from "../demo/director.ts"
import type { Event } from "../demo/events.ts"
import * as memoryFleet from "../demo/memoryFleet.ts"
import * as plan from "../demo/plan.ts"
import * as report from "../demo/report.ts"
import { timeline } from "../demo/timeline.ts"

const rehearsal = Effect.gen(function*() {
  const fleet = yield* memoryFleet.make
  const play = yield* Effect.forkChild(direct(fleet, () => Effect.void))
  yield* TestClock.adjust("1 minute")
  return yield* Fiber.join(play)
})

const failing = (history: ReadonlyArray<Event>) =>
  report.checks(history).filter(([, holds]) => !holds).map(([claim]) => claim)

describe("the demo", () => {
  it.effect("keeps what it claims, in one process", () =>
    Effect.gen(function*() {
      const history = yield* rehearsal
      assert.deepStrictEqual(failing(history), [])
      assert.lengthOf(timeline(history), plan.workers.length + 3)
      assert.lengthOf(report.summary(history), 2)
    }))

  it.effect("notices two leaders, and tokens that do not grow", () =>
    Effect.gen(function*() {
      const history = yield* rehearsal
      const second = report.termsOf(history)[1]!
      const earlier = history.map((event) =>
        event._tag === "Leading" && event.token === second.token ? { ...event, at: event.at - 100, token: 1 } : event
      )
      assert.lengthOf(failing(earlier), 2)
    }))

  it.effect("notices a worker that failed", () =>
    Effect.gen(function*() {
      const history = yield* rehearsal
      const failed = history.map((event): Event =>
        event._tag === "Finished" && event.worker === "ada"
          ? { _tag: "Failed", worker: "ada", at: event.at, problem: "it ended" }
          : event
      )
      assert.lengthOf(failing(failed), 2)
    }))
})
