/**
 * Differences between the engine and redis-server 7.0.15 that are accepted, each with its reason.
 */
import type { Normal } from "./comparison.ts"
import { isList } from "./comparison.ts"

const STRINGS: ReadonlyArray<string> = ["raw", "embstr", "int"]
const TABLES: ReadonlyArray<string> = ["hashtable", "skiplist"]
const SCANS: ReadonlyArray<string> = ["SCAN", "SSCAN", "HSCAN", "ZSCAN"]

export interface Known {
  readonly name: string
  readonly reason: string
  /** `encoding`: what OBJECT ENCODING said before the command. */
  readonly matches: (args: ReadonlyArray<string>, real: Normal, fake: Normal, encoding: Normal) => boolean
}

export const known: ReadonlyArray<Known> = [
  {
    name: "what MEMORY USAGE says of a key that is there",
    reason: "It depends on the allocator of Redis; here it is an estimate.",
    matches: ([name, what], real, fake) =>
      name === "MEMORY" && what === "USAGE" && typeof real === "number" && typeof fake === "number"
  },
  {
    name: "OBJECT ENCODING of a value that was built in place",
    reason:
      "Redis says raw of a short string after APPEND or SETRANGE, int or embstr by how it was written, and hashtable of a " +
      "set of integers that SDIFFSTORE made by removing words; the engine does not remember how those came about.",
    matches: ([name, what], real, fake) =>
      name === "OBJECT" && what === "ENCODING" &&
      (real === "hashtable" ? fake === "intset" : STRINGS.includes(String(real)) && STRINGS.includes(String(fake)))
  },
  {
    name: "the order of SORT among elements of equal weight",
    reason: "Redis sorts with an algorithm that does not keep the order of equals.",
    matches: ([name, ...args], real, fake) =>
      (name === "SORT" || name === "SORT_RO") && args.includes("BY") && args.includes("ALPHA") && isList(real) &&
      isList(fake) && JSON.stringify(real.slice().sort()) === JSON.stringify(fake.slice().sort())
  },
  {
    name: "the order of a set that SORT leaves as it is",
    reason: "It is that of a hash table; here it is the order of insertion.",
    matches: ([name, ...args], real, fake) =>
      (name === "SORT" || name === "SORT_RO") && args.includes("nosort") && isList(real) && isList(fake) &&
      real.length === fake.length
  },
  {
    name: "the explanations of HELP",
    reason: "They are documentation of Redis; here HELP lists the subcommands.",
    matches: ([, what], real, fake) =>
      what?.toUpperCase() === "HELP" && isList(real) && isList(fake) && real[0] === fake[0]
  },
  {
    name: "what a geographic search finds beyond 80 degrees of latitude",
    reason: "Redis looks at nine cells of a grid, whose size it estimates, and leaves some out near the poles.",
    matches: ([name, , , latitude], real, fake) =>
      /^GEORADIUS(?:_RO)?$/.test(name!) && Math.abs(Number(latitude)) > 80 && isList(real) && isList(fake) &&
      real.length < fake.length
  },
  {
    name: "where a page of a table ends",
    reason:
      "The cursor is a position in the table of Redis and in an order of hashes here. `scans.ts` walks both to the end and " +
      "compares what they found; a compact collection comes in one page, which is compared.",
    matches: ([name, ...args], real, fake, encoding) =>
      SCANS.includes(name!) && isList(real) && isList(fake) &&
      (name === "SCAN" || TABLES.includes(String(encoding))) &&
      (real[0] !== "0" || fake[0] !== "0" || args[name === "SCAN" ? 0 : 1] !== "0")
  }
]
