/** Named waiters in one layer that record when they are served. */
import { Mutex } from "@effect-simba/core"
import { assert } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { start, timeLeft } from "./setup.ts"

/** Runs every fiber that can run, without moving the clock. */
export const settle = Effect.repeat(TestClock.adjust(0), { times: 3 })

export const queue = Effect.map(Effect.flatMap(Mutex.Mutex, (mutex) => mutex.inspect("m")), ({ waiting }) => waiting)

export const ownerId = Effect.map(Mutex.owner("m"), (owner) => owner._tag === "Held" ? owner.owner : undefined)

/** Acquires the mutex and holds it until the test runs `letGo`. */
export const hold = Effect.fnUntraced(function*(options?: Mutex.AcquireOptions) {
  const scope = yield* Scope.make()
  const fiber = yield* start(Scope.provide(Mutex.acquire("m", options), scope))
  return { fiber, lease: Fiber.join(fiber), letGo: Scope.close(scope, Exit.void) }
})

/**
 * Creates waiters that hold the mutex until the test runs `letGo` with their names. Records the order of their grants.
 */
export const makeLine = (options?: Mutex.AcquireOptions) => {
  const served: Array<string> = []
  const tokens: Array<number> = []
  const ids: Array<string> = []
  const left: Array<number> = []
  const failed: Array<readonly [string, string]> = []
  const gates = new Map<string, Deferred.Deferred<void>>()
  const wait = (name: string, own?: Mutex.AcquireOptions) =>
    Effect.suspend(() => {
      const gate = Deferred.makeUnsafe<void>()
      gates.set(name, gate)
      return start(
        Mutex.withLock("m", { ...options, ...own })((lease) =>
          Effect.flatMap(timeLeft(lease), (millis) => {
            served.push(name)
            tokens.push(lease.token)
            ids.push(lease.id)
            left.push(millis)
            return Deferred.await(gate)
          })
        ).pipe(Effect.tapError((error) => Effect.sync(() => failed.push([name, error._tag]))), Effect.exit)
      )
    })
  const letGo = (name: string) => Effect.andThen(Deferred.succeed(gates.get(name)!, undefined), settle)
  return { served, tokens, ids, left, failed, wait, letGo }
}

export const grows = (tokens: ReadonlyArray<number>) => {
  for (let i = 1; i < tokens.length; i++) assert.isAbove(tokens[i]!, tokens[i - 1]!)
}
