/** A job's options, values derived from them, and contradictions between them. */
import { Leadership } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import * as jobSpec from "../../src/internal/leadership/jobSpec.ts"

const minutely = Leadership.every("1 minute")
const cron = Leadership.cron("0 0 * * *")

type Options = Partial<Leadership.Job<unknown, never>>

const make = (options: Options = {}) =>
  jobSpec.make({ name: "job", schedule: minutely, run: Effect.void, ...options } as Leadership.Job)

const refusal = (options: Options) => Effect.map(Effect.flip(make(options)), ({ option }) => option)

describe("a job's options", { tags: ["B33"] }, () => {
  it.effect("have defaults that depend on whether the schedule is a period or a cron expression", () =>
    Effect.gen(function*() {
      const { instants: _, ...usual } = yield* make()
      assert.deepStrictEqual(usual, {
        name: "job",
        onError: "continue",
        misfire: "runOnce",
        catchUp: 60_000,
        minInterval: 0,
        maxRun: undefined,
        attempts: 1
      })
      assert.deepInclude(yield* make({ schedule: cron }), { misfire: "skip", catchUp: 0 })
      assert.deepInclude(yield* make({ schedule: cron, catchUp: 1 }), { misfire: "runOnce", catchUp: 1 })
      assert.deepInclude(yield* make({ schedule: cron, catchUp: "1 hour" }), {
        misfire: "runOnce",
        catchUp: 3_600_000
      })
      assert.deepInclude(yield* make({ misfire: "skip" }), { misfire: "skip", catchUp: 0 })
      assert.deepInclude(yield* make({ misfire: "runAll" }), { misfire: "runAll", catchUp: 60_000 })
      assert.deepInclude(yield* make({ catchUp: 0 }), { misfire: "skip", catchUp: 0 })
      assert.deepInclude(yield* make({ catchUp: 0, misfire: "skip" }), { misfire: "skip", catchUp: 0 })
    }))

  it.effect("are used unchanged if they are set", () =>
    Effect.gen(function*() {
      const passed = { onError: "stepDown", attempts: 3 } as const
      assert.deepInclude(yield* make({ ...passed, minInterval: "2 seconds", maxRun: "1 millis" }), {
        ...passed,
        minInterval: 2000,
        maxRun: 1
      })
    }))

  it.effect("are refused if the option or value does not exist, and the error says what to write instead", () =>
    Effect.gen(function*() {
      const refusals = yield* Effect.forEach(
        [
          { misFire: "runAll" },
          { misfire: "run_all" },
          { onError: "stepdown" },
          { schedule: "* * * * *" },
          { schedule: undefined },
          { run: Promise.resolve() },
          { name: undefined },
          { name: 5 }
        ],
        (options) => Effect.flip(make(options as Options))
      )
      assert.deepStrictEqual(refusals.map(({ option, problem }) => `${option}: ${problem}`), [
        "misFire: it does not exist; a job's options are name, schedule, run, onError, misfire, catchUp, " +
        "attempts, minInterval, maxRun",
        "misfire: \"run_all\" is none of skip, runOnce, runAll",
        "onError: \"stepdown\" is none of continue, stepDown",
        "schedule: \"* * * * *\" is not a schedule: write Leadership.cron(...) or Leadership.every(...)",
        "schedule: undefined is not a schedule: write Leadership.cron(...) or Leadership.every(...)",
        "run: it must be an Effect, or a function that returns one",
        "name: it is not a string",
        "name: it is not a string"
      ])
      const { option, problem } = yield* Effect.flip(jobSpec.make(null as never))
      assert.strictEqual(`${option}: ${problem}`, "options: null is not an object")
    }))

  it.effect("are refused if they are invalid, and the error names them", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* Effect.forEach(
          [
            { name: "" },
            { name: " " },
            { misfire: "skip", catchUp: 1 },
            { misfire: "runOnce", schedule: cron },
            { misfire: "runAll", catchUp: 0 },
            { attempts: 0 },
            { attempts: 1.5 },
            { attempts: NaN },
            { attempts: 2, schedule: cron },
            { attempts: 2, misfire: "skip" },
            { minInterval: -1 },
            { catchUp: -1 },
            { maxRun: 0 }
          ] satisfies ReadonlyArray<Options>,
          refusal
        ),
        [
          ...["name", "name", "catchUp", "misfire", "misfire"],
          ...["attempts", "attempts", "attempts", "attempts", "attempts"],
          ...["minInterval", "catchUp", "maxRun"]
        ]
      )
    }))
})

it.effect("a job is remembered for a month, or for four periods after the last run that it may catch up on, but at most a century", () =>
  Effect.gen(function*() {
    const day = 24 * 60 * 60 * 1000
    const keep = (options: Options) =>
      Effect.map(make(options), (spec) => Duration.toMillis(jobSpec.keepOf(spec, 5)) / day)
    assert.strictEqual(yield* keep({}), 30)
    assert.strictEqual(yield* keep({ catchUp: "29 days" }), 30)
    assert.strictEqual(yield* keep({ catchUp: "40 days" }), 40 + 4 / 24 / 60)
    assert.strictEqual(yield* keep({ schedule: Leadership.every("10 days") }), 50)
    assert.strictEqual(yield* keep({ schedule: Leadership.every("10 days"), misfire: "skip" }), 40)
    assert.strictEqual(yield* keep({ schedule: Leadership.every("9 days"), catchUp: "2 days" }), 38)
    assert.strictEqual(yield* keep({ catchUp: "365000 days" }), 36_500)
  }))
