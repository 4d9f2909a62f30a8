/**
 * Random command sequences as a function of a seed. Few keys, members and consumers, so that commands meet.
 */
export type Draw = () => number

/** mulberry32 */
export const makeDraw = (seed: number): Draw => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

const choices: Readonly<Record<string, ReadonlyArray<string>>> = {
  s: ["s1", "s2", "s3"],
  h: ["h1", "h2"],
  l: ["l1", "l2"],
  z: ["z1", "z2", "z3"],
  t: ["t1", "t2", "t3"],
  x: ["x1", "x2"],
  v: [
    "",
    "a",
    "b",
    "hello",
    "10",
    "-5",
    "3.7",
    "1e3",
    "9223372036854775807",
    "-9223372036854775808",
    "0x10",
    "é√",
    " 7",
    "007",
    "x y"
  ],
  int: [
    "0",
    "1",
    "2",
    "-1",
    "-3",
    "5",
    "10",
    "100",
    "9223372036854775807",
    "-9223372036854775808",
    "3.5",
    "abc",
    "9007199254740993"
  ],
  i: ["0", "1", "2", "3", "-1", "-2", "-4", "5", "100"],
  p: ["1", "2", "3", "5", "100"],
  float: ["0", "0.1", "1.5", "-2.25", "3.7", "1e3", "-0.3", "10", "1e17", "inf", "abc", "nan", "123456.789", "0x1p3"],
  f: ["f1", "f2", "f3", "1", "é"],
  m: ["a", "b", "c", "d", "e", "1", "2", "3.5", "aa", ""],
  sc: ["0", "1", "2", "-1", "1.5", "3.7", "0.1", "inf", "-inf", "1e20", "5", "+2", "0x10", "abc", "nan", "-0"],
  sb: ["-inf", "+inf", "0", "1", "2", "(1", "(2", "-1", "1.5", "(inf", "abc", "("],
  lb: ["-", "+", "[a", "(a", "[c", "(c", "[", "(", "a", "[e"],
  id: [
    "0",
    "1",
    "2",
    "3",
    "5-1",
    "5-2",
    "7",
    "0-0",
    "0-1",
    "1-1",
    "10",
    "abc",
    "18446744073709551615",
    "1-18446744073709551615"
  ],
  r: ["-", "+", "0", "1", "2", "3", "(1", "(2-1", "5-1", "5", "(", "7", "(0-0", "-5"],
  g: ["g1", "g2"],
  c: ["c1", "c2", "c3"],
  ttl: ["100000", "200000", "500000", "100000", "0", "-1", "abc", "9223372036854775807"],
  at: ["4000000000", "5000000000", "1", "0", "-1"],
  glob: ["*", "s*", "?1", "[hl]*", "[^s]?", "t[1-2]", "\\s1", "x", "*1*", "[a", "["],
  pos: ["LEFT", "RIGHT", "left", "MIDDLE"]
}

