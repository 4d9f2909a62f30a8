/** Batches concurrent requests into shared calls. Used by `leases`, `leaseEnds`, `checkpoints` and `extents`. */
import type { StoreError } from "@effect-simba/core/SimbaError"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Request from "effect/Request"
import * as RequestResolver from "effect/RequestResolver"
import { fromReply } from "../../internal/client/errors.ts"
import { malformed } from "../../internal/client/malformedInput.ts"
import { type Failed, isFailed } from "./replies.ts"

/** The maximum number of requests per call. It limits how long a call blocks the server. */
const batchSize = 200

type Call<A, B> = (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, StoreError>

/** If a reply is missing, all requests fail, because replies can no longer be matched with requests. */
const whole = <A, B>(items: ReadonlyArray<A>, call: Call<A, B>): ReturnType<Call<A, B>> =>
  Effect.filterOrFail(
    call(items),
    ({ length }) => length === items.length,
    (replies) => malformed("the replies to a batch", replies, `expected one for each of ${items.length} requests`)
  )

/** Sends a list of items, in calls of limited size. */
export const inCalls = <A, B>(
  items: ReadonlyArray<A>,
  call: Call<A, B>
): ReturnType<Call<A, B>> =>
  Effect.map(Effect.forEach(Arr.chunksOf(items, batchSize), (items) => whole(items, call)), Arr.flatten)

/**
 * Turns a call for many items into a request for a single item. The call must return its results in the order of the
 * items. `keysOf` returns an item's keys, which are named in the error about a key of the wrong type.
 */
export const make = <A, B>(
  operation: string,
  call: Call<A, B | Failed>,
  keysOf?: (item: A) => ReadonlyArray<string>
): (item: A) => Effect.Effect<B, StoreError> => {
  interface Asked extends Request.Request<B, StoreError> {
    readonly item: A
  }
  const ask = Request.of<Asked>()
  const resolver = RequestResolver.make<Asked>((entries) =>
    Effect.map(whole(entries.map(({ request }) => request.item), call), (replies) =>
      entries.forEach((entry, i) => {
        const reply = replies[i]!
        entry.completeUnsafe(
          isFailed(reply)
            ? Exit.fail(fromReply(operation, reply[1], keysOf?.(entry.request.item)))
            : Exit.succeed(reply)
        )
      }))
  ).pipe(RequestResolver.batchN(batchSize))
  return (item) => Effect.request(ask({ item } as never), resolver)
}
