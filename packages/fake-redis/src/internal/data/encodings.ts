/**
 * Tracks the encodings that OBJECT ENCODING reports. A collection that outgrows its compact encoding becomes a table
 * and never changes back. HSCAN, SSCAN and ZSCAN return a compact collection in a single page.
 */
import type { Config } from "../config.ts"
import { MAX_INT64, MIN_INT64 } from "../numbers.ts"
import type { SortedSet } from "./sortedSet.ts"
import { isTable, toTable } from "./tables.ts"
import type { TypeName, ValueTypes } from "./values.ts"

/** Call this after setting fields and values. */
export const growHash = (hash: Map<string, string>, config: Config, texts: ReadonlyArray<string>): void => {
  if (isTable(hash)) return
  const longest = config.number("hash-max-listpack-value")
  if (hash.size > config.number("hash-max-listpack-entries") || texts.some((text) => text.length > longest)) {
    toTable(hash)
  }
}

/** Call this after adding members. */
export const growSet = (set: Set<string>, config: Config, added: Iterable<string>): void => {
  if (isTable(set)) return
  if (set.size > config.number("set-max-intset-entries")) return toTable(set)
  for (const member of added) if (!isInt64(member)) return toTable(set)
}

/** Call this before adding members: only a table can store a negative zero. */
export const growSortedSet = (zset: SortedSet, config: Config, added: ReadonlyArray<string>): void => {
  if (isTable(zset)) return
  const longest = config.number("zset-max-listpack-value")
  const size = zset.size + added.length
  if (size > config.number("zset-max-listpack-entries") || added.some((member) => member.length > longest)) {
    toTable(zset)
  }
}

const isInt64 = (text: string): boolean => {
  if (text.length > 20 || !/^(?:0|-?[1-9][0-9]*)$/.test(text)) return false
  if (text.length <= 18) return true
  const number = BigInt(text)
  return number <= MAX_INT64 && number >= MIN_INT64
}

export const encodingOf = (type: TypeName, value: ValueTypes[TypeName]): string => {
  if (typeof value === "string") return isInt64(value) ? "int" : value.length <= 44 ? "embstr" : "raw"
  if (type === "list") return "quicklist"
  if (type === "stream") return "stream"
  if (isTable(value)) return type === "zset" ? "skiplist" : "hashtable"
  return type === "set" ? "intset" : "listpack"
}
