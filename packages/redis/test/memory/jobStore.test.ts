/** How the job store decodes a mutex's job hash, and which arguments it passes to the scripts. */
import type { MutexName } from "@effect-simba/core/MutexName"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Redis } from "effect/persistence/Redis"
import * as jobStore from "../../src/internal/mutex/jobStore.ts"

const mutex = "m" as MutexName

/** A store whose scripts return `reply`. `last` returns the keys and arguments of the last call. */
const storeOf = Effect.fnUntraced(function*(reply: unknown) {
  const sent: Array<ReadonlyArray<string>> = []
  const redis = {
    send: (_command: string, ...args: ReadonlyArray<string>) => {
      sent.push(args.slice(2))
      return Effect.succeed(reply)
    },
    eval:
      (script: { readonly params: (...params: Array<unknown>) => ReadonlyArray<string | number> }) =>
      (...params: Array<unknown>) => {
        sent.push(script.params(...params).map(String))
        return Effect.succeed(reply)
      }
  } as unknown as Redis["Service"]
  return { store: jobStore.make(redis), last: () => sent.at(-1) }
})

const poll = (fields: Readonly<Record<string, string>>) =>
  Effect.flatMap(
    storeOf(["1750000000000", Object.entries(fields).flat()]),
    ({ store }) => store.read({ mutex, jobs: [] })
  )

const whole = {
  "at:a:b": "10",
  "schedule:a:b": "rate 5",
  "override:a:b": "rate 6",
  "replaced:a:b": "10 rate 3\n11 rate 4",
  "paused:a:b": "1",
  "wanted:a:b": "12",
  "run:a:b": "1-aaaaaaaaaaaa:p",
  "claim:a:b": "c7",
  "token:a:b": "700",
  "scheduled:a:b": "9",
  "attempt:a:b": "3",
  "start:a:b": "13",
  "end:a:b": "14",
  "outcome:a:b": "failure",
  "success:a:b": "8",
  "missed:a:b": "2",
  "cause:a:b": "outage"
}

describe("the job store", () => {
  it.effect("decodes all fields of a job even if the job's name contains colons", () =>
    Effect.gen(function*() {
      const { jobs, ...rest } = yield* poll({ ...whole, paused: "1", leaving: "2-bbbbbbbbbbbb:q" })
      assert.deepStrictEqual(rest, {
        now: 1_750_000_000_000,
        isPaused: true,
        leaving: "2-bbbbbbbbbbbb:q",
        malformed: new Map()
      })
      assert.deepStrictEqual([...jobs], [["a:b", {
        at: 10,
        schedule: "rate 5",
        override: "rate 6",
        former: [{ schedule: "rate 3", until: 10 }, { schedule: "rate 4", until: 11 }],
        isPaused: true,
        wanted: 12,
        run: {
          id: "1-aaaaaaaaaaaa:p",
          claim: "c7",
          token: 700,
          scheduledAt: 9,
          attempt: 3,
          start: 13,
          end: 14,
          outcome: "failure"
        },
        success: 8,
        missed: 2,
        cause: "outage"
      }]])
    }))

  it.effect("returns a record for each registered job, with a run only if all required fields exist", () =>
    Effect.gen(function*() {
      const { isPaused, jobs, leaving } = yield* poll({ "at:a": "10" })
      assert.deepStrictEqual([isPaused, leaving], [false, undefined])
      const record = jobs.get("a")!
      assert.deepInclude(record, { at: 10, isPaused: false, run: undefined, missed: 0, cause: undefined })
      const run = { "at:a": "10", "start:a": "1", "token:a": "2", "scheduled:a": "3" }
      const first = (yield* poll(run)).jobs.get("a")!.run
      assert.deepInclude(first, { id: "", claim: "", start: 1, token: 2, scheduledAt: 3, attempt: 1 })
      for (const field of ["start:a", "token:a", "scheduled:a"]) {
        const { [field as keyof typeof run]: _, ...others } = run
        assert.isUndefined((yield* poll(others)).jobs.get("a")!.run, field)
      }
    }))

  it.effect("reads the other jobs if some cannot be decoded, and reports why each of those failed", () =>
    Effect.gen(function*() {
      const { jobs, malformed } = yield* poll({
        ...whole,
        ...{ "at:c": "soon", "until:d": "x", "at:d": "1", "at:e": "2", "at:f": "3", "replaced:f": "every 5" }
      })
      assert.deepStrictEqual([...jobs.keys()], ["a:b", "e"])
      assert.deepStrictEqual([...malformed.keys()], ["c", "d", "f"])
      const error = malformed.get("c")!
      assert.strictEqual(error._tag, "ProtocolError")
      assert.include(error.message, "the job \"c\"")
      assert.include(error.message, "soon")
    }))

  it.effect("ignores fields that only other versions know", () =>
    Effect.gen(function*() {
      const { jobs, malformed } = yield* poll({ "at:a": "2", "former:a": "every 5", "changed:a": "1" })
      assert.deepStrictEqual([jobs.get("a")!.former, malformed], [[], new Map()])
    }))

  it.effect("passes the owner and the jobs to a read, with periods only for rates", () =>
    Effect.gen(function*() {
      const { last, store } = yield* storeOf(["1", []])
      const job = { name: "a", schedule: "0 * * * *", keep: "1 second" as never }
      yield* store.read({ mutex, jobs: [] })
      assert.deepStrictEqual(last(), ["simba:{m}", "simba:{m}:jobs", ""])
      const every = { ...job, name: "b", every: 5000 }
      yield* store.read({ mutex, id: "1-aaaaaaaaaaaa:p" as never, jobs: [job, every] })
      assert.deepStrictEqual(last(), [
        ...["simba:{m}", "simba:{m}:jobs", "1-aaaaaaaaaaaa:p"],
        ...["a", "0 * * * *", "", "1000"],
        ...["b", "0 * * * *", "5000", "1000"]
      ])
    }))

  it.effect("passes an operator's request for one job or all jobs, with a schedule only to reschedule", () =>
    Effect.gen(function*() {
      const { last, store } = yield* storeOf("1")
      const order = (order: Parameters<typeof store.steer>[1]) =>
        Effect.map(store.steer(mutex, order), () => last()!.slice(2))
      assert.deepStrictEqual(yield* order({ _tag: "Run", job: "a" }), ["Run", "a", ""])
      assert.deepStrictEqual(yield* order({ _tag: "Pause", job: "a" }), ["Pause", "a", ""])
      assert.deepStrictEqual(yield* order({ _tag: "Resume" }), ["Resume", "", ""])
      assert.deepStrictEqual(yield* order({ _tag: "StepDown" }), ["StepDown", "", ""])
      const reschedule = { _tag: "Reschedule", job: "a" } as const
      assert.deepStrictEqual(yield* order({ ...reschedule, schedule: "rate 5" }), ["Reschedule", "a", "rate 5"])
      assert.deepStrictEqual(yield* order({ ...reschedule, schedule: undefined }), ["Reschedule", "a", ""])
      // An untyped program may pass additional fields
      assert.deepStrictEqual(yield* order({ _tag: "Run", job: "a", schedule: "rate 5" } as never), ["Run", "a", ""])
    }))
})
