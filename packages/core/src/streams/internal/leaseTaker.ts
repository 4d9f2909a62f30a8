/**
 * Claims data streams in batches, and adds the granted leases to the table. `announcementReader`, `orphanSweep`,
 * `orphanSignals` and `client` supply candidates, and the store decides. `rebalancer` adds data streams that were
 * handed over.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { storeTimeout } from "../../internal/lease/replyTimeout.ts"
import { isTransient, toFailure } from "../../internal/lease/storeFailure.ts"
import { retrySchedule } from "../../internal/lease/storeRetries.ts"
import * as log from "../../internal/log.ts"
import type { StoreError } from "../../SimbaError.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { EntryId } from "../StreamName.ts"
import type { Announcement, ConsumerName, Entry, Epoch, TakeRequest, TakeResult } from "../StreamStore.ts"
import type { ClientContext, Deliver } from "./context.ts"
import { logDeadLettered } from "./leaseEnds.ts"
import { type Acquisition, annotations, OwnedStream, type Source } from "./ownedStream.ts"

export interface Candidate extends Announcement {
  readonly entry: EntryId
  /** How long the entry must have been idle. Otherwise another consumer may still be working on it. */
  readonly minIdle: Duration.Duration
}

export type Malformed = Extract<Entry, { readonly _tag: "Malformed" }>

export interface LeaseTaker {
  /**
   * Claims as many candidates as fit into `batchSize` and the free capacity, in order, and returns a result for each of
   * them. A claim by name ignores capacity. Fails if the backend refuses the request, or does not reply for the
   * duration of a lease.
   */
  readonly take: (
    candidates: ReadonlyArray<Candidate>,
    source: Source,
    deliver: Deliver
  ) => Effect.Effect<ReadonlyArray<TakeResult>, StoreError>
  /** Adds leases that were claimed, or handed over and confirmed. Releases the leases that the table refuses. */
  readonly add: (acquisitions: ReadonlyArray<Acquisition>, deliver: Deliver) => Effect.Effect<void>
  /** Completes when no claim is in flight. */
  readonly idle: Effect.Effect<void>
  /**
   * Dead-letters an unreadable announcement. If that fails, the announcement stays pending, and a later sweep tries
   * again.
   */
  readonly deadLetter: (entry: Malformed, consumer: ConsumerName) => Effect.Effect<void>
  /** False if the stream is paused, still used by this client, or skipped for now. */
  readonly mayTake: (candidate: Pick<Candidate, "entry" | "stream">) => boolean
  /**
   * Leaves the entry to other members for a while, but for no longer than a lease lasts: if nobody else takes it, a
   * later sweep must.
   */
  readonly skipFor: (entry: EntryId, period: Duration.Duration) => void
}

/**
 * Minimum time between two log messages about refusals. A server that is out of memory may repeatedly refuse thousands
 * of claims.
 */
const logIntervalMillis = 10_000

/** Maximum number of data streams in one request. */
export const batchSize = 200

const outcomes = {
  Taken: "taken",
  Occupied: "occupied",
  NotIdle: "notIdle",
  Undelivered: "notIdle",
  Gone: "gone",
  DeadLettered: "deadLettered",
  Failed: "failed"
} as const

/** Logs one message for a whole batch, because a dead consumer may leave thousands of data streams behind. */
const logTakeOver = ([first, ...others]: ReadonlyArray<OwnedStream>): Effect.Effect<void> =>
  first === undefined
    ? Effect.void
    : others.length === 0
    ? Effect.annotateLogs(log.info("Took over a data stream that had no owner"), annotations(first))
    : log.info(`Took over ${others.length + 1} data streams that had no owner`)

