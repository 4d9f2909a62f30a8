/**
 * Compares a `messageReader`'s position with the extent of its data stream. The result shows how many messages are
 * missing, if any, and whether the stream was deleted and recreated or lost its newest messages.
 *
 * `Extent.added` counts all messages that have ever been added, and `offset` counts the messages up to the position. If
 * the number of messages after the position is known, `added` minus that number is the true offset. If the true offset
 * exceeds the reader's offset, the difference is the number of messages that the reader never received.
 */
import * as Option from "effect/Option"
import { EntryId } from "../StreamName.ts"
import type { Checkpoint, Extent } from "../StreamState.ts"
import { compareEntryIds } from "../StreamStore.ts"

export interface ReadPosition {
  /** The last message that was read. */
  readonly after: EntryId
  /** How many messages were added up to `after`, including those reported as missing. Undefined while unknown. */
  readonly offset: number | undefined
  /** Every missing message up to this id has been reported. */
  readonly checked: EntryId
}

/** How a stream begins. */
export interface Origin {
  readonly first: EntryId | undefined
  /** Whether nothing was ever deleted from the stream. */
  readonly isWhole: boolean
}

export interface Missing {
  readonly after: EntryId
  readonly until: EntryId
  /** `None` if the number is unknown. */
  readonly count: Option.Option<number>
}

/** An extent, and how many messages were left in a range at the same instant. Each function documents the range. */
export type Counted = Extent & { readonly counted: number | undefined }

/** The position before the first message. */
export const beginning: Checkpoint = { id: EntryId.make("0-0"), offset: 0 }

export const at = ({ id, offset }: Checkpoint): ReadPosition => ({ after: id, offset, checked: id })

/** Whether the stream ends before the position: it was deleted and recreated, or lost its newest messages. */
export const isPast = (after: EntryId, { last }: Extent): boolean => compareEntryIds(last, after) < 0

export const originOf = ({ added, first, length }: Extent): Origin => ({ first, isWhole: added === length })

/**
 * Whether a stream that ends before the position is a different stream, created after the reader's stream was deleted.
 * No commit passes the last message, so a checkpoint beyond the last message belongs to another stream. So does an
 * `origin` that differs from the beginning of the present stream, if nothing was deleted from the present stream.
 *
 * This relies on two facts: no commit is in flight, because the caller awaits `MessageReader.settled`, and a failover
 * that loses messages also loses their commits.
 *
 * If no check has read how the stream began, `origin` is undefined and the checkpoint decides. If the stream still
 * reaches the checkpoint, the commit was made in this stream, and only messages after it were lost. Without a
 * checkpoint, nothing shows that this is the same stream, and reading from the beginning undoes no commit.
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

const isTrimmed = ({ after }: Pick<ReadPosition, "after">, { first }: Extent): boolean =>
  first === undefined || compareEntryIds(first, after) > 0

/** How many messages are left after the position. Undefined if neither the extent nor a count shows this. */
const remaining = (position: ReadPosition, extent: Extent & Partial<Counted>): number | undefined => {
  if (isTrimmed(position, extent)) return extent.length
  if (compareEntryIds(extent.last, position.after) === 0) return 0
  return extent.first === position.after ? extent.length - 1 : extent.counted
}

/** Whether messages may have been deleted after a position with an unknown offset. Their number stays unknown. */
const mayMiss = (position: ReadPosition, extent: Extent): boolean => {
  const { added, first, last, lastDeleted, length } = extent
  if (compareEntryIds(last, position.after) <= 0) return false
  if (isTrimmed(position, extent)) return first === undefined || added !== undefined && added !== length
  return lastDeleted !== undefined && compareEntryIds(lastDeleted, position.after) > 0
}

/**
 * The position of a reader that starts before or after the checkpoint. `counted`: the number of messages between the
 * start and the checkpoint.
 *
 * Between the checkpoint and a later start, the remaining messages have been processed. Messages in this range that
 * were deleted, or that the checkpoint's offset does not include, count as missing, because they may not have been
 * reported. Between a start and a later checkpoint, all messages were processed once, so only trimming past the start
 * counts as missing.
 *
 * For example, with a checkpoint at message 5, offset 5:
 * - start 8, and 6 was deleted: 2 are counted, so the offset is 7. `check` computes 8, and reports one missing after 5.
 * - start 3, and 4 was deleted: 1 is counted, so the offset is 4. `check` computes 4, and reports none.
 */
export const beside = (start: EntryId, checkpoint: Checkpoint, extent: Counted): ReadPosition => {
  const unknown = at({ id: start, offset: undefined })
  const { id, offset } = checkpoint
  if (offset === undefined || extent.counted === undefined || isPast(id, extent)) return unknown
  if (compareEntryIds(id, start) <= 0) return { after: start, offset: offset + extent.counted, checked: id }
  // The count is unknown, so the reported range must include messages that an earlier owner may have missed
  return isTrimmed(unknown, extent)
    ? { ...unknown, checked: beginning.id }
    : { ...unknown, offset: offset - extent.counted }
}

/**
 * Compares the position with the extent of the same stream, while no read is in flight. `counted`: the number of
 * messages after the position.
 */
export const check = (
  position: ReadPosition,
  extent: Extent & Partial<Counted>
): { readonly position: ReadPosition; readonly missing: Missing | undefined } => {
  const left = remaining(position, extent)
  if (left === undefined) return { position, missing: undefined }
  const offset = extent.added === undefined ? undefined : extent.added - left
  // If all messages were deleted, new messages can only arrive after the last id
  const after = extent.first === undefined ? extent.last : position.after
  const next = isTrimmed(position, extent) ? extent.first : after
  // False if individual messages may have been deleted after the position
  const isWhole = extent.lastDeleted === undefined || next === undefined ||
    compareEntryIds(extent.lastDeleted, next) <= 0
  const until = isWhole && left > 0 ? next! : extent.last
  // Offsets start from zero in a stream that was recreated with larger ids
  const isRenewed = position.offset !== undefined && offset !== undefined && offset < position.offset &&
    isTrimmed(position, extent)
  const count = offset === undefined || position.offset === undefined
    ? undefined
    : offset - (isRenewed ? 0 : position.offset)
  const isMissing = count === undefined ? mayMiss(position, extent) : count > 0
  return {
    position: { after, offset, checked: after },
    missing: isMissing ? { after: position.checked, until, count: Option.fromUndefinedOr(count) } : undefined
  }
}
