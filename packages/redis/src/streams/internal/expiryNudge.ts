/**
 * Makes Redis publish a key's expiry without delay, by accessing the key. Redis publishes the expiry only when it
 * removes the key: on an access, or during periodic sampling, which is slow if there are many keys. Used by `leaseEnds`
 * for yielded leases.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { Redis } from "../../internal/client/effectRedis.ts"
import * as log from "../../internal/client/log.ts"

/** The delay before a key is accessed. Keys expire after 1 ms. */
const delay = Duration.millis(3)

/** The maximum number of accesses in the finalizer, which does not sleep. This many round trips take about 1 ms. */
const attempts = 20

export const make = Effect.fnUntraced(function*(
  redis: Redis["Service"]
): Effect.fn.Return<(key: string) => void, never, Scope.Scope> {
  const due = new Set<string>()
  /** The keys being touched. A key that is added again in the meantime is touched again. */
  let touching: ReadonlyArray<string> = []
  const wanted = Latch.makeUnsafe(false)

  /** Touches keys, and returns how many still exist. They expire even if the command fails. */
  const touch = (keys: ReadonlyArray<string>) =>
    Effect.catch(
      redis.send<number>("EXISTS", ...keys),
      (error) => Effect.as(log.debug("Cannot touch the keys of yielded leases", error.cause), 0)
    )

  yield* Effect.addFinalizer(() => {
    const keys = [...touching, ...due]
    return keys.length === 0
      ? Effect.void
      : Effect.timeoutOption(
        Effect.repeat(touch(keys), { times: attempts, until: (left) => left === 0 }),
        "1 second"
      )
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
