import { SimbaError } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Duration, Effect, Fiber, Logger, Random, Ref, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { isTransient, toFailure } from "../../src/internal/lease/storeFailure.ts"
import { persist, retryPauses, retrySchedule } from "../../src/internal/lease/storeRetries.ts"

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

/** Removes the jitter from pauses. */
const steady = Effect.provideService(Random.Random, { nextDoubleUnsafe: () => 0.5, nextIntUnsafe: () => 0 })

describe("failures of the store", () => {
  it("only an outage is transient", () => {
    assert.deepStrictEqual([outage, refusal, unreadable].map(isTransient), [true, false, false])
  })

  it("a crash is transient because its outcome is unknown, and a store error is passed on unchanged", () => {
    const crash = toFailure("read", Cause.die(new Error("bug")))
    assert.isTrue(isTransient(crash))
    assert.deepInclude(crash, { _tag: "BackendError", operation: "read" })
    for (const error of [outage, refusal, unreadable]) assert.strictEqual(toFailure("read", Cause.fail(error)), error)
  })

  it.effect("pauses start over after a success, or after a failure that took longer than the longest pause", () =>
    Effect.gen(function*() {
      const { failed, succeeded } = retryPauses()
      const pause = (lastedMillis: number) =>
        Effect.gen(function*() {
          const began = yield* Clock.currentTimeMillis
          const fiber = yield* Effect.forkChild(Effect.andThen(failed(lastedMillis), Clock.currentTimeMillis))
          yield* TestClock.adjust("1 minute")
          return (yield* Fiber.join(fiber)) - began
        })
      const pauses = (lasted: ReadonlyArray<number>) => Effect.forEach(lasted, pause)
      const all = [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
      assert.deepStrictEqual(yield* pauses(all.map(() => 10_000)), all)
      succeeded()
      assert.deepStrictEqual(yield* pauses([0, 0, 10_001, 0]), [100, 200, 100, 200])
    }).pipe(steady))

  it.effect("a loop pauses for at most five seconds, unless it has another limit", () =>
    Effect.gen(function*() {
      const attemptsOf = (limit?: Duration.Duration) =>
        Effect.gen(function*() {
          let attempts = 0
          const failing = Effect.suspend(() => {
            attempts++
            return Effect.fail(outage)
          })
          const loop = yield* Effect.forkChild(persist("Reading", failing, limit))
          // 100, 200, 400, 800, 1600 and 3200 milliseconds, then 5000 twice
          yield* TestClock.adjust(6300 + 9999)
          const before = attempts
          yield* TestClock.adjust(1)
          yield* Fiber.interrupt(loop)
          return [before, attempts]
        })
      assert.deepStrictEqual(yield* attemptsOf(), [8, 9])
      assert.deepStrictEqual(yield* attemptsOf(Duration.minutes(1)), [8, 9])
      assert.deepStrictEqual(yield* attemptsOf(Duration.seconds(1)), [19, 19])
    }).pipe(steady))

  it.effect("the retry schedule never ends, and its pauses double up to a maximum and vary by a fifth", () =>
    Effect.gen(function*() {
      const step = yield* Schedule.toStep(retrySchedule("50 millis", "125 millis"))
      for (const base of [50, 100, ...Array.from({ length: 2000 }, () => 125)]) {
        const [output, pause] = yield* Effect.orDie(step(0, undefined))
        assert.isAtLeast(Duration.toMillis(pause), base * 0.8)
        assert.isAtMost(Duration.toMillis(pause), base * 1.2)
        assert.deepStrictEqual(output, pause)
      }
    }))

  it.effect("a loop continues after outages and unreadable replies, but fails when it is refused", () =>
    Effect.gen(function*() {
      const patient = yield* Effect.forkChild(persist("Reading", yield* request([outage, unreadable, outage])))
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(yield* Fiber.join(patient), "answer")
      assert.strictEqual(yield* Effect.flip(persist("Reading", yield* request([refusal]))), refusal)
    }))

  it.effect("a loop logs the first of consecutive failures, but leaves refusals to its caller", () => {
    const lines: Array<string> = []
    return Effect.gen(function*() {
      yield* Effect.forkChild(persist("Reading", yield* request([outage, unreadable, outage])))
      yield* Effect.forkChild(Effect.exit(persist("Writing", yield* request([refusal]))))
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(lines.map((line) => line.split(":")[0]), ["Reading failed; retrying"])
    }).pipe(Effect.provide(Logger.layer([Logger.make(({ message }) => lines.push(String(message)))])))
  })
})