export const make = (client: ClientContext): LeaseTaker => {
  const { config, ends, metrics, store, table } = client
  /** Skipped entries, and the monotonic time in milliseconds when each may be taken again. */
  const skipped = new Map<EntryId, number>()
  const lease = Duration.toMillis(config.leaseDuration)
  let pruned = 0
  /** The number of refusals since the last log message, and the monotonic time of that message in milliseconds. */
  let refusals = 0
  let loggedAt = -Infinity
  let underWay = 0
  const idle = Latch.makeUnsafe(true)
  let epochs = 0

  const skipFor: LeaseTaker["skipFor"] = (entry, period) => {
    const now = table.now().monotonic
    if (now - pruned > 10 * lease) {
      pruned = now
      for (const [entry, until] of skipped) if (until <= now) skipped.delete(entry)
    }
    skipped.set(entry, now + Math.min(Duration.toMillis(period), lease))
  }

  const mayTake: LeaseTaker["mayTake"] = ({ entry, stream }) => {
    if (client.pauses.has(stream)) return false
    // This client's handler from an earlier lease may still be running, and two handlers must not run at the same time
    if (table.has(entry) || table.isInUse(stream)) return false
    const until = skipped.get(entry)
    if (until === undefined) return true
    if (until > table.now().monotonic) return false
    skipped.delete(entry)
    return true
  }

  const release = (owned: OwnedStream) =>
    ends.retry(owned, "Releasing a data stream", Effect.timeoutOption(store.release(owned), lease))

  /** Starts all handlers before releasing refused leases: a release without a reply takes as long as a lease lasts. */
  const add: LeaseTaker["add"] = (acquisitions, deliver) =>
    Effect.suspend(() => {
      const added: Array<OwnedStream> = []
      const refused: Array<OwnedStream> = []
      for (const acquisition of acquisitions) {
        const owned = new OwnedStream(acquisition, table.periods)
        if (table.add(owned)) {
          added.push(owned)
          deliver(owned)
        } else {
          // The table is closed, this client still uses the data stream, or the lease has already expired. `stop`
          // limits the release to a single attempt
          refused.push(owned)
          owned.stop()
        }
      }
      return Effect.all([
        logTakeOver(added.filter(({ source }) => source === "sweep" || source === "expiry")),
        Effect.forEach(
          added,
          (owned) => Effect.annotateLogs(log.debug(`Data stream taken (${owned.source})`), annotations(owned)),
          { discard: true }
        ),
        Effect.forEach(refused, release, { concurrency: "unbounded", discard: true })
      ], { discard: true })
    })

  /**
   * A lost reply may have contained a grant. A retry with the same epochs returns the same token and a full lease,
   * measured from the retry.
   */
  const send = (requests: ReadonlyArray<TakeRequest>) =>
    Effect.suspend(() => {
      const until = table.now().monotonic + lease
      const attempt = Effect.suspend(() => {
        const since = table.now()
        return Effect.map(
          storeTimeout(store.take(requests), "take", config.commandTimeout),
          (results) => ({ since, results })
        )
      })
      return Effect.retry(Effect.catchCause(attempt, (cause) => Effect.fail(toFailure("take", cause))), {
        schedule: retrySchedule("100 millis", config.sweepInterval),
        while: (error) => isTransient(error) && table.now().monotonic < until
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
      epoch: `${client.session}.${(++epochs).toString(36)}` as Epoch,
      lease: config.leaseDuration,
      maxFailures: config.maxFailures,
      deadLetterAfter: config.deadLetterAfter,
      streakEndsAfter: config.streakEndsAfter
    }))
    const { results, since } = yield* send(requests)
    let refusal: string | undefined
    const acquisitions: Array<Acquisition> = []
    for (const [i, result] of results.entries()) {
      metrics.update(StreamMetrics.stream.takes[outcomes[result._tag]], 1)
      const { entry, info, stream } = candidates[i]!
      switch (result._tag) {
        case "Taken": {
          const { epoch } = requests[i]!
          const { failures, token } = result
          const ownership = { stream, entry, consumer, epoch, token }
          acquisitions.push({ ...ownership, info, failures, source, since, arrival: undefined })
          break
        }
        case "Occupied":
          skipFor(entry, result.timeLeft)
          if (Duration.isFinite(result.timeLeft)) break
          refusals++
          refusal = `a lease on "${stream}" has no expiry, so another program wrote it: delete it if nobody is working`
          break
        case "DeadLettered":
          yield* logDeadLettered({ stream, entry }, result.failures)
          break
        case "Failed":
          skipFor(entry, config.sweepInterval)
          refusals++
          refusal = result.error.message
      }
    }
    yield* add(acquisitions, deliver)
    if (refusal !== undefined && table.now().monotonic - loggedAt >= logIntervalMillis) {
      loggedAt = table.now().monotonic
      yield* log.warning(`Cannot take ${refusals} data stream(s); retrying later: ${refusal}`)
      refusals = 0
    }
    return results
  })

  const deadLetter: LeaseTaker["deadLetter"] = ({ entry, problem }, consumer) =>
    store.deadLetterMalformed(entry, consumer, problem).pipe(
      Effect.flatMap((isDead) => {
        if (isDead) metrics.update(StreamMetrics.stream.malformedAnnouncements, 1)
        return log.error(`Cannot read an announcement: ${problem}`)
      }),
      Effect.catch((error) => log.warning(`Cannot move an announcement to the dead letters: ${error.message}`)),
      Effect.annotateLogs({ entry })
    )

  return {
    skipFor,
    mayTake,
    add,
    idle: idle.await,
    deadLetter,
    // Uninterruptible: reserved capacity must always be freed
    take: (candidates, source, deliver) =>
      Effect.uninterruptible(Effect.suspend(() => {
        const kept = table.isClosed ? 0 : table.reserve(Math.min(candidates.length, batchSize), source === "name")
        if (kept === 0) return Effect.succeed([])
        underWay++
        idle.closeUnsafe()
        return Effect.ensuring(
          takeAll(candidates.slice(0, kept), source, deliver),
          Effect.sync(() => {
            table.unreserve(kept)
            if (--underWay === 0) idle.openUnsafe()
          })
        )
      }))
  }
}
