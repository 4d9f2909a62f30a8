/**
 * Converts replies to the types that each protocol uses for a command. Commands return RESP2 types. For RESP3, lists
 * become maps, sets, pairs and doubles. For RESP2, some nils become nil lists.
 */
import type { Value } from "./reply.ts"
import { Dictionary, Double, isList, Members, NullList, Verbatim } from "./reply.ts"

type Args = ReadonlyArray<string>

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "))

const has = (args: Args, word: string): boolean => args.some((arg, at) => at > 0 && arg.toLowerCase() === word)

const nullLists = words("exec blpop brpop blmpop lmpop bzpopmin bzpopmax zmpop bzmpop xread xreadgroup")
const maps = words("hgetall hello")
const sets = words("smembers sinter sunion sdiff")
const doubles = words("zscore zincrby")
const scored = words(
  "zrange zrevrange zrangebyscore zrevrangebyscore zrandmember zunion zinter zdiff"
)

const double = (value: Value): Value => typeof value === "string" ? new Double(value) : value

const pairsOf = (items: ReadonlyArray<Value>, change: (value: Value) => Value): Value =>
  Array.from({ length: items.length / 2 }, (_, at) => [items[2 * at]!, change(items[2 * at + 1]!)])

const mapOf = (value: Value): Value => isList(value) ? new Dictionary(value) : value

const same = (value: Value): Value => value

/** Converts XINFO's nested lists to maps: streams contain groups, and groups contain consumers. */
const info = (value: Value): Value => {
  if (!isList(value) || value.length === 0) return value
  if (isList(value[0] ?? null)) return value.map(info)
  return new Dictionary(value.map((item, at) => {
    const name = at % 2 === 0 ? undefined : value[at - 1]
    return name === "groups" || name === "consumers" ? info(item) : item
  }))
}

const popped = (value: Value): Value =>
  isList(value) && isList(value[1]!)
    ? [value[0]!, value[1].map((item) => isList(item) ? [item[0]!, double(item[1]!)] : item)]
    : value

const coordinates = (value: Value): Value => isList(value) ? value.map(double) : value

const config = (args: Args): boolean => args[1]?.toLowerCase() === "get"

const inList3 = (name: string, args: Args, value: ReadonlyArray<Value>): Value => {
  if (maps.has(name)) return mapOf(value)
  if (sets.has(name) || name === "spop") return new Members(value)
  if (scored.has(name)) return has(args, "withscores") ? pairsOf(value, double) : value
  switch (name) {
    case "hrandfield":
      return has(args, "withvalues") ? pairsOf(value, same) : value
    case "zpopmin":
    case "zpopmax":
      return args.length > 2 ? pairsOf(value, double) : value.map((item, at) => at === 1 ? double(item) : item)
    case "bzpopmin":
    case "bzpopmax":
      return [value[0]!, value[1]!, double(value[2]!)]
    case "zmpop":
    case "bzmpop":
      return popped(value)
    case "zmscore":
      return value.map(double)
    case "geopos":
      return value.map(coordinates)
    case "geosearch":
    case "georadius_ro":
    case "georadiusbymember_ro":
      return has(args, "withcoord")
        ? value.map((item) => isList(item) ? item.map((inner) => isList(inner) ? coordinates(inner) : inner) : item)
        : value
    case "config":
      return config(args) ? mapOf(value) : value
    case "client":
      return args[1]!.toLowerCase() === "trackinginfo"
        ? new Dictionary(value.map((item, at) => at === 1 && isList(item) ? new Members(item) : item))
        : value
    case "xread":
    case "xreadgroup":
      return new Dictionary(value.flatMap((item) => item as ReadonlyArray<Value>))
    case "xinfo":
      return info(value)
    case "lcs":
      return mapOf(value)
    case "command":
      return args[1]?.toLowerCase() === "docs" ? mapOf(value) : value
    default:
      return value
  }
}

const isVerbatim = (name: string, args: Args): boolean =>
  name === "info" || name === "client" && (args[1]!.toLowerCase() === "list" || args[1]!.toLowerCase() === "info") ||
  name === "latency" && args[1]!.toLowerCase() === "doctor" || name === "memory" && args[1]!.toLowerCase() === "doctor"

/** Converts the reply to a command to the given protocol. */
export const shape = (protocol: 2 | 3, args: Args, value: Value): Value => {
  const name = args[0]!.toLowerCase()
  if (protocol === 2) {
    if (value !== null) return value
    const counted = (name === "lpop" || name === "rpop") && args.length > 2
    return nullLists.has(name) || counted ? new NullList() : value
  }
  if (isList(value)) return inList3(name, args, value)
  if (typeof value !== "string") return value
  if (doubles.has(name) || name === "zadd") return new Double(value)
  return isVerbatim(name, args) ? new Verbatim(value) : value
}
