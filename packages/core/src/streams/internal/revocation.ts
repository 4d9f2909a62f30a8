/**
 * Revokes data streams: notifies the handler, interrupts it after the grace period, and waits for it to end. Called by
 * `rebalancer`, `pauseFollower`, `ownerEnds`, `consumption` and `client`.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ClientContext } from "./context.ts"
import { batchSize } from "./leaseTaker.ts"
import type { OwnedStream } from "./ownedStream.ts"
import type { StreamTable } from "./streamTable.ts"

/** Waits until none of the data streams is owned any longer. */
const awaitEnds = (holdings: ReadonlyArray<OwnedStream>): Effect.Effect<void> =>
  Effect.forEach(holdings, (owned) => owned.ended, { discard: true })

/**
 * A notified handler resumes immediately, so thousands of notifications are spread over several turns of the event
 * loop.
 */
const inSlices = Effect.fnUntraced(function*(
  table: StreamTable,
  holdings: ReadonlyArray<OwnedStream>,
  act: (owned: OwnedStream) => void
) {
  let slice = table.slice()
  for (const owned of holdings) {
    while (!slice.hasRoom()) {
      yield* Effect.yieldNow
      slice = table.slice(slice)
    }
    act(owned)
  }
})

/** Interrupts the handlers immediately and waits for their leases to end. Leases without a handler stay open. */
export const stop = (table: StreamTable, holdings: ReadonlyArray<OwnedStream>) =>
  Effect.andThen(
    inSlices(table, holdings, (owned) => owned.stop()),
    () => awaitEnds(holdings.filter(({ hasHandler }) => hasHandler))
  )

/**
 * Waits for a revoked stream's lease to end. Interrupts the handler after the grace period, but never while it
 * processes a message that it read through the lease. Also completes if the revocation is withdrawn.
 */
export const awaitRecall = (client: ClientContext, owned: OwnedStream): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { receiver } = owned
    yield* Effect.timeoutOption(owned.ended, client.config.gracePeriod)
    const isRecalled = () => owned.isOpen() && owned.receiver === receiver
    while (isRecalled()) {
      if (owned.hasRead && owned.isBusy) {
        yield* Effect.sleep("100 millis")
        continue
      }
      owned.stop()
      return yield* owned.ended
    }
  })

/**
 * Revokes data streams and waits for their leases to end. A lease without a handler is released after the grace period
 * and its protected work have ended, unless its user releases it earlier. If the backend does not reply to a batch of
 * releases within `releaseTimeout`, the remaining leases end only locally.
 */
export const revokeAll = (client: ClientContext, holdings: ReadonlyArray<OwnedStream>): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { config, ends, table } = client
    yield* inSlices(table, holdings, (owned) => owned.revoke())
    yield* Effect.timeoutOption(awaitEnds(holdings), config.gracePeriod)
    yield* stop(table, holdings)
    const byHand = holdings.filter((owned) => owned.isOpen())
    yield* Effect.forEach(byHand, (owned) => owned.afterWork(Effect.void), { concurrency: "unbounded", discard: true })
    const left = byHand.filter((owned) => owned.isOpen())
    for (const batch of Arr.chunksOf(left, batchSize)) {
      const releases = Effect.forEach(batch, ends.yield, { concurrency: "unbounded", discard: true })
      if (Option.isNone(yield* Effect.timeoutOption(releases, config.releaseTimeout))) break
    }
    for (const owned of left) table.end(owned, "released")
  })