/** `{name}` draws from the choices, `<a|b|>` takes one of the alternatives; a word that becomes empty by that goes. */
const templates: ReadonlyArray<string> = `
SET {s} {v}|3
SET {s} {v} <NX|XX|GET|KEEPTTL|NX GET|XX GET|GET KEEPTTL>
SET {s} {v} <PX|EX> {ttl}
SET {k} {v} PXAT <4000000000000|0|abc> <NX|XX|GET|KEEPTTL|>
SET {k} {v} EXAT <5000000000|0|abc> <NX|XX|GET|>
SETNX {k} {v}
SETEX {s} {ttl} {v}
PSETEX {s} {ttl} {v}
GET {s}|3
GET {k}
GETSET {s} {v}
GETDEL {s}
GETEX {s} <PERSIST|PX 100000|EX 100|PX 0|EX abc|PXAT 4000000000000|>
MGET {s} {s} {k}
MSET {s} {v} {s} {v}
MSETNX {s} {v} {k} {v}
APPEND {s} {v}
STRLEN {s}
GETRANGE {s} {i} {i}
SETRANGE {s} <0|1|3|-1|7> {v}
INCR {s}|2
DECR {s}
INCRBY {s} {int}
DECRBY {s} {int}
INCRBYFLOAT {s} {float}
DEL {k}|2
DEL {k} {k}
UNLINK {k}
EXISTS {k} {k}
TYPE {k}
TOUCH {k} {k}
EXPIRE {k} {ttl} <NX|XX|GT|LT|>
PEXPIRE {k} {ttl} <NX|XX|GT|LT|XX GT|NX XX|GT LT|foo|>
EXPIREAT {k} {at} <NX|XX|GT|LT|>
PEXPIREAT {k} <4000000000000|4100000000000|1> <NX|XX|GT|LT|>
TTL {k}
PTTL {k}
EXPIRETIME {k}
PEXPIRETIME {k}
PERSIST {k}
RENAME {k} {k}
RENAMENX {k} {k}
KEYS {glob}
SCAN 0 COUNT 1000 MATCH {glob}
SCAN 0 COUNT 1000 TYPE <string|list|zset|foo>
DBSIZE
COPY {k} {k} <REPLACE|DB 1|DB 1 REPLACE|>
MOVE {k} <1|0|99|abc>
OBJECT ENCODING {s}
HSET {h} {f} {v}|3
HSET {h} {f} {v} {f} {v}
HMSET {h} {f} {v}
HGET {h} {f}|2
HMGET {h} {f} {f}
HGETALL {h}
HDEL {h} {f} {f}
HEXISTS {h} {f}
HKEYS {h}
HVALS {h}
HLEN {h}
HSTRLEN {h} {f}
HINCRBY {h} {f} {int}
HINCRBYFLOAT {h} {f} {float}
HSETNX {h} {f} {v}
HSCAN {h} 0 COUNT 1000
LPUSH {l} {m} {m}|2
RPUSH {l} {m} {m}|2
LPUSHX {l} {m}
RPUSHX {l} {m}
LPOP {l} <{i}|>
RPOP {l} <{i}|>
LLEN {l}
LRANGE {l} {i} {i}
LINDEX {l} {i}
LSET {l} {i} {m}
LREM {l} {i} {m}
LTRIM {l} {i} {i}
LINSERT {l} <BEFORE|AFTER|foo> {m} {m}
LPOS {l} {m} <RANK {i}|COUNT {i}|MAXLEN {i}|RANK -1 COUNT 2|RANK 2 MAXLEN 3|>
LMOVE {l} {l} {pos} {pos}
RPOPLPUSH {l} {l}
LMPOP <1|2> {l} {l} {pos} <COUNT {i}|>
LMPOP 1 {l} LEFT <COUNT {i}|>
SADD {t} {m} {m}|3
SREM {t} {m}
SMEMBERS {t}
SISMEMBER {t} {m}
SMISMEMBER {t} {m} {m}
SCARD {t}
SPOP {t} <100|0|-1>
SRANDMEMBER {t} <100|0>
SMOVE {t} {t} {m}
SINTER {t} {t}
SUNION {t} {t}
SDIFF {t} {t}
SINTERSTORE {t} {t} {t}
SUNIONSTORE {k} {t} {t}
SDIFFSTORE {t} {t} {t}
SINTERCARD 2 {t} {t} <LIMIT {i}|>
SSCAN {t} 0 COUNT 1000
ZADD {z} {sc} {m}|3
ZADD {z} {sc} {m} {sc} {m}
ZADD {z} <NX|XX|GT|LT|CH|NX CH|XX GT|GT LT|NX XX|XX LT CH> {sc} {m}
ZADD {z} INCR {sc} {m}
ZADD {z} <NX|XX|GT> INCR {sc} {m}
ZREM {z} {m}
ZSCORE {z} {m}
ZMSCORE {z} {m} {m}
ZCARD {z}
ZCOUNT {z} {sb} {sb}
ZRANK {z} {m}
ZREVRANK {z} {m}
ZINCRBY {z} {sc} {m}
ZRANGE {z} {i} {i} <REV|WITHSCORES|REV WITHSCORES|>
ZRANGE {z} {sb} {sb} BYSCORE <REV|WITHSCORES|LIMIT {i} {i}|REV LIMIT 0 2 WITHSCORES|>
ZRANGE {z} {lb} {lb} BYLEX <REV|LIMIT {i} {i}|WITHSCORES|>
ZRANGE {z} 0 -1 LIMIT 0 1
ZREVRANGE {z} {i} {i} <WITHSCORES|>
ZRANGEBYSCORE {z} {sb} {sb} <WITHSCORES|LIMIT {i} {i}|WITHSCORES LIMIT 0 2|>
ZREVRANGEBYSCORE {z} {sb} {sb} <WITHSCORES|LIMIT {i} {i}|>
ZRANGEBYLEX {z} {lb} {lb} <LIMIT {i} {i}|>
ZREVRANGEBYLEX {z} {lb} {lb}
ZLEXCOUNT {z} {lb} {lb}
ZREMRANGEBYRANK {z} {i} {i}
ZREMRANGEBYSCORE {z} {sb} {sb}
ZREMRANGEBYLEX {z} {lb} {lb}
ZPOPMIN {z} <{i}|>
ZPOPMAX {z} <{i}|>
ZRANGESTORE {z} {z} {i} {i} <REV|>
ZRANGESTORE {z} {z} {sb} {sb} BYSCORE <LIMIT 0 1|>
ZUNIONSTORE {z} 2 {z} {z} <WEIGHTS 2 3|AGGREGATE MAX|WEIGHTS 1.5 -1 AGGREGATE MIN|>
ZUNIONSTORE {z} <0|3|abc> {z} {t}
ZINTERSTORE {z} 2 {z} <{z}|{t}> <WEIGHTS 2 abc|AGGREGATE foo|AGGREGATE SUM|>
ZUNION 2 {z} {z} <WITHSCORES|>
ZDIFF 2 {z} {z} <WITHSCORES|>
ZSCAN {z} 0 COUNT 1000
XADD {x} <NOMKSTREAM|MAXLEN 3|MAXLEN = 2|MINID 3|MAXLEN ~ 2|MAXLEN 5 LIMIT 3|MAXLEN ~ 5 LIMIT 3|> {newid} a {v}|4
XADD {x} {id} a
XADD {x} {id} {f} {v}
XADD {x} <5-*|6-*|abc-*> a {v}
XLEN {x}
XRANGE {x} {r} {r} <COUNT {i}|>
XREVRANGE {x} {r} {r} <COUNT {i}|>
XREAD <COUNT 2|> STREAMS {x} {id}
XREAD STREAMS {x} {x} 0 {id}
XREAD STREAMS {x} {x} 0
XREAD STREAMS {x} $
XREAD STREAMS {x} >
XDEL {x} {id} {id}
XDEL {x} {newid}
XTRIM {x} <MAXLEN 3|MAXLEN ~ 3|MINID 2|MAXLEN -1|MAXLEN 4 MINID 3|MAXLEN|LIMIT 3|MINID = abc>
XSETID {x} {newid} <ENTRIESADDED 100 MAXDELETEDID 1|ENTRIESADDED 1|>
XGROUP CREATE {x} {g} <0|$|1|abc> <MKSTREAM|ENTRIESREAD 2|MKSTREAM ENTRIESREAD -1|foo|>|2
XGROUP SETID {x} {g} <0|$|2> <ENTRIESREAD 3|>
XGROUP DESTROY {x} {g}
XGROUP CREATECONSUMER {x} {g} {c}
XGROUP DELCONSUMER {x} {g} {c}
XREADGROUP GROUP {g} {c} <COUNT 2|COUNT 1|NOACK|> STREAMS {x} >|4
XREADGROUP GROUP {g} {c} COUNT 2 STREAMS {x} <0|1|{id}|$>
XREADGROUP GROUP {g} {c} STREAMS {x} {x} > 0
XACK {x} {g} {id} {newid}|2
XPENDING {x} {g}
XPENDING {x} {g} <IDLE 0|IDLE 10000000|> {r} {r} 10 <{c}|>
XCLAIM {x} {g} {c} 0 {id} {newid} <JUSTID|FORCE|IDLE 5000|TIME 1000|RETRYCOUNT 7|FORCE JUSTID|LASTID 9|foo|>
XCLAIM {x} {g} {c} 100000000 {id}
XAUTOCLAIM {x} {g} {c} <0|100000000|abc> {r} <COUNT 2|JUSTID|COUNT 0|>
XINFO STREAM {x}
XINFO STREAM {x} FULL
XINFO GROUPS {x}
XINFO CONSUMERS {x} {g}
MULTI
MULTI
EXEC|3
DISCARD
WATCH {k}
UNWATCH
SELECT <0|1|0|99|abc>
PING
PING hello
ECHO {v}
PUBLISH ch {v}
PUBSUB CHANNELS
PUBSUB NUMSUB a b
PUBSUB NUMPAT
FLUSHDB
SCRIPT EXISTS abc
NOSUCH a b
CLIENT GETNAME
CONFIG GET maxmemory-policy
CONFIG SET notify-keyspace-events <KEx|AKE|KEA|foo|>
CONFIG GET notify-keyspace-events
SWAPDB 0 1
WAIT 0 0
OBJECT REFCOUNT nokey
`.trim().split("\n")

