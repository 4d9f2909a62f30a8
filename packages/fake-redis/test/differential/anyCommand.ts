/**
 * Draws a random command with random arguments. Where the command's spec expects keys, the arguments are keys; all
 * others are words from its command group. Both servers reject most of these commands, and must do so with the same
 * error.
 */
import { specOf } from "../../src/internal/commandSpec.ts"
import { commands } from "../../src/internal/commandTable.ts"
import { choices } from "./choices.ts"
import type { Draw } from "./draw.ts"

/**
 * Commands that are not drawn here, with the reason. For most of them, `templates.ts` has arguments for which both
 * servers must return the same reply.
 */
const elsewhere: Readonly<Record<string, string>> = {
  "blpop brpop blmove brpoplpush blmpop bzpopmin bzpopmax bzmpop wait": "may block forever",
  "subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe monitor auth hello quit reset client":
    "changes the connection's mode",
  "config acl flushall flushdb debug": "changes the server for all later commands",
  "randomkey spop srandmember hrandfield zrandmember": "returns random replies",
  "lastsave time info memory latency slowlog command object dump restore": "describes the server itself",
  "expire pexpire expireat pexpireat set setex psetex getex": "makes later replies depend on time",
  "georadius georadius_ro georadiusbymember georadiusbymember_ro geosearch sort sort_ro":
    "has a defined order only with some options",
  "scan hscan sscan zscan": "returns pages that may end anywhere",
  "eval eval_ro evalsha evalsha_ro fcall fcall_ro": "runs scripts, which the generator draws separately"
}
const notHere = new Set(Object.keys(elsewhere).flatMap((names) => names.split(" ")))

const names = [...commands.keys()].filter((name) => !notHere.has(name))

const keysOfGroup: Readonly<Record<string, string>> = {
  string: "s",
  bitmap: "s",
  hyperloglog: "s",
  hash: "h",
  list: "l",
  set: "t",
  "sorted-set": "z",
  geo: "z",
  stream: "x"
}

const wordsOfGroup: Readonly<Record<string, string>> = {
  string: "NX XX GET IDX LEN WITHMATCHLEN MINMATCHLEN",
  bitmap: "AND OR XOR NOT BYTE BIT GET SET INCRBY OVERFLOW SAT u8 i5 #1",
  hash: "f1 f2",
  list: "LEFT RIGHT BEFORE AFTER RANK COUNT MAXLEN a b",
  set: "LIMIT a b",
  "sorted-set":
    "WITHSCORES LIMIT BYSCORE BYLEX REV WEIGHTS AGGREGATE MIN MAX SUM NX XX GT LT CH INCR COUNT - + [a (b (1 inf a b",
  geo: "a b m km WITHSCORES NX CH 13.3 38.1",
  stream:
    "STREAMS GROUP COUNT NOACK MAXLEN MINID ~ = LIMIT NOMKSTREAM MKSTREAM ENTRIESREAD JUSTID FORCE IDLE RETRYCOUNT LASTID " +
    "ENTRIESADDED MAXDELETEDID FULL CREATE SETID DESTROY CREATECONSUMER DELCONSUMER STREAM GROUPS CONSUMERS $ > - + * 0 1-1 g1 c1",
  pubsub: "CHANNELS NUMSUB NUMPAT SHARDCHANNELS SHARDNUMSUB HELP",
  scripting: "EXISTS FLUSH LOAD KILL LIST STATS DELETE ASYNC SYNC WITHCODE LIBRARYNAME",
  generic: "REPLACE DB NX COPY"
}
const words = new Map(Object.entries(wordsOfGroup).map(([group, text]) => [group, text.split(" ")]))

const pick = <A>(draw: Draw, items: ReadonlyArray<A>): A => items[Math.floor(draw() * items.length)]!

const groups = ["s", "h", "l", "z", "t", "x"]

export const anyCommand = (draw: Draw): ReadonlyArray<string> => {
  const name = pick(draw, names)
  const { arity, group, positions: [first, last, step] } = specOf(name)!
  const least = Math.abs(arity) - 1
  const count = Math.max(
    0,
    arity > 0 ? least + (draw() < 0.05 ? 1 : draw() < 0.05 ? -1 : 0) : least + Math.floor(draw() * 5)
  )
  const isKey = (at: number) =>
    first > 0 && at >= first && (at - first) % step === 0 && at <= (last < 0 ? count + 1 + last : last)
  const own = keysOfGroup[group]
  const argument = (at: number): string => {
    if (isKey(at) || draw() < 0.1) {
      return pick(draw, choices[own !== undefined && draw() < 0.8 ? own : pick(draw, groups)]!)
    }
    const some = words.get(group)
    if (some !== undefined && draw() < 0.5) return pick(draw, some)
    return pick(draw, choices[pick(draw, ["int", "i", "i", "m", "v", "sc"])]!)
  }
  return [name.toUpperCase(), ...Array.from({ length: count }, (_, index) => argument(index + 1))]
}
