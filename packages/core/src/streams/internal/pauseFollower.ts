/**
 * Polls which data streams operators have paused, and revokes the paused streams that this client owns. `consumption`
 * runs it, and `pauses` contains the last known state.
 */
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"
import { isTransient } from "../../internal/lease/storeFailure.ts"
import { persist } from "../../internal/lease/storeRetries.ts"
import * as log from "../../internal/log.ts"
import type { StoreError } from "../../SimbaError.ts"
import type { ClientContext } from "./context.ts"
import type { OwnedStream } from "./ownedStream.ts"
import * as revocation from "./revocation.ts"

const read = ({ pauses, store }: ClientContext) =>
  Effect.flatMap(store.paused, (paused) =>
    pauses.set(paused)
      ? log.info(
        paused.service
          ? "The service is paused"
          : paused.streams.length === 0
          ? "Nothing is paused"
          : `${paused.streams.length} data stream(s) are paused`
      )
      : Effect.void)

const logFailure = (error: StoreError) => log.debug(`Cannot read the pauses: ${error.message}`)

/**
 * Reads the pauses, waiting out any outage, and returns the loop that keeps polling them. In a later outage, the last
 * known state remains in effect. Data streams that were acquired by name are not revoked.
 */
export const follow = (client: ClientContext): Effect.Effect<Effect.Effect<never>, StoreError, Scope.Scope> =>
  FiberSet.makeRuntime<never, void>().pipe(
    Effect.tap(() =>
      persist("Reading the pauses", Effect.catchIf(read(client), (error) => !isTransient(error), logFailure))
    ),
    Effect.map((fork) => {
      const revoking = new Set<OwnedStream>()
      const revoke = (paused: ReadonlyArray<OwnedStream>) => {
        for (const owned of paused) revoking.add(owned)
        const forget = Effect.sync(() => {
          for (const owned of paused) revoking.delete(owned)
        })
        fork(Effect.ensuring(revocation.revokeAll(client, paused), forget))
      }
      return Effect.forever(Effect.gen(function*() {
        yield* Effect.sleep(client.config.heartbeatInterval)
        yield* Effect.catch(read(client), logFailure)
        // Includes streams already revoked for another consumer, because that revocation does not interrupt a busy
        // handler
        const paused = [...client.table.all()].filter((owned) =>
          owned.source !== "name" && client.pauses.has(owned.stream) && !revoking.has(owned)
        )
        if (paused.length > 0) revoke(paused)
      }))
    })
  )
