/**
 * The position of a reader in its data stream, and what the extent of the stream says about it: whether messages are
 * missing, how many, and whether the stream was deleted and written again, or lost its end.
 *
 * `Extent.added` counts every message that was ever added, and `offset` those up to the position. Where the number of
 * messages after the position is certain, `added` minus that number is the true offset. A larger one than the reader's own
 * is the number of messages that it never had.
 */
import * as Option from "effect/Option"
import { EntryId } from "../StreamName.ts"
import type { Checkpoint, Extent } from "../StreamState.ts"
import { compareEntryIds } from "../StreamStore.ts"

export interface ReadPosition {
  /** The last message that was read. */
  readonly after: EntryId
  /** Messages that were added up to it, those that were reported as missing included. Undefined while unknown. */
  readonly offset: number | undefined
  /** Up to here every missing message was reported. */
  readonly checked: EntryId
}

/** How a stream begins. */
export interface Origin {
  readonly first: EntryId | undefined
  /** Nothing was ever deleted from it. */
  readonly isWhole: boolean
}

export interface Missing {
  readonly after: EntryId
  readonly until: EntryId
  /** None where the backend does not count. */
  readonly count: Option.Option<number>
}

/** Before the first message. */
export const beginning: Checkpoint = { id: EntryId.make("0-0"), offset: 0 }

export const at = ({ id, offset }: Checkpoint): ReadPosition => ({ after: id, offset, checked: id })

/** Whether the stream never had the message at the position: it was deleted and written again, or lost its end. */
export const isPast = (after: EntryId, { last }: Extent): boolean => compareEntryIds(last, after) < 0

export const originOf = ({ added, first, length }: Extent): Origin => ({ first, isWhole: added === length })

/**
 * Whether a stream that is behind the position is another one. No commit passes the last message, so a checkpoint beyond it
 * belongs to another stream. So does another first message before which nothing was deleted.
 */
export const isRewritten = (
  origin: Origin | undefined,
  checkpoint: Checkpoint | undefined,
  extent: Extent
): boolean => {
  if (checkpoint !== undefined && isPast(checkpoint.id, extent)) return true
  const present = originOf(extent)
  return origin === undefined ?
    checkpoint === undefined :
    present.isWhole && !(origin.isWhole && origin.first === present.first)
}

const isTrimmed = ({ after }: ReadPosition, { first }: Extent): boolean =>
  first === undefined || compareEntryIds(first, after) > 0

/** How many messages are left after the position; undefined where the extent does not say. */
const remaining = (position: ReadPosition, extent: Extent): number | undefined =>
  isTrimmed(position, extent) ? extent.length : compareEntryIds(extent.last, position.after) === 0 ? 0 : undefined

/** Whether messages were deleted after a position whose offset is unknown. Their number stays unknown. */
const isBehindTrimming = ({ after }: ReadPosition, { added, first, last, lastDeleted, length }: Extent): boolean =>
  first === undefined
    ? compareEntryIds(last, after) > 0
    // The message at the position itself may have been deleted by its id, after it was processed
    : compareEntryIds(first, after) > 0 && added !== undefined && added !== length && lastDeleted !== after

/** Reads the extent of the same stream, while no read is under way. */
export const check = (
  position: ReadPosition,
  extent: Extent
): { readonly position: ReadPosition; readonly missing: Missing | undefined } => {
  const left = remaining(position, extent)
  if (left === undefined) return { position, missing: undefined }
  const offset = extent.added === undefined ? undefined : extent.added - left
  // Trimmed to the end: nothing more comes before its last id
  const after = extent.first === undefined ? extent.last : position.after
  // Single messages may have been deleted further on
  const isWhole = extent.lastDeleted === undefined || extent.first === undefined ||
    compareEntryIds(extent.lastDeleted, extent.first) < 0
  const until = isWhole && left > 0 ? extent.first! : extent.last
  // A stream that was deleted and written again with larger ids counts from zero
  const isRenewed = position.offset !== undefined && offset !== undefined && offset < position.offset &&
    isTrimmed(position, extent)
  const count = offset === undefined || position.offset === undefined
    ? undefined
    : offset - (isRenewed ? 0 : position.offset)
  const isMissing = count === undefined ? isBehindTrimming(position, extent) : count > 0
  return {
    position: { after, offset, checked: after },
    missing: isMissing ? { after: position.checked, until, count: Option.fromUndefinedOr(count) } : undefined
  }
}
