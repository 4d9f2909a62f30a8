import { Mutex } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import type { Fiber } from "effect"
import { Duration, Effect, Layer, Logger } from "effect"
import * as FaultyStore from "./faultyStore.ts"

/** A mutex on the faulty in-process store. Log lines are dropped. */
export const TestLive = Mutex.layer({ processName: "us" }).pipe(
  Layer.provideMerge(FaultyStore.layer),
  Layer.provideMerge(Logger.layer([]))
)

export const MemoryLive = Mutex.layer().pipe(Layer.provideMerge(MutexStore.layerMemory))

/** Another layer on the same store, with a separate place in the queue. */
export const another = (processName: string) => Layer.build(Layer.fresh(Mutex.layer({ processName })))

export const timeLeft = (lease: { readonly timeLeft: Effect.Effect<Duration.Duration> }) =>
  Effect.map(lease.timeLeft, Duration.toMillis)

export const start = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<Fiber.Fiber<A, E>, never, R> =>
  Effect.forkChild(effect, { startImmediately: true })
