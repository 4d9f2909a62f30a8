/**
 * The ids of the messages that a reader received most recently. After a failover, `messageReader` compares them with
 * the messages on the new primary, which may lack the newest ones. Messages added there since the failover have
 * different ids.
 */
import { EntryId } from "../StreamName.ts"
import type { Extent, RawMessage } from "../StreamState.ts"
import { compareEntryIds } from "../StreamStore.ts"

/** How long ids are kept. Replicas are assumed to lag by less. */
const periodMillis = 10_000

/** Minimum and maximum number of ids kept for each data stream. */
const [least, most] = [10, 1000]

/** The timestamp in an id, in milliseconds. */
const timeOf = (id: EntryId) => Number(id.split("-")[0])

/**
 * Whether the id contains a timestamp. Ids chosen by producers, such as `1-0`, may be reused when a data stream is
 * recreated.
 */
export const isTime = (id: EntryId) => timeOf(id) > 1e12

/** The largest smaller id. Returns `0-0` for `0-0`, which no message can have. */
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

  /** Keeps only the oldest `count` ids. */
  keep(count: number): void {
    this.ids = this.ids.slice(0, count)
  }

  /**
   * The range to read to find out which of the ids still exist, starting at the oldest id. Undefined if reading it
   * would prove nothing.
   */
  range({ first, last, lastDeleted }: Extent): { readonly after: EntryId; readonly count: number } | undefined {
    const oldest = this.ids[0]
    if (oldest === undefined || first === undefined || lastDeleted === undefined || !isTime(oldest)) return undefined
    const isThere = compareEntryIds(first, oldest) <= 0 && compareEntryIds(oldest, last) <= 0 &&
      compareEntryIds(lastDeleted, oldest) < 0
    return isThere ? { after: before(oldest), count: 2 * this.ids.length } : undefined
  }

  /** How many of the found messages the reader had already received: all messages before the first id that differs. */
  countRead(found: ReadonlyArray<Pick<RawMessage, "id">>): number {
    const other = found.findIndex(({ id }, i) => id !== this.ids[i])
    return other === -1 ? found.length : other
  }
}
