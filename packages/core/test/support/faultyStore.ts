/** An in-process store with operations that a test can make fail, hang or reply late. */
import type { ClaimResult } from "@effect-simba/core/JobStore"
import * as MutexStore from "@effect-simba/core/MutexStore"
import * as SimbaError from "@effect-simba/core/SimbaError"
import { Clock, Context, type Duration, Effect, Layer } from "effect"
import { acquiring, guarding } from "./requests.ts"

export interface Switches {
  /**
   * `fail`: the operation fails and has no effect. `hang`: it has no effect and never returns. `late`: it is executed
   * at once and returns late. `lost`: it is executed, but fails. `undone`: it succeeds without an effect, as if a
   * failover had lost the effect.
   */
  acquire: "work" | "fail" | "hang" | "lost" | { readonly late: Duration.Input }
  guard: "work" | "fail" | "hang" | { readonly late: Duration.Input }
  release: "work" | "fail" | "hang" | { readonly late: Duration.Input }
  /** How many of the next acquire requests are refused permanently. Later ones follow `acquire`. */
  refusals: number
  inspect: "work" | "fail" | "hang"
  owner: "work" | "fail" | "hang"
  jobs: Switches["acquire"]
  /** Modes of individual job operations, which take precedence over `jobs`. */
  readonly jobOperations: {
    read?: Switches["acquire"]
    claim?: Switches["acquire"] | { readonly reply: (now: number) => ClaimResult }
    end?: Switches["acquire"] | "undone"
  }
  /** All job operations, with their times in milliseconds. */
  readonly jobCalls: Array<readonly ["read" | "claim" | "end", number]>
  readonly calls: Array<string>
}

export class Faults extends Context.Service<Faults, Switches>()("test/Faults") {}

export const outage = new SimbaError.BackendError({ operation: "test", isRetryable: true, cause: new Error("outage") })

export const refusal = new SimbaError.BackendError({
  operation: "test",
  isRetryable: false,
  cause: new Error("refused permanently")
})

const through = <A, E, R>(
  mode: Switches["acquire"],
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SimbaError.BackendError, R> =>
  mode === "work"
    ? effect
    : mode === "fail"
    ? Effect.fail(outage)
    : mode === "hang"
    ? Effect.never
    : mode === "lost"
    ? Effect.andThen(effect, Effect.fail(outage))
    : Effect.tap(effect, () => Effect.sleep(mode.late))

export const layer: Layer.Layer<MutexStore.MutexStore | Faults> = Layer.effectContext(Effect.gen(function*() {
  const store = yield* MutexStore.MutexStore
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const faults: Switches = {
    acquire: "work",
    guard: "work",
    release: "work",
    refusals: 0,
    inspect: "work",
    owner: "work",
    jobs: "work",
    jobOperations: {},
    jobCalls: [],
    calls: []
  }
  const clock = yield* Clock.Clock
  const throughJobs = <A, E>(operation: "read" | "claim" | "end", effect: Effect.Effect<A, E>) =>
    Effect.suspend(() => {
      const now = clock.currentTimeMillisUnsafe()
      faults.jobCalls.push([operation, now])
      const mode = faults.jobOperations[operation] ?? faults.jobs
      if (typeof mode === "object" && "reply" in mode) return Effect.succeed(mode.reply(now) as A)
      return through(mode === "undone" ? "work" : mode, effect)
    })
  const faulty = MutexStore.MutexStore.of({
    ...store,
    acquire: acquiring((request) => {
      faults.calls.push(`acquire ${request.mode}`)
      if (faults.refusals > 0) {
        faults.refusals--
        return Effect.fail(refusal)
      }
      return through(faults.acquire, MutexStore.acquire(store, request))
    }, run),
    guard: guarding((requests) => {
      faults.calls.push(`guard ${requests.length}`)
      return through(faults.guard, MutexStore.guard(store, requests))
    }, run),
    release: (request, done) => {
      faults.calls.push("release")
      run(through(faults.release, MutexStore.release(store, request))).addObserver(done)
    },
    isReady: () => false,
    owner: (mutex) => Effect.suspend(() => through(faults.owner, store.owner(mutex))),
    inspect: (mutex, limit) => Effect.suspend(() => through(faults.inspect, store.inspect(mutex, limit))),
    jobs: {
      read: (request) => throughJobs("read", store.jobs.read(request)),
      claim: (request) => throughJobs("claim", store.jobs.claim(request)),
      end: (request) =>
        throughJobs(
          "end",
          Effect.suspend(() => faults.jobOperations.end === "undone" ? Effect.succeed(0) : store.jobs.end(request))
        ),
      steer: (mutex, order) => store.jobs.steer(mutex, order)
    },
    inbox: (key, onForced) =>
      Effect.map(store.inbox(key, onForced), (inbox) => ({
        ...inbox,
        listen: (mutex, id, listener) => {
          faults.calls.push("listen")
          return inbox.listen(mutex, id, listener)
        }
      }))
  })
  return Context.make(MutexStore.MutexStore, faulty).pipe(Context.add(Faults, faults))
})).pipe(Layer.provide(MutexStore.layerMemory))

/** An in-process store that never reports owners. It publishes no changes, and inspections get no reply. */
export const silentStore: Layer.Layer<MutexStore.MutexStore> = Layer.effect(
  MutexStore.MutexStore,
  Effect.map(MutexStore.MutexStore, (store) => ({
    ...store,
    changes: () => Effect.succeed({ next: Effect.never, bound: undefined }),
    inspect: () => Effect.never
  }))
).pipe(Layer.provide(MutexStore.layerMemory))
