/**
 * Determines from the user's options where a reader of a data stream starts. Used by `messageReader` and, for `seek`,
 * by `administration`.
 */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as log from "../../internal/log.ts"
import { entryProblem } from "../../internal/nameRules.ts"
import type { StreamLease } from "../StreamLease.ts"
import { EntryId } from "../StreamName.ts"
import type { Checkpoint, Extent, RawMessage } from "../StreamState.ts"
import { compareEntryIds, type StreamEnd } from "../StreamStore.ts"
import { before, isTime } from "./latestIds.ts"
import { type LeaseError, messagesIfAny, retryOutages } from "./leaseRequests.ts"
import { beginning } from "./readPosition.ts"

/**
 * The first remaining message, the next message to arrive, a message by its id, or the first message at or after a
 * time.
 */
export type StartPosition = "beginning" | "now" | (string & {}) | DateTime.DateTime

export const problemOf = (position: StartPosition): string | undefined =>
  DateTime.isDateTime(position) || position === "beginning" || position === "now" ||
    entryProblem(position) === undefined
    ? undefined
    : "it is neither \"beginning\", \"now\", an id <milliseconds>-<sequence> nor a DateTime"

/**
 * The checkpoint for a reader that starts at this position. Deleted messages before the position do not count as
 * missing.
 */
export const resolve = (position: StartPosition, extent: Option.Option<Extent>): Checkpoint => {
  if (Option.isNone(extent)) return { id: EntryId.make("0-0"), offset: 0 }
  const { added, first, last, lastDeleted, length } = extent.value
  const end = { id: last, offset: added }
  if (position === "now") return end
  const id = position === "beginning"
    ? EntryId.make("0-0")
    : before(
      EntryId.make(
        DateTime.isDateTime(position) ? `${Math.ceil(Math.max(0, DateTime.toEpochMillis(position)))}-0` : position
      )
    )
  // If its position were beyond the end, a reader would conclude that the data stream was recreated
  if (compareEntryIds(id, last) >= 0) return end
  // Deleted messages after the start count as missing, but an offset would hide them
  const isWhole = lastDeleted === undefined || first === undefined || compareEntryIds(lastDeleted, first) < 0
  const isBeforeFirst = first !== undefined && added === length && compareEntryIds(id, first) < 0
  const isKnown = position === "beginning" ? isWhole && added !== undefined : isBeforeFirst
  return { id, offset: isKnown ? added! - length : undefined }
}

interface StartOptions {
  readonly after?: Option.Option<string> | undefined
  readonly from?: StartPosition | undefined
  readonly until?: unknown
}

/** Stores the start as the checkpoint, where the next owner starts too. */
const startFrom = (lease: StreamLease, from: StartPosition) =>
  Effect.gen(function*() {
    const start = resolve(from, yield* retryOutages(lease.extent))
    yield* retryOutages(lease.seek(start))
    yield* log.info(`There is no checkpoint; reading starts after ${start.id}`).pipe(
      Effect.annotateLogs({ stream: lease.stream })
    )
    return start
  })

/** Warns if the data stream is so old that its checkpoint may have expired. */
const warnOfExpiry = (lease: StreamLease) =>
  Effect.gen(function*() {
    const extent = yield* retryOutages(lease.extent)
    const first = Option.getOrUndefined(extent)?.first
    if (first === undefined) return
    const [written, now] = [Number(first.split("-")[0]), yield* Clock.currentTimeMillis]
    if (!isTime(first) || now - written < Duration.toMillis(lease.checkpointRetention)) return
    yield* log.warning(
      "There is no checkpoint, or it has expired; reading an old data stream from its first message. " +
        "Raise checkpointRetention above the longest pause between two announcements"
    ).pipe(Effect.annotateLogs({ stream: lease.stream, message: first }))
  })

/**
 * Reads the message at the application's position. If the message may have been deleted, waits only briefly. Otherwise
 * waits for the message: without it, the reader could wait for an end that it has already passed.
 */
const messageAt = (lease: StreamLease, id: EntryId) =>
  Effect.gen(function*() {
    const extent = Option.getOrUndefined(yield* retryOutages(lease.extent))
    if (extent?.first === undefined) return undefined
    if (compareEntryIds(extent.first, id) > 0 || compareEntryIds(id, extent.last) > 0) return undefined
    const isThere = extent.first === id ||
      extent.lastDeleted !== undefined && compareEntryIds(extent.lastDeleted, id) < 0
    const found = yield* isThere
      ? retryOutages(lease.messagesAfter(before(id), 1))
      : messagesIfAny(lease, before(id), 1)
    return found.find((message) => message.id === id)
  })

/**
 * Starts after the application's position, otherwise after the checkpoint, otherwise at `from`. `end`: whether the data
 * stream has ended there. `processed`: the message at the application's position; only `until` can decide whether it is
 * the last one.
 */
export const startOf = (
  lease: StreamLease,
  { after, from = "beginning", until }: StartOptions
): Effect.Effect<{
  readonly start: Checkpoint
  readonly checkpoint?: Checkpoint | undefined
  readonly end: StreamEnd
  readonly processed?: RawMessage | undefined
}, LeaseError> =>
  Effect.gen(function*() {
    const checkpoint = Option.getOrUndefined(yield* retryOutages(lease.checkpoint))
    const own = after && Option.map(
      after,
      (id): Checkpoint => ({ id: EntryId.make(id), offset: checkpoint?.id === id ? checkpoint.offset : undefined })
    )
    // An application that keeps its own position but has none yet has processed nothing
    const start = own && (Option.isSome(own) || from === "beginning")
      ? Option.getOrElse(own, () => beginning)
      : checkpoint
    if (start !== undefined) {
      // A start before the checkpoint leaves messages to process, unless the data stream was deleted
      const mayBeOver = until !== undefined && checkpoint !== undefined &&
        (compareEntryIds(start.id, checkpoint.id) >= 0 || Option.isNone(yield* retryOutages(lease.extent)))
      const end = mayBeOver ? yield* retryOutages(lease.end) : "Open"
      const isOwn = own !== undefined && until !== undefined && end === "Open"
      return { start, checkpoint, end, processed: isOwn ? yield* messageAt(lease, start.id) : undefined }
    }
    if (from !== "beginning") return { start: yield* startFrom(lease, from), end: "Open" }
    yield* warnOfExpiry(lease)
    return { start: beginning, end: "Open" }
  })
