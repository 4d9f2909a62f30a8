/** Where the reading of a data stream begins, by the words of its users. */
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import { entryProblem } from "../../internal/nameRules.ts"
import { compareEntryIds, EntryId } from "../StreamName.ts"
import type { Checkpoint, Extent } from "../StreamStore.ts"

/** The first message that is left, the next one to come, a message by its id, or the first one since a time. */
export type StartPosition = "beginning" | "now" | (string & {}) | DateTime.DateTime

export const problemOf = (position: StartPosition): string | undefined =>
  DateTime.isDateTime(position) || position === "beginning" || position === "now" || entryProblem(position) === undefined
    ? undefined
    : "it is neither \"beginning\", \"now\", an id <milliseconds>-<sequence> nor a DateTime"

const maxSequence = 2n ** 64n - 1n

/** The largest id below it. */
const predecessor = (id: string): EntryId => {
  const [millis, sequence] = id.split("-").map(BigInt) as [bigint, bigint]
  return EntryId.make(
    sequence > 0n ? `${millis}-${sequence - 1n}` : millis > 0n ? `${millis - 1n}-${maxSequence}` : "0-0"
  )
}

/** The checkpoint with which a reader begins there. Messages that were deleted before it are not missing. */
export const resolve = (position: StartPosition, extent: Option.Option<Extent>): Checkpoint => {
  if (Option.isNone(extent)) return { id: EntryId.make("0-0"), offset: 0 }
  const { added, first, last, length } = extent.value
  const end = { id: last, offset: added }
  if (position === "now") return end
  const id = position === "beginning"
    ? EntryId.make("0-0")
    : predecessor(DateTime.isDateTime(position) ? `${Math.max(0, DateTime.toEpochMillis(position))}-0` : position)
  // A reader beyond the end would take the data stream for another one
  if (compareEntryIds(id, last) >= 0) return end
  const isBeforeFirst = first === undefined || compareEntryIds(id, first) < 0
  return { id, offset: isBeforeFirst && added !== undefined ? added - length : undefined }
}
