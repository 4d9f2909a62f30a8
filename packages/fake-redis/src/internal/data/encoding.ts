/**
 * The encoding that OBJECT ENCODING reports: of the value as it is now, since how it came about is not remembered. A
 * compact one also decides that HSCAN, SSCAN and ZSCAN return everything in one page.
 */
import type { Config } from "../config.ts"
import { MAX_INT64, MIN_INT64 } from "../numbers.ts"
import type { SortedSet } from "./sortedSet.ts"
import type { TypeName, ValueTypes } from "./values.ts"

export const isIntset = (set: ReadonlySet<string>, config: Config): boolean =>
  set.size <= config.number("set-max-intset-entries") && Array.from(set).every(isInt64)

export const isHashListpack = (hash: ReadonlyMap<string, string>, config: Config): boolean => {
  const longest = config.number("hash-max-listpack-value")
  return hash.size <= config.number("hash-max-listpack-entries") &&
    Array.from(hash).every(([field, value]) => field.length <= longest && value.length <= longest)
}

export const isSortedSetListpack = (zset: SortedSet, config: Config): boolean => {
  const longest = config.number("zset-max-listpack-value")
  return !zset.isUnpacked && zset.size <= config.number("zset-max-listpack-entries") &&
    zset.order.every(({ member }) => member.length <= longest)
}

const isInt64 = (text: string): boolean => {
  if (text.length > 20 || !/^(?:0|-?[1-9][0-9]*)$/.test(text)) return false
  const number = BigInt(text)
  return number <= MAX_INT64 && number >= MIN_INT64
}

export const encodingOf = <T extends TypeName>(type: T, value: ValueTypes[TypeName], config: Config): string => {
  if (typeof value === "string") return isInt64(value) ? "int" : value.length <= 44 ? "embstr" : "raw"
  if (value instanceof Set) return isIntset(value, config) ? "intset" : "hashtable"
  if (value instanceof Map) return isHashListpack(value, config) ? "listpack" : "hashtable"
  if (type === "list") return "quicklist"
  if (type === "stream") return "stream"
  return isSortedSetListpack(value as SortedSet, config) ? "listpack" : "skiplist"
}
