/**
 * What Redis reports about a command: arity, flags, categories, and the positions of its keys.
 */
import { commandSpecs } from "./commandSpecs.generated.ts"

/**
 * Where the keys begin: at an index, or after a keyword. The search for the keyword starts at `from` and runs backwards
 * if `from` is negative.
 */
type Begin =
  | { readonly _tag: "index"; readonly index: number }
  | { readonly _tag: "keyword"; readonly keyword: string; readonly from: number }
  | { readonly _tag: "unknown" }

/** Which of the following arguments are keys: a range, or as many as another argument specifies. */
type Find =
  | { readonly _tag: "range"; readonly last: number; readonly step: number; readonly limit: number }
  | { readonly _tag: "keynum"; readonly index: number; readonly first: number; readonly step: number }
  | { readonly _tag: "unknown" }

export interface KeySpec {
  readonly flags: ReadonlyArray<string>
  readonly begin: Begin
  readonly find: Find
}

export interface CommandSpec {
  /** The full name. A subcommand's name contains both parts: `client|kill`. */
  readonly name: string
  /**
   * The exact number of arguments if positive, the minimum if negative. Includes the command and subcommand names.
   */
  readonly arity: number
  readonly flags: ReadonlySet<string>
  readonly positions: readonly [first: number, last: number, step: number]
  readonly categories: ReadonlyArray<string>
  readonly tips: ReadonlyArray<string>
  readonly keys: ReadonlyArray<KeySpec>
  /** The group and version as COMMAND DOCS returns them: `string`, `1.0.0`. */
  readonly group: string
  readonly since: string
  readonly subcommands: ReadonlyMap<string, CommandSpec>
}

const words = (text: string): ReadonlyArray<string> => text === "" ? [] : text.split(" ")

const beginOf = (text: string): Begin => {
  const [first = "", second = ""] = text.slice(1).split(",")
  if (text.startsWith("i")) return { _tag: "index", index: Number(first) }
  return text.startsWith("k")
    ? { _tag: "keyword", keyword: first.toLowerCase(), from: Number(second) }
    : { _tag: "unknown" }
}

const findOf = (text: string): Find => {
  const [first = 0, second = 0, third = 0] = text.slice(1).split(",").map(Number)
  if (text.startsWith("r")) return { _tag: "range", last: first, step: second, limit: third }
  return text.startsWith("n") ? { _tag: "keynum", index: first, first: second, step: third } : { _tag: "unknown" }
}

const keySpec = (text: string): KeySpec => {
  const [flags = "", begin = "", find = ""] = text.split(":")
  return { flags: flags.split(","), begin: beginOf(begin), find: findOf(find) }
}

/** CLIENT SETINFO was added in Redis 7.2, but clients send it to every server. */
const later = "client setinfo|4|noscript loading stale|0,0,0|@slow @connection|||connection|7.2.0"

const read = (): ReadonlyMap<string, CommandSpec> => {
  const all = new Map<string, CommandSpec & { readonly subcommands: Map<string, CommandSpec> }>()
  for (const line of [...commandSpecs.split("\n"), later]) {
    const [
      full = "",
      arity,
      flags = "",
      positions = "",
      categories = "",
      tips = "",
      keys = "",
      group = "",
      since = ""
    ] = line.split("|")
    const [name = "", subcommand] = full.split(" ")
    const [first = 0, last = 0, step = 0] = positions.split(",").map(Number)
    const spec = {
      name: subcommand === undefined ? name : `${name}|${subcommand}`,
      arity: Number(arity),
      flags: new Set(words(flags)),
      positions: [first, last, step] as const,
      categories: words(categories),
      tips: words(tips),
      keys: words(keys).map(keySpec),
      group,
      since,
      subcommands: new Map<string, CommandSpec>()
    }
    if (subcommand === undefined) all.set(name, spec)
    else all.get(name)!.subcommands.set(subcommand, spec)
  }
  return all
}

const specs = read()

export const specOf = (name: string): CommandSpec | undefined => specs.get(name)

/** The categories that `ACL CAT` lists, without the `@`. */
export const CATEGORIES: ReadonlyArray<string> = [
  "keyspace",
  "read",
  "write",
  "set",
  "sortedset",
  "list",
  "hash",
  "string",
  "bitmap",
  "hyperloglog",
  "geo",
  "stream",
  "pubsub",
  "admin",
  "fast",
  "slow",
  "blocking",
  "dangerous",
  "connection",
  "transaction",
  "scripting"
]
