/** Taking data streams: from candidates that somebody found, in batches, into the table. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { isRefusal, retrySchedule, toFailure } from "../../internal/lease/storeFailure.ts"
import type { StoreError } from "../../SimbaError.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { EntryId } from "../StreamName.ts"
import type { Announcement, Held, TakeRequest, TakeResult } from "../StreamStore.ts"
import type { ClientContext, Deliver } from "./context.ts"
import { annotations, OwnedStream } from "./ownedStream.ts"

type Source = keyof typeof StreamMetrics.acquisitions

export interface Candidate extends Announcement {
  readonly entry: EntryId
  /** Zero where nobody else can be at it. */
  readonly minIdle: Duration.Duration
}

export interface LeaseTaker {
  /**
   * Takes what can be taken of the first ones, as many as there is room for, and at most `batchSize`. Answers for each
   * of these. Fails only if there is no answer for as long as a lease lasts.
   */
  readonly take: (
    candidates: ReadonlyArray<Candidate>,
    source: Source,
    deliver: Deliver
  ) => Effect.Effect<ReadonlyArray<TakeResult>, StoreError>
  /** Takes one that was asked for by name, whether there is room or not. */
  readonly takeAnyway: (
    candidate: Candidate,
    source: Source,
    deliver: Deliver
  ) => Effect.Effect<TakeResult, StoreError>
  /** Adds what is held already: taken, or handed over and confirmed. */
  readonly add: (
    held: Held,
    fields: Pick<OwnedStream, "info" | "failures" | "source" | "since" | "arrival">,
    deliver: Deliver
  ) => Effect.Effect<void>
  /** Whether it makes sense to try this one now. */
  readonly isWorthwhile: (candidate: Pick<Candidate, "entry" | "stream">) => boolean
  /** Leaves it to others for a moment. */
  readonly rest: (entry: EntryId, period: Duration.Duration) => void
}

/** Streams of one taking call. */
export const batchSize = 200

const outcomes = {
  Taken: "taken",
  Occupied: "occupied",
  Recent: "recent",
  Unread: "recent",
  Gone: "gone",
  Buried: "buried",
  Failed: "failed"
} as const

export const make = (client: ClientContext): LeaseTaker => {
  const { config, ending, meter, store, table } = client
  /** Entries that are left alone until an instant, in monotonic milliseconds. */
  const resting = new Map<EntryId, number>()
  const lease = Duration.toMillis(config.leaseDuration)
  let pruned = 0

  const rest: LeaseTaker["rest"] = (entry, period) => {
    const now = table.now().monotonic
    if (now - pruned > 10 * lease) {
      pruned = now
      for (const [entry, until] of resting) if (until <= now) resting.delete(entry)
    }
    resting.set(entry, now + Duration.toMillis(period))
  }

  const isWorthwhile: LeaseTaker["isWorthwhile"] = ({ entry, stream }) => {
    if (table.has(entry) || table.get(stream) !== undefined) return false
    const until = resting.get(entry)
    if (until === undefined) return true
    if (until > table.now().monotonic) return false
    resting.delete(entry)
    return true
  }

  const add: LeaseTaker["add"] = (held, { arrival, failures, info, since, source }, deliver) =>
    Effect.suspend(() => {
      const owned = new OwnedStream({ ...held, info, failures, source, since, arrival }, table.terms)
      if (owned.left(table.now()) <= 0) {
        // The answer came when the lease was as good as over: nobody has begun, so it is given back
        owned.isStopped = true
        return Effect.asVoid(ending.insist(owned, "Giving back", Effect.timeoutOption(store.release(owned), lease)))
      }
      table.add(owned)
      deliver(owned)
      return Effect.annotateLogs(Effect.logDebug(`Data stream taken (${source})`), annotations(owned))
    })

  const settle = (
    candidate: Candidate,
    request: TakeRequest,
    result: TakeResult,
    since: OwnedStream["since"],
    source: Source,
    deliver: Deliver
  ) => {
    meter.update(StreamMetrics.takes[outcomes[result._tag]], 1)
    const { entry, stream } = candidate
    switch (result._tag) {
      case "Taken": {
        const { consumer, epoch } = request
        const { failures, token } = result
        const { info } = candidate
        const held = { stream, entry, consumer, epoch, token }
        return add(held, { info, failures, source, since, arrival: undefined }, deliver)
      }
      case "Occupied":
        rest(entry, Duration.min(result.remaining, config.leaseDuration))
        return Effect.void
      case "Buried":
        return Effect.logError(
          `Data stream is in the dead letters now: its handlers failed ${result.failures} times`
        ).pipe(Effect.annotateLogs({ stream, entry }))
      case "Failed":
        rest(entry, config.sweepInterval)
        return Effect.logWarning(`Cannot take a data stream: ${result.error.message}`).pipe(
          Effect.annotateLogs({ stream, entry })
        )
      default:
        return Effect.void
    }
  }

  /** A lost answer may have been a grant: the same epochs are asked for again, and answered the same. */
  const ask = (requests: ReadonlyArray<TakeRequest>) =>
    Effect.gen(function*() {
      const until = table.now().monotonic + lease
      const attempt = Effect.gen(function*() {
        const since = table.now()
        const exit = yield* Effect.exit(Effect.timeout(store.take(requests), config.commandTimeout))
        if (Exit.isSuccess(exit)) return { since, results: exit.value }
        return yield* Effect.failCause(exit.cause)
      }).pipe(Effect.catchCause((cause) => Effect.fail(toFailure("take", cause))))
      return yield* Effect.retry(attempt, {
        schedule: retrySchedule("100 millis", "5 seconds"),
        while: (error) => !isRefusal(error) && table.now().monotonic < until
      })
    })

  const takeAll = Effect.fnUntraced(function*(
    candidates: ReadonlyArray<Candidate>,
    source: Source,
    deliver: Deliver
  ) {
    const { consumer } = config
    const requests = candidates.map(({ entry, minIdle, stream }): TakeRequest => ({
      stream,
      entry,
      minIdle,
      consumer,
      epoch: client.nextEpoch(),
      lease: config.leaseDuration,
      maxFailures: config.maxFailures
    }))
    const { results, since } = yield* ask(requests)
    for (let i = 0; i < candidates.length; i++) {
      yield* settle(candidates[i]!, requests[i]!, results[i]!, since, source, deliver)
    }
    return results
  })

  /** The room is kept and given back in one piece, so that no interruption can lose it in between. */
  const inRoom = <A, E>(reserve: () => number, within: (kept: number) => Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.uninterruptible(Effect.suspend(() => {
      const kept = reserve()
      return Effect.ensuring(Effect.suspend(() => within(kept)), Effect.sync(() => table.unreserve(kept)))
    }))

  return {
    rest,
    isWorthwhile,
    add,
    take: (candidates, source, deliver) =>
      inRoom(
        () => table.reserve(Math.min(candidates.length, batchSize)),
        (kept) => kept === 0 ? Effect.succeed([]) : takeAll(candidates.slice(0, kept), source, deliver)
      ),
    takeAnyway: (candidate, source, deliver) =>
      inRoom(
        () => table.reserveAnyway(),
        () => Effect.map(takeAll([candidate], source, deliver), ([result]) => result!)
      )
  }
}
