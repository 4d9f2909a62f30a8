// A user's program. It is compiled against the packed packages with strict settings, then run.
import { type Lease, Mutex } from "@effect-simba/core"
import { layer as mutexLayer } from "@effect-simba/core/Mutex"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { RedisMutex } from "@effect-simba/redis"
import { Context, Effect, Layer, Schema } from "effect"

class Counter extends Context.Service<Counter, { readonly next: Effect.Effect<number, CounterBusy> }>()("app/Counter") {
  static readonly layer = Layer.effect(
    Counter,
    Effect.gen(function*() {
      const mutex = yield* Mutex.Mutex
      let value = 0
      return {
        next: Effect.sync(() => ++value).pipe(
          mutex.withLock("counter", { timeout: "1 second" }),
          Effect.catchTag(["AcquireTimeout", "LeaseLost"], (error) => new CounterBusy({ why: error.message })),
          Effect.orDie
        )
      }
    })
  )
}

class CounterBusy extends Schema.TaggedError<CounterBusy>()("CounterBusy", { why: Schema.String }) {}

const token = (lease: Lease.Lease): number => lease.token

const program = Effect.gen(function*() {
  const first = yield* Effect.scoped(Effect.map(Mutex.acquire("m"), token))
  const second = yield* Mutex.withLock("m")((lease) => Effect.succeed(token(lease)))
  const counter = yield* Counter
  const values = yield* Effect.all([counter.next, counter.next], { concurrency: "unbounded" })
  const owner = yield* Mutex.owner("m")
  return second > first && values.join() === "1,2" && owner._tag === "Free"
})

const InProcess = Counter.layer.pipe(
  Layer.provideMerge(mutexLayer({ processName: "consumer" })),
  Layer.provide(MutexStore.layerMemory)
)

const unreachable = Layer.build(RedisMutex.layer({ redis: { url: "redis://127.0.0.1:1" } })).pipe(
  Effect.scoped,
  Effect.match({ onFailure: (error) => error._tag, onSuccess: () => "a connection" })
)

Effect.runPromise(Effect.all([Effect.provide(program, InProcess), unreachable])).then(([works, tag]) => {
  if (!works) throw new Error("the mutex does not work")
  if (tag !== "BackendError") throw new Error(`unexpected ${tag}`)
  console.log("holds")
})
