/**
 * Where the keys of a command are among its arguments.
 */
import { parseInteger } from "./numbers.ts"

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "))

const keyless = words(
  "ping echo select auth hello quit reset client config info time wait role lastsave swapdb debug command multi exec " +
    "discard unwatch script publish subscribe psubscribe unsubscribe punsubscribe keys scan randomkey dbsize flushdb " +
    "flushall pubsub latency"
)
const every = words(
  "del unlink exists touch mget watch sinter sunion sdiff sinterstore sunionstore sdiffstore pfcount pfmerge " +
    "ssubscribe sunsubscribe"
)
const everyOther = words("mset msetnx")
const allButLast = words("blpop brpop bzpopmin bzpopmax")
const pair = words("rename renamenx copy lmove blmove rpoplpush brpoplpush smove zrangestore lcs geosearchstore")
const second = words("object xinfo xgroup memory")
const countFirst = words("zunion zinter zdiff zintercard sintercard lmpop zmpop")
const countSecond = words("eval evalsha eval_ro evalsha_ro blmpop bzmpop")
const destinationAndCount = words("zunionstore zinterstore zdiffstore")

const counted = (args: ReadonlyArray<string>, at: number): ReadonlyArray<string> | undefined => {
  const count = parseInteger(args[at] ?? "")
  return count === undefined || count < 0 || count > args.length - at - 1
    ? undefined
    : args.slice(at + 1, at + 1 + count)
}

const afterStreams = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const at = args.findIndex((arg) => arg.toLowerCase() === "streams")
  return at < 0 ? [] : args.slice(at + 1, at + 1 + Math.floor((args.length - at - 1) / 2))
}

/** `undefined` where the command says that there are more keys than arguments. */
export const keysOf = (args: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
  const name = args[0]!.toLowerCase()
  if (keyless.has(name)) return []
  if (every.has(name)) return args.slice(1)
  if (everyOther.has(name)) return args.filter((_, at) => at % 2 === 1)
  if (allButLast.has(name)) return args.slice(1, -1)
  if (pair.has(name)) return args.slice(1, 3)
  if (second.has(name)) return args.slice(2, 3)
  if (name === "bitop") return args.slice(2)
  if (countFirst.has(name)) return counted(args, 1)
  if (countSecond.has(name)) return counted(args, 2)
  if (destinationAndCount.has(name)) {
    const sources = counted(args, 2)
    return sources === undefined ? undefined : [args[1]!, ...sources]
  }
  if (name === "xread" || name === "xreadgroup") return afterStreams(args)
  return args.slice(1, 2)
}

export const hasNoKeys = (name: string): boolean => keyless.has(name)

/** First key, last key and step, as COMMAND INFO has them. */
export const positionsOf = (name: string): readonly [first: number, last: number, step: number] => {
  if (keyless.has(name) || name === "xread" || name === "xreadgroup") return [0, 0, 0]
  if (countFirst.has(name) || countSecond.has(name)) return [0, 0, 0]
  if (every.has(name)) return [1, -1, 1]
  if (everyOther.has(name)) return [1, -1, 2]
  if (allButLast.has(name)) return [1, -2, 1]
  if (pair.has(name)) return [1, 2, 1]
  if (second.has(name)) return [2, 2, 1]
  return name === "bitop" ? [2, -1, 1] : [1, 1, 1]
}
