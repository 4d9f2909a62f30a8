/** Runs the workers as fibers of one process, on the in-process store. */
import { Mutex } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { Context, Effect, Fiber, Layer, Queue, type Scope } from "effect"
import type { Event } from "./events.ts"
import { type Fleet, holdBack } from "./fleet.ts"
import * as plan from "./plan.ts"
import { run } from "./worker.ts"

type Store = MutexStore.MutexStore["Service"]

type Command = (...args: ReadonlyArray<unknown>) => Effect.Effect<unknown>

/**
 * The store as one worker sees it. Once the worker is dead, its commands no longer reach the store, and replies no
 * longer reach the worker.
 */
export const mortal = (store: Store, isDead: () => boolean): Store => {
  const whileAlive = (command: Command): Command => (...args) =>
    Effect.suspend(() => isDead() ? Effect.never : command(...args))
  const { acquire, confirm, isReady, release, ...others } = store
  return {
    ...Object.fromEntries(
      Object.entries(others).map(([name, member]) => [
        name,
        typeof member === "function" ? whileAlive(member as unknown as Command) : member
      ])
    ) as unknown as typeof others,
    isReady,
    acquire: (request, done) =>
      isDead() ? () => {} : acquire(request, (exit) => {
        if (!isDead()) done(exit)
      }),
    confirm: (request, done) => {
      if (!isDead()) confirm(request, done)
    },
    release: (request, done) => {
      if (!isDead()) release(request, done)
    }
  }
}

export const make: Effect.Effect<Fleet, never, Scope.Scope> = Effect.gen(function*() {
  const store = Context.get(yield* Layer.build(MutexStore.layerMemory), MutexStore.MutexStore)
  const shared = Layer.succeed(MutexStore.MutexStore, store)
  const observer = Context.get(
    yield* Layer.build(Layer.orDie(Mutex.layer(plan.options).pipe(Layer.provide(shared)))),
    Mutex.Mutex
  )
  const { begin } = yield* Effect.provideService(Effect.orDie(holdBack), Mutex.Mutex, observer)
  const events = yield* Queue.unbounded<Event>()
  const dead = new Set<string>()
  const fibers = new Map<string, Fiber.Fiber<void>>()
  for (const worker of plan.workers) {
    const isDead = () => dead.has(worker)
    const mutexes = Mutex.layer({ ...plan.options, processName: worker }).pipe(
      Layer.provide(Layer.succeed(MutexStore.MutexStore, mortal(store, isDead)))
    )
    const report = (event: Event) => {
      if (!isDead()) Queue.offerUnsafe(events, event)
    }
    fibers.set(worker, yield* Effect.forkScoped(run(worker, mutexes, report)))
  }
  return {
    events,
    begin,
    crash: (worker) =>
      Effect.sync(() => {
        dead.add(worker)
        fibers.get(worker)!.interruptUnsafe()
      }),
    interrupt: (worker) => Fiber.interrupt(fibers.get(worker)!),
    inspect: Effect.orDie(observer.inspect(plan.mutex))
  }
})
