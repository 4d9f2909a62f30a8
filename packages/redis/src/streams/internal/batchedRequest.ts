/**
 * Requests of one moment share calls. `leases`, `leaseEnds`, `checkpoints` and `extents` coalesce their requests with
 * it.
 */
import type { StoreError } from "@effect-simba/core/SimbaError"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Request from "effect/Request"
import * as RequestResolver from "effect/RequestResolver"
import { fromReply } from "../../internal/client/errors.ts"
import { type Failed, isFailed } from "./replies.ts"

/** Requests of one call: they share a round trip, and block the server only briefly. */
const batchSize = 200

/** For lists, which are batches already. */
export const inCalls = <A, B>(
  items: ReadonlyArray<A>,
  call: (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, StoreError>
): Effect.Effect<ReadonlyArray<B>, StoreError> =>
  Effect.map(Effect.forEach(Arr.chunksOf(items, batchSize), call), Arr.flatten)

/** Makes a request for one item from a call for many, which returns results in order. */
export const make = <A, B>(
  operation: string,
  call: (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B | Failed>, StoreError>
): (item: A) => Effect.Effect<B, StoreError> => {
  interface Asked extends Request.Request<B, StoreError> {
    readonly item: A
  }
  const ask = Request.of<Asked>()
  const resolver = RequestResolver.make<Asked>((entries) =>
    Effect.map(call(entries.map(({ request }) => request.item)), (replies) =>
      entries.forEach((entry, i) => {
        const reply = replies[i]!
        entry.completeUnsafe(
          isFailed(reply) ? Exit.fail(fromReply(operation, reply[1])) : Exit.succeed(reply)
        )
      }))
  ).pipe(RequestResolver.batchN(batchSize))
  return (item) => Effect.request(ask({ item } as never), resolver)
}
