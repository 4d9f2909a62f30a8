/** What this member knows of the others, and when it is its turn to take what has become free. */
import type { ConsumerName, EntryId } from "../StreamName.ts"
import type { Member } from "../StreamStore.ts"

export interface Fleet {
  /** As the last beat answered; nobody where there was none. */
  members: ReadonlyArray<Member>
}

export const empty = (): Fleet => ({ members: [] })

/** FNV-1a: the same on all members, different for each pair. */
const hash = (text: string): number => {
  let value = 0x811c9dc5
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193)
  // Names of members differ in their last characters, which would only change the low bits
  value ^= value >>> 16
  value = Math.imul(value, 0x45d9f3b)
  return (value ^ value >>> 16) >>> 0
}

/**
 * How many members with room are to try this entry before oneself. For every entry it is another order, on which all
 * agree who know the same members. Nothing where it is not known.
 */
export const rank = (fleet: Fleet, session: string, entry: EntryId): number | undefined => {
  if (!fleet.members.some((member) => member.session === session)) return undefined
  const mine = hash(entry + session)
  let before = 0
  for (const member of fleet.members) {
    if (member.session !== session && member.owned < member.capacity && hash(entry + member.session) > mine) before++
  }
  return before
}

/** One of the members does what is done for all. */
export const isFirst = (fleet: Fleet, consumer: ConsumerName): boolean =>
  fleet.members.every((member) => consumer <= member.consumer)