const scripts: ReadonlyArray<string> = [
  "return ARGV[1]",
  "return {KEYS[1], ARGV[1], #ARGV}",
  "return tonumber(ARGV[1])",
  "return tostring(tonumber(ARGV[1]))",
  "return redis.call('set', KEYS[1], ARGV[1])",
  "return redis.call('get', KEYS[1])",
  "return redis.pcall('incr', KEYS[1])",
  "return redis.call('incr', KEYS[1])",
  "return redis.call('incrby', KEYS[1], ARGV[1])",
  "return redis.call('hset', KEYS[1], 'f1', tonumber(ARGV[1]) or 0)",
  "return {1, 2, nil, 4}",
  "return {1.9, -1.9, 'a', false, true}",
  "return 10/3",
  "return tostring(10/3)",
  "return '@@' .. redis.call('exists', KEYS[1])",
  "return type(redis.call('get', KEYS[1]))",
  "return redis.status_reply(ARGV[1])",
  "return redis.error_reply(ARGV[1])",
  "return {ok='fine'}",
  "return {err='BAD thing'}",
  "local r = redis.pcall('lpush', KEYS[1], ARGV[1]) if type(r) == 'table' then return r.err end return r",
  "local ok, e = pcall(redis.call, 'zadd', KEYS[1], ARGV[1], 'm') return {tostring(ok), e}",
  "local t = redis.call('smembers', KEYS[1]) table.sort(t) return t",
  "return redis.call('zrange', KEYS[1], 0, -1, 'withscores')",
  "return cjson.encode({a = ARGV[1]})",
  "return cjson.encode({tonumber(ARGV[1]) or 'none', {}, true, cjson.null})",
  "return cjson.decode('[1,2.5,\"x\",null,true,{\"a\":1}]')",
  "return cjson.encode(cjson.decode('{\"a\":[],\"b\":{},\"c\":[1,[2]]}').c)",
  "return redis.sha1hex(ARGV[1])",
  "return string.format('%d %s %5.2f %x', tonumber(ARGV[1]) or 7, 'q', 3.14159, 255)",
  "return string.format('%.0f', 1763678096123456)",
  "return tostring(1763678096123456)",
  "return 1763678096123456",
  "return 1763678096 * 1000",
  "return redis.call('set', KEYS[1], 3.7)",
  "return redis.call('set', KEYS[1], 1763678096123456)",
  "return redis.call('set', KEYS[1], 1e17)",
  "return redis.call('set', KEYS[1], 1/0)",
  "return nosuchglobal",
  "globalvar = 1",
  "error('boom')",
  "error({err='My boom'})",
  "return redis.call('nosuch')",
  "return redis.call('get')",
  "return redis.call('multi')",
  "return redis.call('set', KEYS[1], {})",
  "return #redis.call('keys', '*')",
  "return {tostring(bit.band(255, 15)), bit.lshift(1, 31), bit.tohex(-1), bit.bxor(5, 3), bit.rshift(-1, 1)}",
  "return unpack({1, 2, 3})",
  "return {string.rep('ab', 3), string.sub('hello', -3), string.upper('é'), #'é'}",
  "local a = {} for k, v in string.gmatch('a=1,b=2', '(%w+)=(%w+)') do a[#a + 1] = k .. v end return a",
  "return table.concat({1, 2, 'x'}, '-')",
  "return {tostring(nil), tostring(true), tostring(0/0 ~= 0/0), math.floor(-1.5), math.max(1, 5)}",
  "return redis.call('pexpire', KEYS[1], 100000)",
  "return tostring(redis.call('pttl', KEYS[1]) > 0)",
  "redis.call('select', 1) return redis.call('set', KEYS[1], ARGV[1])",
  "return redis.call('blpop', KEYS[1], 0)",
  "return redis.call('xadd', KEYS[1], '0-1', 'a', ARGV[1])",
  "return redis.call('xlen', KEYS[1])",
  "return {redis.call('hgetall', KEYS[1])[1] ~= nil, redis.call('llen', 'l1')}",
  "return {1, {2, {3, {}}}, redis.call('ping')}",
  "return {double = 3.25}",
  "local t = {} t[ARGV[1]] = 1 return next(t)",
  "return string.byte(ARGV[1], 1, -1)",
  "if redis.call('exists', KEYS[1]) == 0 then redis.call('hset', KEYS[1], 'owner', ARGV[1]) redis.call('pexpire', KEYS[1], 300000) return 1 end return redis.call('type', KEYS[1])",
  "return redis.REDIS_VERSION",
  "return tonumber('0x10')",
  "return {tonumber('  5  '), tonumber('1e2'), tonumber('abc') == nil}",
  "return loadstring('return 1 + 1')()",
  "local x = setmetatable({}, {__index = function(_, k) return k end}) return x.foo",
  "return select('#', unpack(ARGV))",
  "return"
]

