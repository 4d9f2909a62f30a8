/**
 * Decides in which order the fleet's members try to take an orphan, and which member does the work for the whole fleet.
 * Pure functions of the last heartbeat's reply, used by `orphanSignals` and `reaper`.
 */
import type { EntryId } from "../StreamName.ts"
import type { ConsumerName, Member } from "../StreamStore.ts"

/** FNV-1a with additional mixing. All members compute the same hash for an entry and a member. */
const hash = (text: string): number => {
  let value = 0x811c9dc5
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193)
  // Sessions may differ only in their last characters, and FNV-1a alone would then change only the low bits
  value ^= value >>> 16
  value = Math.imul(value, 0x45d9f3b)
  return (value ^ value >>> 16) >>> 0
}

/**
 * How many members with free capacity try this entry before this member does. The order differs from entry to entry,
 * and members that know the same fleet agree on it. Undefined while the members are unknown.
 */
export const rank = (members: ReadonlyArray<Member>, session: string, entry: EntryId): number | undefined => {
  if (!members.some((member) => member.session === session)) return undefined
  const mine = hash(entry + session)
  let before = 0
  for (const member of members) {
    if (member.session !== session && member.owned < member.capacity && hash(entry + member.session) > mine) before++
  }
  return before
}

/** Whether this consumer does the work for the whole fleet. True while the members are unknown. */
export const isFirst = (members: ReadonlyArray<Member>, consumer: ConsumerName): boolean =>
  members.every((member) => consumer <= member.consumer)
