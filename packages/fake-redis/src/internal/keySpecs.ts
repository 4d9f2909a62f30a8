/** Determines which arguments of a command are keys, and how the command uses them. */
import type { CommandSpec, KeySpec } from "./commandSpec.ts"
import { parseInteger } from "./numbers.ts"

type Args = ReadonlyArray<string>

export interface KeyUse {
  readonly key: string
  /** The flags in COMMAND GETKEYSANDFLAGS: `RO`, `RW`, `OW` or `RM`, then `access`, `update`, `insert` or `delete`. */
  readonly flags: ReadonlyArray<string>
}

const beginning = ({ begin }: KeySpec, args: Args): number | undefined => {
  switch (begin._tag) {
    case "index":
      return begin.index
    case "keyword": {
      const step = begin.from < 0 ? -1 : 1
      const from = begin.from < 0 ? args.length + begin.from : begin.from
      for (let at = from; at > 0 && at < args.length - 1; at += step) {
        if (args[at]!.toLowerCase() === begin.keyword) return at + 1
      }
      return undefined
    }
    case "unknown":
      return undefined
  }
}

/**
 * The indices of a spec's keys. Returns `undefined` if the stated number of keys exceeds the arguments, or is less than
 * one.
 */
const positions = (spec: KeySpec, args: Args): ReadonlyArray<number> | undefined => {
  const begin = beginning(spec, args)
  if (begin === undefined) return []
  const { find } = spec
  let first = begin
  let last: number
  if (find._tag === "unknown") return []
  if (find._tag === "keynum") {
    const count = parseInteger(args[begin + find.index] ?? "") ?? 0
    first = begin + find.first
    last = first + (count - 1) * find.step
    if (count < 1 || last >= args.length) return undefined
  } else if (find.last >= 0) last = first + find.last
  else if (find.limit <= 1) last = args.length + find.last
  else last = first + Math.floor((args.length - first) / find.limit) * find.step + find.last
  const found: Array<number> = []
  for (let at = first; at <= Math.min(last, args.length - 1); at += find.step) found.push(at)
  return found
}

const accessOnly = ["RO", "access"]

/** How a command uses a key. For SET and BITFIELD, that depends on their options. */
const used = ({ name }: CommandSpec, { flags }: KeySpec, args: Args): ReadonlyArray<string> => {
  const has = (word: string) => args.some((arg) => arg.toLowerCase() === word)
  if (name === "set") return has("get") ? ["RW", "access", "update"] : ["OW", "update"]
  if (name === "bitfield") return has("set") || has("incrby") ? ["RW", "access", "update"] : accessOnly
  return flags
}

/** The key where SORT stores its result, if there is a STORE option. If there are several, the last one applies. */
const sorted = (args: Args): ReadonlyArray<KeyUse> => {
  const at = args.findLastIndex((arg, at) => at > 1 && arg.toLowerCase() === "store")
  return at >= 0 && at + 1 < args.length ? [{ key: args[at + 1]!, flags: ["OW", "update"] }] : []
}

/** Returns a command's keys and how it uses them, or `undefined` if its arguments are inconsistent. */
export const keyUses = (spec: CommandSpec, args: Args): ReadonlyArray<KeyUse> | undefined => {
  const uses: Array<KeyUse> = []
  for (const keySpec of spec.keys) {
    if (keySpec.flags.includes("not_key")) continue
    const found = positions(keySpec, args)
    if (found === undefined) return undefined
    const flags = used(spec, keySpec, args)
    for (const at of found) uses.push({ key: args[at]!, flags })
  }
  return spec.name === "sort" ? [...uses, ...sorted(args)] : uses
}

export const keysOf = (spec: CommandSpec, args: Args): ReadonlyArray<string> =>
  keyUses(spec, args)?.map(({ key }) => key) ?? []
