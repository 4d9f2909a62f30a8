import * as Mutex from "@effect-simba/core/Mutex"
import * as MutexStore from "@effect-simba/core/MutexStore"
import * as MutexStoreSuite from "@effect-simba/testkit/MutexStoreSuite"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"

MutexStoreSuite.suite("in this process", MutexStore.layerMemory, { live: false, runs: 300 })

it.effect("every mutex's tokens grow even if the clock stands still", () =>
  Effect.gen(function*() {
    let last = 0
    for (let i = 0; i < 100; i++) {
      const token = yield* Mutex.withLock(`m${i % 3}`, { localTurn: i % 5 })((lease) => Effect.succeed(lease.token))
      assert.isAbove(token, last)
      last = token
    }
  }).pipe(Effect.provide(Mutex.layerMemory())))
