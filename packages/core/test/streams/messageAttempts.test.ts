/** Tests pauses between attempts at a message: whether they count as progress, and a lease loss during one. */
import { SimbaError } from "@effect-simba/core"
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { errorOf, numbered, processing, recorded } from "../support/recordedLease.ts"
import { ScriptedLease } from "../support/scriptedLease.ts"

const options = { backoff: Schedule.spaced("1 minute"), attempts: 3 }

it.effect("after a loss during a pause, the message is not attempted again", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(numbered(1))
    let attempts = 0
    const { fiber } = yield* processing(lease.layer, options, () =>
      Effect.suspend(() => {
        attempts++
        return Effect.fail("busy")
      }))
    yield* TestClock.adjust("10 seconds")
    lease.lose()
    yield* TestClock.adjust("50 seconds")
    assert.instanceOf(errorOf(yield* Fiber.await(fiber)), SimbaError.LeaseLost)
    assert.strictEqual(attempts, 1)
  }))

it.effect("a pause counts as progress only if no handler for the data stream has failed before", () =>
  Effect.gen(function*() {
    for (const failures of [0, 1]) {
      const lease = new ScriptedLease()
      lease.add(numbered(1))
      const { layer } = recorded(lease, () => ({ failures }))
      const { fiber } = yield* processing(layer, options, () => Effect.fail("busy"))
      yield* TestClock.adjust("90 seconds")
      assert.lengthOf(lease.calls.filter((call) => call === "progress"), failures === 0 ? 2 : 0)
      yield* Fiber.interrupt(fiber)
    }
  }))

it.effect("a pause shorter than one millisecond is not skipped", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(numbered(1))
    let attempts = 0
    const { fiber } = yield* processing(
      lease.layer,
      { backoff: Schedule.spaced(Duration.micros(400n)), attempts: 3 },
      () => Effect.suspend(() => Effect.fail(++attempts))
    )
    yield* TestClock.adjust(Duration.micros(300n))
    assert.strictEqual(attempts, 1)
    yield* TestClock.adjust(Duration.micros(100n))
    assert.strictEqual(attempts, 2)
    yield* Fiber.interrupt(fiber)
  }))
