/**
 * Accepted differences between the engine and redis-server 7.0.15, each with its reason.
 */
import type { Normal } from "./comparison.ts"
import { isList } from "./comparison.ts"

const STRINGS: ReadonlyArray<string> = ["raw", "embstr", "int"]
const TABLES: ReadonlyArray<string> = ["hashtable", "skiplist"]
const SCANS: ReadonlyArray<string> = ["SCAN", "SSCAN", "HSCAN", "ZSCAN"]

export interface Known {
  readonly name: string
  readonly reason: string
  /** Whether this entry explains a difference. `encoding` is the latest reply to OBJECT ENCODING before the command. */
  readonly matches: (args: ReadonlyArray<string>, real: Normal, fake: Normal, encoding: Normal) => boolean
}

export const known: ReadonlyArray<Known> = [
  {
    name: "the reply to MEMORY USAGE for an existing key",
    reason: "It depends on Redis's allocator. The engine returns an estimate.",
    matches: ([name, what], real, fake) =>
      name === "MEMORY" && what === "USAGE" && typeof real === "number" && typeof fake === "number"
  },
  {
    name: "OBJECT ENCODING of a value that was modified in place",
    reason:
      "Redis reports raw for a short string after APPEND or SETRANGE, int or embstr depending on how it was written, and " +
      "hashtable for a set of integers that SDIFFSTORE made by removing words. The engine does not track these cases.",
    matches: ([name, what], real, fake) =>
      name === "OBJECT" && what === "ENCODING" &&
      (real === "hashtable" ? fake === "intset" : STRINGS.includes(String(real)) && STRINGS.includes(String(fake)))
  },
  {
    name: "the order in which SORT returns elements of equal weight",
    reason: "Redis uses an unstable sort.",
    matches: ([name, ...args], real, fake) =>
      (name === "SORT" || name === "SORT_RO") && args.includes("BY") && args.includes("ALPHA") && isList(real) &&
      isList(fake) && JSON.stringify(real.slice().sort()) === JSON.stringify(fake.slice().sort())
  },
  {
    name: "the order in which SORT BY nosort returns a set",
    reason: "Redis returns them in hash table order, and the engine in insertion order.",
    matches: ([name, ...args], real, fake) =>
      (name === "SORT" || name === "SORT_RO") && args.includes("nosort") && isList(real) && isList(fake) &&
      real.length === fake.length
  },
  {
    name: "the text of HELP",
    reason: "It documents Redis. The engine lists the subcommands.",
    matches: ([, what], real, fake) =>
      what?.toUpperCase() === "HELP" && isList(real) && isList(fake) && real[0] === fake[0]
  },
  {
    name: "the results of a geographic search beyond 80 degrees of latitude",
    reason: "Redis searches nine cells of a grid whose size it estimates, and misses some near the poles.",
    matches: ([name, , , latitude], real, fake) =>
      /^GEORADIUS(?:_RO)?$/.test(name!) && Math.abs(Number(latitude)) > 80 && isList(real) && isList(fake) &&
      real.length < fake.length
  },
  {
    name: "the page boundaries of a scan",
    reason:
      "A cursor is a position: in a hash table in Redis, in an order of hashes in the engine. `scans.ts` compares the " +
      "results of complete scans. The single page of a compact collection is compared here.",
    matches: ([name, ...args], real, fake, encoding) =>
      SCANS.includes(name!) && isList(real) && isList(fake) &&
      (name === "SCAN" || TABLES.includes(String(encoding))) &&
      (real[0] !== "0" || fake[0] !== "0" || args[name === "SCAN" ? 0 : 1] !== "0")
  }
]
