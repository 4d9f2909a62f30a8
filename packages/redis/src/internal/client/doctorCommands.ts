/**
 * The commands that the doctor tries on a server: all commands used by the stores and their scripts, with the options
 * introduced in Redis 6.2.
 */

export type Command = readonly [name: string, ...args: ReadonlyArray<string>]

/** Every key that these commands write expires, because the server may refuse the command that deletes it. */
export const mutexCommands = (key: string, inbox: string): ReadonlyArray<Command> => [
  ["SET", key, "doctor", "PX", "5000", "GET"],
  ["GET", key],
  ["EXISTS", key],
  ["PTTL", key],
  ["PEXPIRE", key, "5000"],
  ["ZADD", `${key}:contender`, "1", "doctor"],
  ["PEXPIRE", `${key}:contender`, "5000"],
  ["ZCARD", `${key}:contender`],
  ["ZRANGE", `${key}:contender`, "0", "-1"],
  ["ZRANK", `${key}:contender`, "doctor"],
  ["ZSCORE", `${key}:contender`, "doctor"],
  ["ZREM", `${key}:contender`, "doctor"],
  ["HSET", `${key}:jobs`, "at:doctor", "1"],
  ["PEXPIRE", `${key}:jobs`, "5000"],
  ["HGET", `${key}:jobs`, "at:doctor"],
  ["HEXISTS", `${key}:jobs`, "paused"],
  ["HKEYS", `${key}:jobs`],
  ["HGETALL", `${key}:jobs`],
  ["HINCRBY", `${key}:jobs`, "missed:doctor", "1"],
  ["HDEL", `${key}:jobs`, "at:doctor"],
  ["PERSIST", `${key}:jobs`],
  ["PEXPIREAT", `${key}:jobs`, "1"],
  ["DEL", key, `${key}:contender`, `${key}:jobs`],
  ["TIME"],
  ["SCAN", "0", "COUNT", "1"],
  ["SCRIPT", "LOAD", "return 1"],
  ["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "1", key],
  ["EVAL", "return 1", "1", key],
  ["PUBLISH", key, "doctor"],
  ["PUBLISH", inbox, "doctor"],
  ["PUBSUB", "NUMSUB", key]
]

export const streamCommands = (stream: string): ReadonlyArray<Command> => {
  const group = "doctor-group"
  const members = `${stream}:members`
  const failures = `${stream}:failures`
  return [
    ["XGROUP", "CREATE", stream, group, "0", "MKSTREAM"],
    ["PEXPIRE", stream, "5000"],
    ["XADD", stream, "1-1", "lbs-input", "{}"],
    ["XLEN", stream],
    ["XRANGE", stream, "(0", "+", "COUNT", "1"],
    ["XREADGROUP", "GROUP", group, "doctor", "COUNT", "1", "STREAMS", stream, ">"],
    ["XREAD", "COUNT", "1", "STREAMS", stream, "0"],
    ["XCLAIM", stream, group, "doctor", "0", "1-1", "JUSTID"],
    ["XPENDING", stream, group, "IDLE", "0", "-", "+", "1"],
    ["XINFO", "GROUPS", stream],
    ["XINFO", "CONSUMERS", stream, group],
    ["XINFO", "STREAM", stream],
    ["XACK", stream, group, "1-1"],
    ["XDEL", stream, "1-1"],
    ["XGROUP", "CREATECONSUMER", stream, group, "doctor"],
    ["XGROUP", "DELCONSUMER", stream, group, "doctor"],
    ["ZADD", members, "1", "doctor"],
    ["PEXPIRE", members, "5000"],
    ["ZRANGEBYSCORE", members, "0", "1"],
    ["ZREMRANGEBYSCORE", members, "0", "1"],
    ["HSET", failures, "doctor", "1"],
    ["PEXPIRE", failures, "5000"],
    ["HGET", failures, "doctor"],
    ["HMGET", failures, "doctor"],
    ["HGETALL", failures],
    ["HLEN", failures],
    ["HKEYS", failures],
    ["HSCAN", failures, "0"],
    ["HDEL", failures, "doctor"],
    ["MGET", stream],
    ["CLIENT", "ID"],
    ["CLIENT", "INFO"],
    ["CLIENT", "UNBLOCK", "0"],
    ["DEL", stream, members, failures]
  ]
}
