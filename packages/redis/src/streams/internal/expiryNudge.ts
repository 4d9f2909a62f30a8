/**
 * Redis publishes an expiry when it removes the key: when somebody asks for it, or when it comes across it by chance,
 * which among many keys takes long. So that what was given back is heard of at once, somebody asks.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { Redis } from "effect/persistence/Redis"
import type * as Scope from "effect/Scope"

/** An expiry of 1 millisecond is over by then. */
const delay = Duration.millis(3)

/** At the end there is no waiting: as many round trips last as long. */
const attempts = 20

export const make = Effect.fnUntraced(function*(
  redis: Redis["Service"]
): Effect.fn.Return<(key: string) => void, never, Scope.Scope> {
  const due = new Set<string>()
  const wanted = Latch.makeUnsafe(false)

  /** How many are still there. Without an answer they expire all the same. */
  const ask = (keys: ReadonlyArray<string>) =>
    Effect.catch(
      redis.send<number>("EXISTS", ...keys),
      (error) => Effect.as(Effect.logDebug("Cannot look at what was given back", error.cause), 0)
    )

  yield* Effect.addFinalizer(() =>
    due.size === 0 ? Effect.void : Effect.repeat(ask([...due]), { times: attempts, until: (left) => left === 0 })
  )
  yield* Effect.gen(function*() {
    for (;;) {
      yield* wanted.await
      wanted.closeUnsafe()
      yield* Effect.sleep(delay)
      const keys = [...due]
      yield* ask(keys)
      for (const key of keys) due.delete(key)
      if (due.size > 0) wanted.openUnsafe()
    }
  }).pipe(Effect.forkScoped)

  return (key) => {
    due.add(key)
    wanted.openUnsafe()
  }
})
