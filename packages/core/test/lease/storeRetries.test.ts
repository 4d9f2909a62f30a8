import { SimbaError } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Logger, Ref, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { isTransient } from "../../src/internal/lease/storeFailure.ts"
import { persist, retrySchedule } from "../../src/internal/lease/storeRetries.ts"

const outage = new SimbaError.BackendError({ operation: "read", isRetryable: true, cause: "down" })
const refusal = new SimbaError.BackendError({ operation: "read", isRetryable: false, cause: "NOPERM" })
const unreadable = new SimbaError.ProtocolError({ where: "a reply", read: "x", problem: "odd" })

/** Fails with each error once, then succeeds. */
const request = (errors: ReadonlyArray<SimbaError.StoreError>) =>
  Effect.map(Ref.make(errors), (rest) =>
    Effect.flatMap(
      Ref.getAndUpdate(rest, (errors) => errors.slice(1)),
      ([error]) => error === undefined ? Effect.succeed("answer") : Effect.fail(error)
    ))

describe("failures of the store", () => {
  it("only an outage is transient", () => {
    assert.deepStrictEqual([outage, refusal, unreadable].map(isTransient), [true, false, false])
  })

  it.effect("retry pauses double up to a maximum, vary by a fifth, never end, and are the schedule's output", () =>
    Effect.gen(function*() {
      const step = yield* Schedule.toStep(retrySchedule("50 millis", "125 millis"))
      for (const base of [50, 100, ...Array.from({ length: 2000 }, () => 125)]) {
        const [output, pause] = yield* Effect.orDie(step(0, undefined))
        assert.isAtLeast(Duration.toMillis(pause), base * 0.8)
        assert.isAtMost(Duration.toMillis(pause), base * 1.2)
        assert.deepStrictEqual(output, pause)
      }
    }))

  it.effect("a loop survives outages and unreadable replies, and fails with a refusal", () =>
    Effect.gen(function*() {
      const patient = yield* Effect.forkChild(persist("Reading", yield* request([outage, unreadable, outage])))
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(yield* Fiber.join(patient), "answer")
      assert.strictEqual(yield* Effect.flip(persist("Reading", yield* request([refusal]))), refusal)
    }))

  it.effect("a loop logs the first of consecutive failures, but not a refusal, which its caller receives", () => {
    const lines: Array<string> = []
    return Effect.gen(function*() {
      yield* Effect.forkChild(persist("Reading", yield* request([outage, unreadable, outage])))
      yield* Effect.forkChild(Effect.exit(persist("Writing", yield* request([refusal]))))
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(lines.map((line) => line.split(":")[0]), ["Reading failed; retrying"])
    }).pipe(Effect.provide(Logger.layer([Logger.make(({ message }) => lines.push(String(message)))])))
  })
})
