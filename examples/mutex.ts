/**
 * Holds one mutex while a scope is open, and waits for another one with a timeout.
 *
 *     node examples/mutex.ts
 *
 * Needs Node 22.19 or newer and a clone of this repository.
 */
import { Mutex } from "@effect-simba/core"
import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"

/** Holds the mutex until `Effect.scoped` ends. */
export const closeTheBooks = Effect.gen(function*() {
  const lease = yield* Mutex.acquire("books")
  yield* Effect.log(`closing the books with token ${lease.token}`)
  yield* Effect.sleep("3 seconds")
  // Losing the lease interrupts nothing here, so check it before each step that needs the mutex
  yield* lease.ensure
  yield* Effect.log("closed")
}).pipe(Effect.scoped)

/** Waits at most one second. */
export const addAnEntry = Effect.gen(function*() {
  yield* Mutex.acquire("books", { timeout: "1 second" })
  return "added"
}).pipe(
  Effect.scoped,
  Effect.catchTag("AcquireTimeout", (error) => Effect.as(Effect.log(error.message), "put off"))
)

export const program = Effect.gen(function*() {
  const [, first] = yield* Effect.all([closeTheBooks, addAnEntry], { concurrency: 2 })
  const second = yield* addAnEntry
  yield* Effect.log(`first attempt: ${first}, second attempt: ${second}`)
  return [first, second] as const
})

/** Mutexes within one process. For several processes, see `service.ts`. */
const MutexLive = Mutex.layerMemory()

if (import.meta.main) NodeRuntime.runMain(Effect.provide(program, MutexLive))
