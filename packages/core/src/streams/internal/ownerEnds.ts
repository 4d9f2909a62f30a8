/**
 * Implements `StreamLease.done` and `StreamLease.release`. `leaseHandle` calls them through `ClientContext`.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { StreamLease } from "../StreamLease.ts"
import type { ClientContext } from "./context.ts"
import type { LeaseTaker } from "./leaseTaker.ts"
import type { OwnedStream } from "./ownedStream.ts"
import * as revocation from "./revocation.ts"

/** Whether the caller is the handler of this stream. A handler cannot wait for itself to end. */
const isHandlerOf = (owned: OwnedStream) =>
  Effect.map(
    Effect.serviceOption(StreamLease),
    Option.exists(({ entry, token }) => entry === owned.entry && token === owned.token)
  )

export const done: (client: ClientContext, owned: OwnedStream) => ReturnType<ClientContext["done"]> = Effect.fnUntraced(
  function*({ ends, table }, owned) {
    yield* table.ensure(owned)
    if (!owned.hasHandler || (yield* isHandlerOf(owned))) return yield* ends.done(owned)
    // Mark and stop in one step: if an interruption came between the two, the handler would continue, and the stream
    // would be marked as done even if the handler failed
    owned.isMarkedDone = true
    owned.stop()
    yield* owned.ended
    // The lease may have ended in another way in the meantime
    if (owned.outcome !== "done") return yield* owned.over
  }
)

export const release: (
  client: ClientContext,
  leaseTaker: LeaseTaker,
  owned: OwnedStream
) => ReturnType<ClientContext["release"]> = Effect.fnUntraced(function*({ config, ends, table }, leaseTaker, owned) {
  yield* table.ensure(owned)
  // Let other members try first
  leaseTaker.skipFor(owned.entry, config.sweepInterval)
  if (!owned.hasHandler) return yield* ends.release(owned)
  if (!(yield* isHandlerOf(owned))) return yield* revocation.stop(table, [owned])
  owned.stop()
  yield* Effect.yieldNow
})
