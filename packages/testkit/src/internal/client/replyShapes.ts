/**
 * Converts RESP2 replies to the shapes that ioredis returns over RESP3, its default protocol: pairs for scores and
 * values, and alternating keys and values for maps. All other replies are the same in both protocols.
 */
import type { Reply } from "@effect-simba/fake-redis/Engine"

const scored = new Set([
  "ZRANGE",
  "ZREVRANGE",
  "ZRANGEBYSCORE",
  "ZREVRANGEBYSCORE",
  "ZRANDMEMBER",
  "ZUNION",
  "ZINTER",
  "ZDIFF"
])

const has = (args: ReadonlyArray<string>, word: string) => args.some((arg, i) => i > 0 && arg.toUpperCase() === word)

const toPairs = (flat: ReadonlyArray<Reply>): Reply =>
  Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, flat[2 * i + 1]!])

export const inResp3 = (command: string, args: ReadonlyArray<string>, reply: Reply): Reply => {
  if (!Array.isArray(reply)) return reply
  const name = command.toUpperCase()
  return name === "XREAD" || name === "XREADGROUP"
    ? reply.flat(1)
    : scored.has(name) && has(args, "WITHSCORES") ||
        (name === "ZPOPMIN" || name === "ZPOPMAX") && args.length > 1 ||
        name === "HRANDFIELD" && has(args, "WITHVALUES")
    ? toPairs(reply)
    : reply
}
