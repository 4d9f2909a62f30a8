import { Mutex, SimbaError } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { ContentionScript } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Duration, Effect, Exit, Layer } from "effect"

type Holding = ContentionScript.History["holdings"][number]

const holds = (
  rule: NonNullable<Parameters<typeof ContentionScript.problems>[1]>[number],
  history: ContentionScript.History
) => ContentionScript.problems(history, [rule]).length === 0

const step = (at: number, worker: string, hold: number): ContentionScript.Script[number] => ({
  ...{ at, worker, mutex: "m", hold },
  kind: "acquire"
})

const holding = (
  worker: string,
  token: number,
  [asked, from, to]: readonly [number, number, number],
  order: readonly [number, number]
): Holding => ({
  ...{ step: step(asked, worker, to - from), worker, mutex: "m", token, asked, from, to, order },
  lost: false
})

const historyOf = (...holdings: ReadonlyArray<Holding>): ContentionScript.History => ({
  holdings,
  refused: [],
  abandoned: [],
  failed: [],
  unserved: []
})

describe("ContentionScript.arbitrary", () => {
  it.effect.prop(
    "generates scripts within the given options",
    [ContentionScript.arbitrary({
      workers: ["a", "b"],
      mutexes: 1,
      length: [2, 5],
      within: "1 second",
      hold: ["5 millis", "10 millis"],
      patience: [1, 2],
      kinds: ["timeout", "acquireIfAvailable"]
    })],
    ([script]) =>
      Effect.sync(() => {
        assert.isTrue(script.length >= 2 && script.length <= 5)
        script.forEach((step, index) => {
          assert.isTrue(step.at >= (script[index - 1]?.at ?? 0) && step.at <= 1000)
          assert.include(["a", "b"], step.worker)
          assert.strictEqual(step.mutex, "mutex-1")
          assert.isTrue(step.hold >= 5 && step.hold <= 10)
          assert.include(["timeout", "acquireIfAvailable"], step.kind)
          if (step.kind === "timeout") assert.include([1, 2], step.patience)
        })
      })
  )

  it.effect("generates scripts with all kinds of steps, all workers and all mutexes", () =>
    Effect.gen(function*() {
      const steps = (yield* Arbitrary.sampleEffect(ContentionScript.arbitrary(), { count: 30, seed: 1 })).flat()
      const drawn = (field: "kind" | "worker" | "mutex") => new Set(steps.map((step) => step[field])).size
      assert.deepStrictEqual([drawn("kind"), drawn("worker"), drawn("mutex")], [4, 3, 2])
      assert.isAbove(Math.max(...steps.map(({ at }) => at)), 8000)
    }))

  it.effect("generates long scripts even at the start of a check, when other arbitraries generate small values", () =>
    Effect.gen(function*() {
      const scripts = yield* Arbitrary.sampleEffect(ContentionScript.arbitrary(), { count: 200, size: 0, seed: 1 })
      const lengths = scripts.map((script) => script.length)
      assert.strictEqual(new Set(lengths).size, 20)
    }))
})

describe("ContentionScript.run", () => {
  it.effect.prop(
    "passes all checks with one Mutex for all workers",
    [ContentionScript.arbitrary()],
    ([script]) =>
      Effect.gen(function*() {
        const history = yield* ContentionScript.run(script, { layer: Mutex.layerMemory() })
        assert.deepStrictEqual(ContentionScript.problems(history), [])
        assert.strictEqual(history.holdings.length + history.refused.length + history.abandoned.length, script.length)
      })
  )

  it.effect.prop(
    "passes all checks with one Mutex per worker on a shared store",
    [ContentionScript.arbitrary({ workers: 5, mutexes: 1, within: "3 seconds" })],
    ([script]) =>
      Effect.gen(function*() {
        const history = yield* ContentionScript.run(script, {
          layer: (worker) => Mutex.layer({ processName: worker })
        })
        assert.deepStrictEqual(ContentionScript.problems(history), [])
      }).pipe(Effect.provide(MutexStore.layerMemory))
  )

  it.effect("reports who held which mutex when, and who was refused, gave up or was never served", () =>
    Effect.gen(function*() {
      const script: ContentionScript.Script = [
        step(0, "a", 1000),
        { at: 100, worker: "b", mutex: "m", hold: 500, kind: "acquireIfAvailable" },
        { at: 200, worker: "b", mutex: "m", hold: 500, kind: "timeout", patience: 300 },
        { at: 300, worker: "c", mutex: "m", hold: 500, kind: "interrupt", patience: 300 },
        { at: 400, worker: "b", mutex: "m", hold: 500, kind: "interrupt", patience: 700 },
        step(500, "c", 250),
        step(500, "d", 5)
      ]
      const { abandoned, holdings, refused, unserved } = yield* ContentionScript.run(script, {
        layer: Mutex.layerMemory()
      })
      assert.deepStrictEqual(
        holdings.map(({ asked, from, to, worker }) => [worker, asked, from, to]),
        [["a", 0, 0, 1000], ["b", 400, 1000, 1100], ["c", 500, 1100, 1350], ["d", 500, 1350, 1355]]
      )
      assert.deepStrictEqual([refused, abandoned, unserved], [[script[1]!], [script[2]!, script[3]!], []])
    }))

  it.effect("if a holder never releases, the others are never served", () =>
    Effect.gen(function*() {
      const script = [step(10, "a", 50), step(20, "b", 50)]
      const history = yield* Effect.scoped(Effect.gen(function*() {
        yield* Mutex.acquire("m")
        return yield* ContentionScript.run(script, { layer: (worker) => Mutex.layer({ processName: worker }) })
      })).pipe(Effect.provide(Mutex.layer()))
      assert.deepStrictEqual(history.unserved, script)
      assert.isFalse(holds("everybodyServed", history))
      assert.deepStrictEqual(ContentionScript.problems(history), [
        "m: a is never served",
        "m: b is never served"
      ])
    }).pipe(Effect.provide(MutexStore.layerMemory)))
})

