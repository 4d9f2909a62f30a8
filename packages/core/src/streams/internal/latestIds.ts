/**
 * The ids that a reader received last. After a failover they show which messages the new primary has: it may lack the
 * newest ones, and its new messages have other ids. `messageReader` uses them.
 */
import { EntryId } from "../StreamName.ts"
import type { Extent, RawMessage } from "../StreamState.ts"
import { compareEntryIds } from "../StreamStore.ts"

/** A replica lags by less than this. */
const periodMillis = 10_000

/** The minimum and maximum number of ids that are kept for each data stream. */
const [least, most] = [10, 1000]

/** The milliseconds in an id. */
const timeOf = (id: EntryId) => Number(id.split("-")[0])

/** Whether the id has a time. Ids that producers choose, such as `1-0`, may recur in another data stream. */
export const isTime = (id: EntryId) => timeOf(id) > 1e12

/** The largest id below this one. No message has the id `0-0`, so that is its own. */
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

  /** The range to read to find which of the ids are left, from the oldest on. Undefined if that would show nothing. */
  range({ first, last, lastDeleted }: Extent): { readonly after: EntryId; readonly count: number } | undefined {
    const oldest = this.ids[0]
    if (oldest === undefined || first === undefined || lastDeleted === undefined || !isTime(oldest)) return undefined
    const isThere = compareEntryIds(first, oldest) <= 0 && compareEntryIds(oldest, last) <= 0 &&
      compareEntryIds(lastDeleted, oldest) < 0
    return isThere ? { after: before(oldest), count: 2 * this.ids.length } : undefined
  }

  /** How many of the messages in the range the reader received: those before the first with another id. */
  countRead(found: ReadonlyArray<RawMessage>): number {
    const other = found.findIndex(({ id }, i) => id !== this.ids[i])
    return other === -1 ? found.length : other
  }
}
