/** Runs random contention scripts on the production store, and on a broken store whose defect they must reveal. */
import * as MutexStore from "@effect-simba/core/MutexStore"
import { RedisMutex } from "@effect-simba/redis"
import { ContentionScript, FakeNetwork, FakeRedis, TestMutex } from "@effect-simba/testkit"
import { assert, it } from "@effect/vitest"
import { Arbitrary, Effect, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"

const processOf = (name: string) => TestMutex.layerClient(RedisMutex.layerStore, { name })

it.effect.prop(
  "processes on one Redis have one holder at a time, increasing tokens, and first-come-first-served order",
  [ContentionScript.arbitrary({ workers: 4 })],
  ([script]) =>
    Effect.gen(function*() {
      const history = yield* ContentionScript.run(script, { layer: processOf })
      assert.deepStrictEqual(ContentionScript.problems(history), [])
      const server = yield* FakeRedis.FakeRedis
      assert.deepStrictEqual((yield* server.keys).filter(({ key }) => !key.endsWith(":fence")), [])
    }).pipe(Effect.provide(FakeRedis.layer()))
)

it.effect.prop(
  "processes on a slow network that loses replies have one holder at a time and increasing tokens",
  [ContentionScript.arbitrary({ workers: ["a", "b", "c"], mutexes: 1, length: [1, 12] })],
  ([script]) =>
    Effect.gen(function*() {
      for (const name of ["a", "b", "c"]) {
        const link = yield* FakeNetwork.link(name)
        yield* link.set({ requestDelay: [1, 30], replyDelay: [1, 30], loseReply: 0.02 })
      }
      const history = yield* ContentionScript.run(script, { layer: processOf })
      assert.deepStrictEqual(ContentionScript.problems(history, ["neverTwo", "tokensGrow", "everybodyServed"]), [])
    }).pipe(Effect.provide(FakeRedis.layer())),
  { arbitrary: { runs: 50 } }
)

/** A store whose `release` frees the mutex for any caller, so a waiter that times out lets a second holder in. */
const Broken = Layer.effect(
  MutexStore.MutexStore,
  Effect.gen(function*() {
    const store = yield* MutexStore.MutexStore
    const redis = yield* Redis
    const run = Effect.runForkWith(yield* Effect.context<never>())
    return {
      ...store,
      release: (request, done) => {
        const freeing = Effect.ignore(redis.send("DEL", `simba:{${request.mutex}}`))
        run(Effect.andThen(freeing, Effect.sync(() => store.release(request, done))))
      }
    } satisfies MutexStore.MutexStore["Service"]
  })
).pipe(Layer.provide(RedisMutex.layerStore))

it.effect(
  "a store that releases a mutex for non-owners fails, and the failing script shrinks to three steps",
  () =>
    Effect.gen(function*() {
      const neverTwo = (script: ContentionScript.Script) =>
        Effect.map(
          ContentionScript.run(script, { layer: (name) => TestMutex.layerClient(Broken, { name }) }),
          (history) => ContentionScript.problems(history, ["neverTwo"]).length === 0
        ).pipe(Effect.provide(FakeRedis.layer()))
      const result = yield* Arbitrary.checkEffect(ContentionScript.arbitrary(), neverTwo, { seed: "broken" })
      assert.strictEqual(result._tag, "Falsified")
      if (result._tag !== "Falsified") return
      // Worker 3 times out while worker 2 holds the mutex, which frees it. Then the waiting worker 1 acquires the mutex
      // too.
      assert.deepStrictEqual(result.shrunkInput, [
        { at: 0, worker: "worker-2", mutex: "mutex-1", hold: 2000, kind: "acquire" },
        { at: 0, worker: "worker-1", mutex: "mutex-1", hold: 1, kind: "acquire" },
        { at: 0, worker: "worker-3", mutex: "mutex-1", hold: 1, kind: "timeout", patience: 1 }
      ])
    })
)