it.effect("the history includes failures", () =>
  Effect.gen(function*() {
    const down = Layer.effect(
      MutexStore.MutexStore,
      Effect.map(MutexStore.MutexStore, (store) => ({
        ...store,
        acquire: (_request, done) => {
          done(Exit.fail(new SimbaError.BackendError({ operation: "acquire", isRetryable: false, cause: "down" })))
          return () => {}
        }
      }))
    ).pipe(Layer.provide(MutexStore.layerMemory))
    const history = yield* ContentionScript.run([step(0, "a", 1)], { layer: Mutex.layer().pipe(Layer.provide(down)) })
    assert.deepStrictEqual(history.failed.map(({ error }) => error._tag), ["BackendError"])
    assert.deepStrictEqual([history.holdings, history.abandoned, history.unserved], [[], [], []])
    assert.match(ContentionScript.problems(history).join(), /^m: a failed: Acquiring the mutex failed: down/)
  }))

describe("ContentionScript.problems", () => {
  const first = holding("a", 1, [0, 0, 10], [0, 1])

  it("reports nothing if one holder follows another in the same millisecond", () => {
    assert.deepStrictEqual(
      ContentionScript.problems(historyOf(first, holding("b", 2, [5, 10, 20], [2, 3]))),
      []
    )
  })

  it("neverTwo finds a mutex with two owners", () => {
    const history = historyOf({ ...first, order: [0, 2] }, holding("b", 2, [5, 10, 20], [1, 3]))
    assert.isFalse(holds("neverTwo", history))
    assert.deepStrictEqual(ContentionScript.problems(history), [
      "m: b (10 to 20 ms, token 2) holds it together with a (0 to 10 ms, token 1)"
    ])
    assert.isTrue(holds("neverTwo", historyOf(first, { ...history.holdings[1]!, mutex: "other" })))
  })

  it("tokensGrow finds a token that does not grow", () => {
    assert.isFalse(holds("tokensGrow", historyOf(first, holding("b", 1, [5, 10, 20], [2, 3]))))
  })

  it("inOrder finds an attempt that overtakes an earlier one", () => {
    const late = holding("b", 2, [5, 10, 20], [2, 3])
    assert.isFalse(holds("inOrder", historyOf(first, late, holding("c", 3, [4, 20, 30], [4, 5]))))
    assert.isTrue(holds("inOrder", historyOf(first, late, holding("c", 3, [5, 20, 30], [4, 5]))))
  })

  it("inOrder allows a turn to continue ahead of another process's waiter, but only in the order of arrival", () => {
    const waiter = holding("b", 300, [1, 30, 40], [6, 7])
    const turn = [holding("a", 200, [0, 0, 10], [0, 1]), holding("a", 201, [6, 10, 20], [2, 3])]
    assert.isTrue(holds("inOrder", historyOf(...turn, holding("a", 202, [7, 20, 30], [4, 5]), waiter)))
    assert.isFalse(holds("inOrder", historyOf(...turn, holding("a", 202, [5, 20, 30], [4, 5]), waiter)))
    assert.isFalse(holds("inOrder", historyOf(turn[0]!, holding("a", 300, [6, 10, 20], [2, 3]), waiter)))
  })
})

it.effect("a counterexample is shrunk to a short script", () =>
  Effect.gen(function*() {
    const result = yield* Arbitrary.checkEffect(
      ContentionScript.arbitrary(),
      (script) =>
        Effect.map(
          ContentionScript.run(script, { layer: Mutex.layerMemory() }),
          (history) => history.holdings.every(({ asked, from }) => from - asked < Duration.toMillis("1 second"))
        ),
      { seed: 3 }
    )
    assert.strictEqual(result._tag, "Falsified")
    if (result._tag === "Falsified") assert.isAtMost(result.shrunkInput.length, 3)
  }))
