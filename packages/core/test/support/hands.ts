/** A store with which the test can forge or lose messages, and make individual mutexes hang. */
import { MutexName } from "@effect-simba/core"
import * as Mutex from "@effect-simba/core/Mutex"
import { acquire, type Change, MutexStore, release, type WakeUp } from "@effect-simba/core/MutexStore"
import { assert } from "@effect/vitest"
import { Context, Duration, Effect, Layer, Logger, Queue } from "effect"
import { Faults } from "./faultyStore.ts"
import * as FaultyStore from "./faultyStore.ts"

/** Runs every fiber that can run, without moving the clock. */
export const settle = Effect.repeat(Effect.yieldNow, { times: 30 })

/** Returns how many requests the store has received whose names start with `name`. */
export const calls = (name: string) =>
  Effect.map(Faults, (faults) => faults.calls.filter((call) => call.startsWith(name)).length)

/** A waiter's channel, controlled by the test. */
interface Line {
  /** While true, the waiter receives only forged messages. */
  muted: boolean
  readonly forge: (wakeUp: WakeUp) => void
}

export class Hands extends Context.Service<Hands, {
  /** The waiters' channels, in the order of their subscriptions. */
  readonly lines: Array<Line>
  readonly announce: (change: Change) => void
  /** Acquires of these mutexes get no reply, and neither do renewal requests that include one of them. */
  readonly stuck: Set<string>
}>()("test/Hands") {}

/** The faulty store, with messages that can be forged or lost, and mutexes that can hang. */
const handsOn = Layer.effectContext(Effect.gen(function*() {
  const store = yield* MutexStore
  const lines: Array<Line> = []
  const changes = yield* Queue.unbounded<Change>()
  const stuck = new Set<string>()
  return Context.make(
    MutexStore,
    MutexStore.of({
      ...store,
      acquire: (request, done) => stuck.has(request.mutex) ? () => {} : store.acquire(request, done),
      guard: (requests, done) =>
        requests.some(({ mutex }) => stuck.has(mutex)) ? () => {} : store.guard(requests, done),
      inbox: (key, onForced) =>
        Effect.map(store.inbox(key, onForced), (inbox) => ({
          ...inbox,
          listen: (mutex, id, listener) => {
            const line: Line = { muted: false, forge: listener }
            lines.push(line)
            return inbox.listen(mutex, id, (wakeUp) => line.muted ? undefined : listener(wakeUp))
          }
        })),
      changes: (mutex) =>
        Effect.map(store.changes(mutex), (real) => ({
          bound: real.bound,
          next: Effect.raceFirst(Queue.take(changes), real.next)
        }))
    })
  ).pipe(
    Context.add(Hands, { lines, stuck, announce: (change) => void Queue.offerUnsafe(changes, change) })
  )
}))

export const HandsLive = Mutex.layer({ processName: "us" }).pipe(
  Layer.provideMerge(handsOn),
  Layer.provideMerge(FaultyStore.layer),
  Layer.provideMerge(Logger.layer([]))
)

/**
 * Takes the mutex "m" from its owner, as another program with access to the store could. Returns the new owner's id.
 */
export const takeFrom = Effect.fnUntraced(function*(victim: MutexName.LeaseId) {
  const store = yield* MutexStore
  const mutex = MutexName.MutexName.make("m")
  const id = "1-aaaaaaaaaaaa:stranger" as MutexName.LeaseId
  const periods = { lease: Duration.minutes(10), confirm: Duration.millis(1500) }
  yield* release(store, { mutex, id: victim, ...periods })
  const result = yield* acquire(store, { mutex, id, mode: "try", ...periods })
  assert.strictEqual(result._tag, "Granted")
  return id
})
