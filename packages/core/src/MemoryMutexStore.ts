/**
 * A mutex store within this process: fair, direct hand-off, leases on the monotonic clock, nothing outside.
 *
 * For applications that run as a single process, and for tests. It excludes nobody in another process.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { MemoryMutex } from "./internal/memoryMutex.ts"
import { type Change, type Forced, MutexStore, type WakeUp } from "./MutexStore.ts"
import { inboxOf, type MutexName } from "./Names.ts"

/** An unbounded queue that a subscription fills from outside until its scope closes. */
const subscription = <A>(
  subscribe: (offer: (value: A) => void) => Effect.Effect<Effect.Effect<void>>
): Effect.Effect<{ readonly next: Effect.Effect<A>; readonly bound: undefined }, never, Scope.Scope> =>
  Effect.gen(function*() {
    const queue = yield* Queue.unbounded<A>()
    const offer = (value: A) => {
      Queue.offerUnsafe(queue, value)
    }
    yield* Effect.asVoid(Effect.acquireRelease(subscribe(offer), (unsubscribe) => unsubscribe))
    return { next: Queue.take(queue), bound: undefined }
  })

const make = Effect.sync((): MutexStore["Service"] => {
  const mutexes = new Map<MutexName, MemoryMutex>()
  const inboxes = new Map<string, (forced: Forced) => void>()

  const withMutex = <A>(name: MutexName, f: (mutex: MemoryMutex) => A): Effect.Effect<A> =>
    Clock.clockWith((clock) =>
      Effect.sync(() => {
        let mutex = mutexes.get(name)
        if (mutex === undefined) mutexes.set(name, mutex = new MemoryMutex())
        mutex.advance(Number(clock.monotonicTimeNanosUnsafe()) / 1e6, clock.currentTimeMillisUnsafe())
        const result = f(mutex)
        if (mutex.isIdle()) mutexes.delete(name)
        return result
      })
    )

  return {
    acquire: (request) => withMutex(request.mutex, (mutex) => mutex.acquire(request)),
    guard: (requests) =>
      Effect.forEach(
        requests,
        (request) => withMutex(request.mutex, (mutex) => mutex.guard(request.id, Duration.toMillis(request.lease)))
      ),
    release: (request) => withMutex(request.mutex, (mutex) => mutex.release(request)),
    owner: (name) => withMutex(name, (mutex) => mutex.ownership()),
    isListening: true,
    wakeUps: (name, id) =>
      subscription<WakeUp>((offer) =>
        Effect.as(
          withMutex(name, (mutex) => mutex.listen(id, offer)),
          withMutex(name, (mutex) => mutex.unlisten(id))
        )
      ),
    changes: (name) =>
      subscription<Change>((offer) =>
        Effect.map(
          withMutex(name, (mutex) => mutex.observe((owner) => offer({ _tag: "Acquired", owner }))),
          (unobserve) => withMutex(name, unobserve)
        )
      ),
    inbox: (key) =>
      subscription<Forced>((offer) =>
        Effect.sync(() => {
          inboxes.set(key, offer)
          return Effect.sync(() => void inboxes.delete(key))
        })
      ),
    inspect: (name, limit) => withMutex(name, (mutex) => mutex.inspect(limit)),
    list: Stream.suspend(() => Stream.fromIterable([...mutexes.keys()])).pipe(
      Stream.filterEffect((name) => withMutex(name, (mutex) => mutex.isWanted()))
    ),
    forceRelease: (name, confirm) =>
      Effect.tap(
        withMutex(name, (mutex) => mutex.force(Duration.toMillis(confirm))),
        (before) =>
          Effect.sync(() => {
            if (before._tag === "Held") inboxes.get(inboxOf(before.owner))?.({ id: before.owner })
          })
      ),
    tick: (request) =>
      withMutex(request.mutex, (mutex) => mutex.tick(request.job, Duration.toMillis(request.every), request.at))
  }
})

/**
 * Each use of this layer is a world of its own: share one layer among the contenders that must exclude each other.
 *
 * **Example** (An application of one process)
 *
 * ```ts
 * import { MemoryMutexStore, Mutex } from "@effect-simba/core"
 * import { Effect, Layer } from "effect"
 *
 * const MutexLive = Mutex.layer().pipe(Layer.provide(MemoryMutexStore.layer))
 *
 * // The second runs when the first is done: they share the layer
 * const work = Effect.log("working").pipe(Mutex.withLock("report"))
 * const program = Effect.all([work, work], { concurrency: 2 }).pipe(Effect.provide(MutexLive))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<MutexStore> = Layer.effect(MutexStore, make)