const placeholder = (name: string, draw: Draw): string => {
  const pick = <A>(items: ReadonlyArray<A>): A => items[Math.floor(draw() * items.length)]!
  if (name === "newid") return `${Math.floor(draw() * 40)}-${Math.floor(draw() * 3)}`
  if (name === "k" || ("shlztx".includes(name) && draw() < 0.04)) {
    return pick(choices[pick(["s", "h", "l", "z", "t", "x"])]!)
  }
  return pick(choices[name]!)
}

const weighted: ReadonlyArray<string> = templates.flatMap((line) => {
  const match = /^(.*)\|([0-9])$/.exec(line)
  return match === null ? [line] : Array.from({ length: Number(match[2]) }, () => match[1]!)
})

const fill = (template: string, draw: Draw): Array<string> => {
  let text = template
  for (;;) {
    const next = text.replace(/<([^<>]*)>(?!$)|<([^<>]*)>$/, (_, a: string | undefined, b: string | undefined) => {
      const options = (a ?? b)!.split("|")
      return options[Math.floor(draw() * options.length)]!
    })
    if (next === text) break
    text = next
  }
  return text.split(" ").filter((word) => word !== "")
    .map((word) => word.replace(/^\{([a-z]+)\}$/, (_, name: string) => `\0${placeholder(name, draw)}`))
    .map((word) => word.startsWith("\0") ? word.slice(1) : word)
}

