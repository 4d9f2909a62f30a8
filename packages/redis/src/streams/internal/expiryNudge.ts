/**
 * Makes Redis publish the expiry of a key at once. Redis publishes it when it removes the key: on an access, or in its
 * periodic sample, which is slow if there are many keys. So a command accesses the key. `leaseEnds` uses this for
 * yielded leases.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { Redis } from "../../internal/client/effectRedis.ts"
import * as log from "../../internal/client/log.ts"

/** The delay before an access: keys expire after 1 millisecond. */
const delay = Duration.millis(3)

/** A finalizer does not sleep: this many round trips take about a millisecond. */
const attempts = 20

export const make = Effect.fnUntraced(function*(
  redis: Redis["Service"]
): Effect.fn.Return<(key: string) => void, never, Scope.Scope> {
  const due = new Set<string>()
  /** Keys that are being touched. A key that is added again meanwhile is due again. */
  let touching: ReadonlyArray<string> = []
  const wanted = Latch.makeUnsafe(false)

  /** Returns how many keys remain. They expire even if this fails. */
  const touch = (keys: ReadonlyArray<string>) =>
    Effect.catch(
      redis.send<number>("EXISTS", ...keys),
      (error) => Effect.as(log.debug("Cannot touch the keys of yielded leases", error.cause), 0)
    )

  yield* Effect.addFinalizer(() => {
    const keys = [...touching, ...due]
    return keys.length === 0
      ? Effect.void
      : Effect.repeat(touch(keys), { times: attempts, until: (left) => left === 0 })
  })
  yield* Effect.gen(function*() {
    for (;;) {
      yield* wanted.await
      wanted.closeUnsafe()
      yield* Effect.sleep(delay)
      touching = [...due]
      due.clear()
      yield* touch(touching)
      touching = []
    }
  }).pipe(Effect.forkScoped)

  return (key) => {
    due.add(key)
    wanted.openUnsafe()
  }
})
