/** The types of values that a key can hold, and how to copy them. */
import { SortedSet } from "./sortedSet.ts"
import type { Stream } from "./stream.ts"
import { cloneStream } from "./stream.ts"
import { isTable, toTable } from "./tables.ts"

export interface ValueTypes {
  readonly string: string
  readonly hash: Map<string, string>
  readonly list: Array<string>
  readonly set: Set<string>
  readonly zset: SortedSet
  readonly stream: Stream
}

export type TypeName = keyof ValueTypes

export interface Entry<T extends TypeName = TypeName> {
  readonly type: T
  value: ValueTypes[T]
  /** The deadline in milliseconds since the epoch, or Infinity. */
  expiresAt: number
  /** When active expiry removes the key, in microseconds. */
  activeAt: number
  /** The time of the key's node in the expiry heap: at most `activeAt`, or Infinity. */
  heapAt: number
  /** When a command last accessed the key, in milliseconds. */
  accessedAt: number
}

/** Copies a value. If a collection has outgrown its compact encoding, so has the copy. */
export const cloneValue = ({ value }: Entry): ValueTypes[TypeName] => {
  if (typeof value === "string") return value
  const copy = copyOf(value)
  if (isTable(value)) toTable(copy)
  return copy
}

const copyOf = (value: Exclude<ValueTypes[TypeName], string>) => {
  if (Array.isArray(value)) return value.slice()
  if (value instanceof Map) return new Map(value)
  if (value instanceof Set) return new Set(value)
  return value instanceof SortedSet ? value.clone() : cloneStream(value as Stream)
}

export const cloneEntry = (entry: Entry): Entry => ({
  type: entry.type,
  value: cloneValue(entry),
  expiresAt: entry.expiresAt,
  activeAt: entry.activeAt,
  heapAt: Infinity,
  accessedAt: entry.accessedAt
})

/** Whether a collection is empty and its key must be removed. Empty streams remain. */
export const isEmpty = (entry: Entry): boolean => {
  const value = entry.value
  if (typeof value === "string") return false
  if (Array.isArray(value)) return value.length === 0
  if (value instanceof Map || value instanceof Set) return value.size === 0
  return value instanceof SortedSet ? value.size === 0 : false
}
