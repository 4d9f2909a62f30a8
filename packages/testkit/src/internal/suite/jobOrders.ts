/** Contract: what an operator's requests do to jobs. */
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Cases } from "./bench.ts"
import { keep, setup as setupOn } from "./jobsBench.ts"

export const operating = ({ bench, it }: Cases): void => {
  const setup = setupOn(bench)

  it.effect("B33: a paused job runs only on request, and never catches up on scheduled times missed while paused", () =>
    Effect.gen(function*() {
      for (const job of ["job", undefined]) {
        const { a, claim, end, know, one, record, steer, token } = yield* setup("jobs paused")
        assert.isFalse(yield* steer({ _tag: "Pause", job: "unknown" }))
        const at = yield* know("job")
        assert.isTrue(yield* steer({ _tag: "Pause", job }))
        yield* one.pass(Duration.millis(50))
        assert.strictEqual((yield* claim(a, token, "job", "a1", at + 1))._tag, "Paused")
        yield* steer({ _tag: "Run", job: "job" })
        const { wanted } = yield* record("job")
        assert.strictEqual((yield* claim(a, token, "job", "a2", wanted!, { mode: "manual" }))._tag, "Claimed")
        yield* end("job", "a2", "success")
        assert.isTrue(yield* steer({ _tag: "Resume", job }))
        assert.strictEqual((yield* claim(a, token, "job", "a3", at + 1))._tag, "Taken")
        const { at: decided, isPaused } = yield* record("job")
        assert.isFalse(isPaused)
        yield* one.pass(Duration.millis(50))
        assert.strictEqual((yield* claim(a, token, "job", "a4", decided + 1))._tag, "Claimed")
      }
    }))

  it.effect("B33: resuming all jobs leaves individually paused and active jobs unchanged", () =>
    Effect.gen(function*() {
      const { know, one, read, record, steer } = yield* setup("jobs paused twice")
      const at = yield* know("job")
      yield* know("other")
      yield* one.pass(Duration.millis(50))
      assert.isFalse(yield* steer({ _tag: "Pause", job: "" }), "no such job")
      assert.isTrue(yield* steer({ _tag: "Resume", job: "job" }))
      assert.isTrue(yield* steer({ _tag: "Resume", job: undefined }))
      assert.strictEqual((yield* record("job")).at, at, "the job may still catch up on missed runs")
      yield* steer({ _tag: "Pause", job: "job" })
      yield* steer({ _tag: "Pause", job: undefined })
      yield* steer({ _tag: "Resume", job: undefined })
      assert.isFalse((yield* read()).isPaused)
      assert.deepStrictEqual([(yield* record("job")).isPaused, (yield* record("other")).isPaused], [true, false])
      yield* steer({ _tag: "Pause", job: undefined })
      yield* steer({ _tag: "Resume", job: "job" })
      assert.isTrue((yield* read()).isPaused)
      assert.isFalse((yield* record("job")).isPaused)
    }))

  it.effect("B33: a requested run stays requested until it starts, starts once, and does not use up a scheduled time", () =>
    Effect.gen(function*() {
      const { a, claim, end, know, one, record, steer, token } = yield* setup("jobs manual")
      yield* know("job")
      assert.isFalse(yield* steer({ _tag: "Run", job: "unknown" }))
      assert.isTrue(yield* steer({ _tag: "Run", job: "job" }))
      const { wanted } = yield* record("job")
      const mode = "manual" as const
      yield* one.pass(Duration.millis(50))
      // The leader has not read the request yet
      assert.strictEqual((yield* claim(a, token, "job", "m0", wanted! + 10, { mode: "miss" }))._tag, "Claimed")
      assert.strictEqual((yield* claim(a, token, "job", "a0", wanted!, { mode }))._tag, "Claimed")
      yield* end("job", "a0", "unstarted")
      assert.strictEqual((yield* claim(a, token, "job", "a1", wanted! - 1, { mode }))._tag, "Taken")
      // The minimum interval, here an hour, applies only to runs that started
      assert.strictEqual((yield* claim(a, token, "job", "a1", wanted!, { mode, minInterval: keep }))._tag, "Claimed")
      assert.strictEqual((yield* claim(a, token, "job", "a1", wanted!, { mode }))._tag, "Claimed", "asked again")
      yield* end("job", "a1", "success")
      assert.strictEqual((yield* claim(a, token, "job", "a2", wanted!, { mode }))._tag, "Taken")
      assert.strictEqual((yield* record("job")).at, wanted! + 10)
      assert.strictEqual((yield* claim(a, token, "job", "a3", wanted! + 11))._tag, "Claimed")
    }))

  it.effect("B33: a schedule change records the old schedule and its end, and drops settled schedules", () =>
    Effect.gen(function*() {
      const { a, claim, read, one, record, steer, token } = yield* setup("jobs changed")
      const named = (schedule: string) => [{ name: "job", schedule, keep }]
      const former = Effect.map(record("job"), ({ former }) => former.map(({ schedule }) => schedule))
      yield* read(named("every 1000"), a.id)
      assert.deepStrictEqual((yield* record("job")).former, [])
      yield* one.pass(Duration.millis(10))
      const { now } = yield* read(named("every 2000"), a.id)
      assert.deepStrictEqual((yield* record("job")).former, [{ schedule: "every 1000", until: now }])
      yield* steer({ _tag: "Reschedule", job: "job", schedule: "every 3000" })
      assert.deepStrictEqual(yield* former, ["every 1000", "every 2000"])
      // An operator's schedule survives a new version of the code
      yield* read(named("every 4000"), a.id)
      assert.deepInclude(yield* record("job"), { schedule: "every 4000", override: "every 3000" })
      assert.deepStrictEqual(yield* former, ["every 1000", "every 2000"])
      yield* one.pass(Duration.millis(10))
      const { now: later } = yield* read()
      const changed = (yield* record("job")).former.at(-1)!.until
      assert.strictEqual((yield* claim(a, token, "job", "a0", later, { changed: now - 1 }))._tag, "Taken", "outdated")
      assert.strictEqual((yield* claim(a, token, "job", "a1", later, { mode: "miss", changed }))._tag, "Claimed")
      yield* one.pass(Duration.millis(10))
      yield* steer({ _tag: "Reschedule", job: "job", schedule: undefined })
      assert.deepStrictEqual([(yield* record("job")).override, ...yield* former], [undefined, "every 3000"])
      // The number of old schedules is limited. At the limit, the last one applies until the next change
      for (let i = 1; i <= 10; i++) yield* steer({ _tag: "Reschedule", job: "job", schedule: `every ${i}` })
      assert.deepStrictEqual(yield* former, [
        "every 3000",
        "every 4000",
        ...[1, 2, 3, 4, 5, 9].map((i) => `every ${i}`)
      ])
    }))

  it.effect("B33: a request to step down names the current leader, if any", () =>
    Effect.gen(function*() {
      const { a, know, read, steer } = yield* setup("jobs step down")
      assert.isFalse(yield* steer({ _tag: "StepDown" }), "no jobs")
      yield* know("job")
      assert.isTrue(yield* steer({ _tag: "StepDown" }))
      assert.strictEqual((yield* read()).leaving, a.id)
      yield* a.release
      assert.isFalse(yield* steer({ _tag: "StepDown" }))
    }))
}
