import { EntryId } from "../StreamName.ts"

const lastSequence = "18446744073709551615"

/** The greatest id before this one; before the first there is `0-0`, which no entry has. */
export const before = (id: EntryId): EntryId => {
  const [millis, sequence] = id.split("-").map(BigInt) as [bigint, bigint]
  if (sequence > 0n) return EntryId.make(`${millis}-${sequence - 1n}`)
  return EntryId.make(millis > 0n ? `${millis - 1n}-${lastSequence}` : "0-0")
}
