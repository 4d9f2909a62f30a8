/** Contract: what a store records about jobs, and which owner may run them. */
import type { FencingToken } from "@effect-simba/core/FencingToken"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Cases } from "./bench.ts"
import { jobsOf, keep, setup as setupOn } from "./jobsBench.ts"

export const scheduling = ({ bench, it }: Cases): void => {
  const setup = setupOn(bench)

  it.effect("B33: a schedule starts at its job's registration or the start of the current period, and stays unchanged", () =>
    Effect.gen(function*() {
      const { read } = yield* setup("jobs known")
      const period = 3_600_000
      const named = [
        { name: "cron", schedule: "cron UTC 0 * * * *", keep },
        { name: "rate", schedule: `every ${period}`, every: period, keep }
      ]
      const { jobs, now } = yield* read(named)
      assert.strictEqual(jobs.get("cron")!.at, now)
      assert.strictEqual(jobs.get("rate")!.at, Math.floor(now / period) * period - 1)
      assert.isUndefined(jobs.get("cron")!.schedule, "only the owner may set schedules")
      const repeated = yield* read(named)
      assert.strictEqual(repeated.jobs.get("cron")!.at, now)
      assert.deepStrictEqual([...(yield* read()).jobs.keys()].sort(), ["cron", "rate"])
    }))

  it.effect("B33: a scheduled time is claimed once, by the owner, when it is due", () =>
    Effect.gen(function*() {
      const { a, b, claim, know, one, record, token } = yield* setup("jobs claimed")
      const begin = yield* know("job")
      yield* one.pass(Duration.millis(50))
      const at = begin + 20
      assert.strictEqual((yield* claim(b, token, "job", "b1", at))._tag, "NotOwner")
      const early = yield* claim(a, token, "job", "a0", begin + 60_000)
      assert.strictEqual(early._tag, "Early")
      assert.strictEqual(early.wait, begin + 60_000 - early.now)
      const claimed = yield* claim(a, token, "job", "a1", at)
      assert.deepStrictEqual([claimed._tag, claimed.attempt], ["Claimed", 1])
      assert.deepStrictEqual((yield* record("job")).run, {
        id: a.id,
        claim: "a1",
        token,
        scheduledAt: at,
        attempt: 1,
        start: claimed.now,
        end: undefined,
        outcome: undefined
      })
      // The caller may repeat a request whose reply was lost. Anyone else is refused
      assert.strictEqual((yield* claim(a, token, "job", "a1", at))._tag, "Claimed")
      assert.strictEqual((yield* claim(a, token, "job", "a2", at))._tag, "Running")
    }))

  it.effect("B33: once a run has ended, neither its scheduled time nor an earlier one can be claimed", () =>
    Effect.gen(function*() {
      const { a, claim, end, know, one, record, token } = yield* setup("jobs ended")
      const begin = yield* know("job")
      yield* one.pass(Duration.millis(50))
      yield* claim(a, token, "job", "a1", begin + 20)
      yield* end("job", "another", "failure")
      assert.isUndefined((yield* record("job")).run!.end)
      const ended = yield* end("job", "a1", "success")
      yield* end("job", "a1", "failure")
      const { run, success } = yield* record("job")
      assert.deepStrictEqual([run!.end, run!.outcome, success], [ended, "success", ended])
      for (const at of [begin + 20, begin + 19, 0]) {
        assert.strictEqual((yield* claim(a, token, "job", `again ${at}`, at, { attempts: 9 }))._tag, "Taken")
      }
      assert.strictEqual((yield* claim(a, token, "job", "a2", begin + 21))._tag, "Claimed")
    }))

  it.effect("B33: an unsuccessful run may be repeated up to the number of attempts, even by the next owner", () =>
    Effect.gen(function*() {
      const { a, b, claim, end, know, one, record, token } = yield* setup("jobs again")
      const at = yield* Effect.map(know("job"), (now) => now + 10)
      yield* one.pass(Duration.millis(50))
      yield* claim(a, token, "job", "a1", at)
      yield* end("job", "a1", "failure")
      assert.strictEqual((yield* claim(a, token, "job", "a2", at, { attempts: 1 }))._tag, "Taken")
      assert.strictEqual((yield* claim(a, token, "job", "a3", at, { attempts: 2 })).attempt, 2)
      // The owner's process dies
      yield* a.release
      const next = yield* b.own
      assert.strictEqual((yield* claim(b, next.token, "job", "b1", at, { attempts: 2 }))._tag, "Taken")
      assert.strictEqual((yield* claim(b, next.token, "job", "b2", at, { attempts: 3 })).attempt, 3)
      // A run that never starts does not use up an attempt
      yield* end("job", "b2", "unstarted")
      assert.strictEqual((yield* record("job")).run!.attempt, 2)
      assert.strictEqual((yield* claim(b, next.token, "job", "b3", at, { attempts: 3 })).attempt, 3)
    }))

  it.effect("B33: a duplicate request for a run that has ended does not start another run", () =>
    Effect.gen(function*() {
      const { a, claim, end, know, one, record, token } = yield* setup("jobs late")
      const at = yield* Effect.map(know("job"), (now) => now + 10)
      yield* one.pass(Duration.millis(50))
      yield* claim(a, token, "job", "a1", at, { attempts: 2 })
      yield* end("job", "a1", "failure")
      assert.strictEqual((yield* claim(a, token, "job", "a1", at, { attempts: 2 }))._tag, "Taken")
      assert.strictEqual((yield* record("job")).run!.outcome, "failure")
      assert.strictEqual((yield* claim(a, token, "job", "a2", at, { attempts: 2 })).attempt, 2)
    }))

  it.effect("B33: an owner whose token is smaller than the last run's is refused", () =>
    Effect.gen(function*() {
      const { a, claim, end, know, one, token } = yield* setup("jobs fenced")
      const at = yield* know("job")
      yield* one.pass(Duration.millis(50))
      yield* claim(a, token, "job", "a1", at + 1)
      yield* end("job", "a1", "success")
      const older = token - 1 as FencingToken
      assert.strictEqual((yield* claim(a, older, "job", "a2", at + 2))._tag, "NotOwner")
      assert.strictEqual((yield* claim(a, token, "job", "a3", at + 2))._tag, "Claimed")
    }))

  it.effect("B33: missed runs are counted with their last cause", () =>
    Effect.gen(function*() {
      const { a, claim, know, one, record, token } = yield* setup("jobs missed")
      const at = yield* know("job")
      yield* one.pass(Duration.millis(50))
      yield* claim(a, token, "job", "a1", at + 1, { mode: "miss", missed: 3, cause: "noLeader" })
      yield* claim(a, token, "job", "a2", at + 2, { missed: 2, cause: "outage" })
      const { cause, missed, run } = yield* record("job")
      assert.deepStrictEqual([cause, missed, run!.scheduledAt], ["outage", 5, at + 2])
      assert.strictEqual((yield* claim(a, token, "job", "a3", at + 1, { mode: "miss" }))._tag, "Running")
    }))

  it.effect("B33: a missed run is counted once, even if the caller did not know that it was counted", () =>
    Effect.gen(function*() {
      const { a, claim, know, one, record, token } = yield* setup("jobs missed once")
      const at = yield* know("job")
      yield* one.pass(Duration.millis(50))
      yield* claim(a, token, "job", "a1", at + 1, { mode: "miss", missed: 1, cause: "outage" })
      for (const mode of ["miss", "run"] as const) {
        const late = yield* claim(a, token, "job", `late ${mode}`, at + 2, { mode, missed: 2, after: at })
        assert.strictEqual(late._tag, "Taken")
      }
      assert.deepInclude(yield* record("job"), { at: at + 1, missed: 1 })
    }))

  it.effect("B33: the minimum time between two runs is measured by the backend's clock", () =>
    Effect.gen(function*() {
      const { a, claim, end, know, one, token } = yield* setup("jobs apart")
      const at = yield* know("job")
      yield* one.pass(Duration.millis(50))
      const { now: start } = yield* claim(a, token, "job", "a1", at + 1)
      yield* end("job", "a1", "success")
      yield* one.pass(Duration.millis(5))
      const soon = yield* claim(a, token, "job", "a2", at + 2, { minInterval: keep })
      assert.strictEqual(soon._tag, "Early")
      assert.strictEqual(soon.wait, start + Duration.toMillis(keep) - soon.now)
      yield* one.pass(Duration.millis(30))
      const minInterval = Duration.millis(10)
      assert.strictEqual((yield* claim(a, token, "job", "a3", at + 2, { minInterval }))._tag, "Claimed")
    }))

  it.effect("B33: a job that no request names during its keep period is forgotten unless it is paused", () =>
    Effect.gen(function*() {
      const { read, one, steer } = yield* setup("jobs forgotten")
      const names = Effect.map(read(), ({ jobs }) => [...jobs.keys()].sort())
      const job = (name: string, millis: number) => ({ name, schedule: "every 1000", keep: Duration.millis(millis) })
      yield* read([job("old", 100), job("paused", 100), job("kept", 1_000_000)])
      yield* steer({ _tag: "Pause", job: "paused" })
      yield* steer({ _tag: "Pause" })
      yield* one.pass(Duration.millis(150))
      assert.deepStrictEqual(yield* names, ["kept", "old", "paused"])
      yield* steer({ _tag: "Resume" })
      assert.deepStrictEqual(yield* names, ["kept", "paused"])
    }))

  it.effect("B33: jobs with arbitrary names are independent of each other and of other mutexes' jobs", () =>
    Effect.gen(function*() {
      const { a, claim, know, one, record, token } = yield* setup("jobs named")
      const names = ["a", "a:b", ":", " ", "{a}", "ünïcödé ✓", "a\nb", "paused", "x".repeat(500)]
      let at = 0
      for (const name of names) at = yield* know(name)
      yield* one.pass(Duration.millis(50))
      for (const name of names) {
        assert.strictEqual((yield* claim(a, token, name, `of ${name}`, at + 1))._tag, "Claimed", name)
        assert.strictEqual((yield* record(name)).run!.claim, `of ${name}`)
      }
      const other = yield* bench("jobs of another")
      assert.strictEqual((yield* jobsOf(other).read()).jobs.size, 0)
      assert.strictEqual((yield* one.store.inspect(one.mutex, 1)).waiting, 0)
    }))
}
