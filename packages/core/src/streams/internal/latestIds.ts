/**
 * The ids that a reader received last. After a failover they show which messages the new primary has: it lacks the
 * newest ones, and its new messages have other ids.
 */
import { EntryId } from "../StreamName.ts"
import type { Extent, RawMessage } from "../StreamState.ts"
import { compareEntryIds } from "../StreamStore.ts"

/** A replica lags by less than this. */
const periodMillis = 10_000

/** For each data stream at least the first number of ids is kept, and never more than the second. */
const [least, most] = [10, 1000]

/** The newest ids first have these milliseconds. Ids that producers choose may recur in another data stream. */
const timeOf = (id: EntryId) => Number(id.split("-")[0])

export const isTime = (id: EntryId) => timeOf(id) > 1e12

/** The largest id below it; `0-0` for itself, which no message has. */
export const before = (id: EntryId): EntryId => {
  const [millis, sequence] = id.split("-").map(BigInt) as [bigint, bigint]
  if (sequence > 0n) return EntryId.make(`${millis}-${sequence - 1n}`)
  return EntryId.make(millis > 0n ? `${millis - 1n}-18446744073709551615` : "0-0")
}

export class LatestIds {
  private ids: ReadonlyArray<EntryId> = []

  add(messages: ReadonlyArray<RawMessage>): void {
    const all = [...this.ids, ...messages.map(({ id }) => id)]
    const newest = timeOf(all.at(-1)!)
    const from = all.findIndex((id, i) => all.length - i <= least || newest - timeOf(id) <= periodMillis)
    this.ids = all.slice(Math.max(from, all.length - most))
  }

  /** Forgets all but the oldest `count`. */
  keep(count: number): void {
    this.ids = this.ids.slice(0, count)
  }

  /** Reads from the position of the oldest id to that of the newest; undefined if that can wait, or finds nothing. */
  range({ first, last, lastDeleted }: Extent): { readonly after: EntryId; readonly count: number } | undefined {
    const oldest = this.ids[0]
    if (oldest === undefined || first === undefined || lastDeleted === undefined || !isTime(oldest)) return undefined
    const isThere = compareEntryIds(first, oldest) <= 0 && compareEntryIds(oldest, last) <= 0 &&
      compareEntryIds(lastDeleted, oldest) < 0
    return isThere ? { after: before(oldest), count: 2 * this.ids.length } : undefined
  }

  /** How many of the messages in the range were read. A new message further on may have the id of a lost one. */
  countRead(found: ReadonlyArray<RawMessage>): number {
    const other = found.findIndex(({ id }, i) => id !== this.ids[i])
    return other === -1 ? found.length : other
  }
}
