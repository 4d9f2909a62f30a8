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
import { MemoryMutex } from "./internal/memoryMutex.ts"
import { MutexStore, type WakeUp } from "./MutexStore.ts"
import type { MutexName } from "./Names.ts"

const make = Effect.sync((): MutexStore["Service"] => {
  const mutexes = new Map<MutexName, MemoryMutex>()

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
    release: (request) =>
      withMutex(request.mutex, (mutex) => mutex.release(request.id, Duration.toMillis(request.confirm))),
    owner: (name) => withMutex(name, (mutex) => mutex.ownership()),
    wakeUps: (name, id) =>
      Effect.gen(function*() {
        const queue = yield* Queue.unbounded<WakeUp>()
        yield* Effect.acquireRelease(
          withMutex(name, (mutex) => mutex.listen(id, (wakeUp) => Queue.offerUnsafe(queue, wakeUp))),
          () => withMutex(name, (mutex) => mutex.unlisten(id))
        )
        return { next: Queue.take(queue), bound: undefined }
      })
  }
})

/**
 * Each use of this layer is a world of its own: share one layer among the contenders that must exclude each other.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<MutexStore> = Layer.effect(MutexStore, make)