const BLOCKING: ReadonlyArray<readonly [string, string]> = [
  ["RPUSH {l} {m}", "BLPOP {l} 0"],
  ["RPUSH {l} {m} {m}", "BRPOP {l} {l} 0"],
  ["LPUSH l1 {m}", "BLMOVE l1 {l} {pos} {pos} 0"],
  ["LPUSH l1 {m}", "BRPOPLPUSH l1 {k} 0"],
  ["LPUSH l1 {m}", "BLMPOP 0 2 l1 {l} {pos} COUNT {p}"],
  ["ZADD z1 1 {m}", "BZPOPMIN z1 {z} 0"],
  ["ZADD z1 1 {m}", "BZPOPMAX {z} z1 0"],
  ["XADD tmp * a 1", "DEL tmp"],
  ["XADD tmp 1-1 a 1", "XREAD BLOCK 0 STREAMS tmp 0"]
]

/** The next commands: one, or a few that belong together. */
export const generate = (draw: Draw): ReadonlyArray<ReadonlyArray<string>> => {
  const roll = draw()
  if (roll < 0.14) {
    const source = scripts[Math.floor(draw() * scripts.length)]!
    const name = draw() < 0.05 ? "EVAL_RO" : "EVAL"
    return [[name, source, "1", placeholder("k", draw), placeholder(draw() < 0.5 ? "v" : "int", draw)]]
  }
  if (roll < 0.17) {
    const pair = BLOCKING[Math.floor(draw() * BLOCKING.length)]!
    const first = fill(pair[0], draw)
    const key = first[1]!
    // The reader is sure to find something, or a wrong type: never anything to wait for.
    const second = fill(pair[1], draw).map((word, index) =>
      index === 1 && /^B[LR]POP$/.test(fill(pair[1], draw)[0]!) ? key : word
    )
    return [["DISCARD"], ["SELECT", "0"], ["DEL", key], first, second]
  }
  const args = fill(weighted[Math.floor(draw() * weighted.length)]!, draw)
  // A wrong WAIT waits for good, a wrong SPOP is a matter of luck.
  if (draw() < 0.02 && !/^(?:WAIT|SPOP|SRANDMEMBER)$/.test(args[0]!)) {
    const how = draw()
    if (how < 0.4 && args.length > 1) args.pop()
    else if (how < 0.7) args.push(placeholder("v", draw))
    else if (args.length > 1) {
      args[1 + Math.floor(draw() * (args.length - 1))] = placeholder(args[0]!.startsWith("X") ? "i" : "int", draw)
    }
  }
  return [args]
}
