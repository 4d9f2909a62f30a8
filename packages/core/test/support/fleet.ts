/** Several nodes with separate wall clocks on one in-process backend. The backend uses the test's clock. */
import { Mutex } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { Clock, Context, Effect, Exit, type Fiber, Layer, Logger, Scope } from "effect"
import * as FaultyStore from "./faultyStore.ts"
import { acquiring, guarding } from "./requests.ts"

type Store = MutexStore.MutexStore["Service"]

const wrap = (
  store: Store,
  run: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>,
  through: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
): Store => ({
  ...store,
  acquire: acquiring((request) => through(MutexStore.acquire(store, request)), run),
  guard: guarding((requests) => through(MutexStore.guard(store, requests)), run),
  release: (request, done) => void run(through(Effect.sync(() => store.release(request, done)))),
  owner: (mutex) => through(store.owner(mutex)),
  inspect: (mutex, limit) => through(store.inspect(mutex, limit)),
  forceRelease: (mutex, confirm) => through(store.forceRelease(mutex, confirm)),
  jobs: {
    read: (request) => through(store.jobs.read(request)),
    claim: (request) => through(store.jobs.claim(request)),
    end: (request) => through(store.jobs.end(request)),
    steer: (mutex, order) => through(store.jobs.steer(mutex, order))
  }
})

export const make = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const scope = yield* Effect.scope
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const context = yield* Layer.buildWithScope(FaultyStore.layer, scope)
  const store = Context.get(context, MutexStore.MutexStore)

  /** `ahead`: how many milliseconds the node's wall clock is ahead of the backend's. */
  const node = Effect.fnUntraced(
    function*(
      name: string,
      options: { readonly ahead?: number | (() => number); readonly logger?: Logger.Logger<unknown, void> } = {}
    ) {
      const ahead = typeof options.ahead === "function" ? options.ahead : () => (options.ahead ?? 0) as number
      const own: Clock.Clock = {
        ...clock,
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + ahead(),
        currentTimeMillis: Effect.sync(() => clock.currentTimeMillisUnsafe() + ahead()),
        monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
        sleep: (duration) => clock.sleep(duration)
      }
      const nodeScope = yield* Scope.fork(scope)
      let dead = false
      const reachable = wrap(store, run, (effect) => Effect.suspend(() => dead ? Effect.never : effect))
      const live = Mutex.layer({ processName: name }).pipe(
        Layer.provide(Layer.succeed(MutexStore.MutexStore, reachable)),
        Layer.provideMerge(Logger.layer(options.logger === undefined ? [] : [options.logger]))
      )
      const services = yield* Layer.buildWithScope(live, nodeScope).pipe(Effect.provideService(Clock.Clock, own))
      const here = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
        effect.pipe(
          Effect.provideContext(Context.add(services, Scope.Scope, nodeScope)),
          Effect.provideService(Clock.Clock, own)
        ) as Effect.Effect<A, E, Exclude<R, Mutex.Mutex | Scope.Scope>>
      return {
        name,
        /** Runs an effect in the node's context and scope. */
        here,
        start: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
          here(Effect.forkIn(effect, nodeScope, { startImmediately: true })),
        close: Scope.close(nodeScope, Exit.void),
        /** Kills the node: its requests no longer reach the backend, and all its work ends. */
        kill: Effect.suspend(() => {
          dead = true
          return Effect.asVoid(Effect.forkIn(Scope.close(nodeScope, Exit.void), scope))
        })
      }
    }
  )
  return { node, faults: Context.get(context, FaultyStore.Faults), store: context }
})

export type Fleet = Effect.Success<typeof make>

export type Node = Effect.Success<ReturnType<Fleet["node"]>>
