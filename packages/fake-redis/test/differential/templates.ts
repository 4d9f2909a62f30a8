/**
 * Command templates for the generator. Their placeholders draw from `choices`.
 */
/**
 * `{name}` draws from the choices with that name. `<a|b|>` draws one of the alternatives, and an empty one is left out.
 * A final `|3` makes a template three times as likely.
 */
export const templates: ReadonlyArray<string> = `
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
SCAN <0|0|0|1|abc|-1> COUNT <1000|1000|1|0|abc> <MATCH {glob}|TYPE string|TYPE foo|MATCH {glob} TYPE hash|>
SCAN 0 COUNT 1000 TYPE <string|list|zset|foo>
SCAN 0 <MATCH|COUNT|TYPE|FOO 1|>
DBSIZE
COPY {k} {k} <REPLACE|DB 1|DB 1 REPLACE|>
MOVE {k} <1|0|99|abc>
OBJECT ENCODING {s}
OBJECT ENCODING {k}
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
HSCAN {h} 0 <COUNT 1000|COUNT 1|COUNT 0|COUNT abc|MATCH {glob}|MATCH {glob} COUNT 2|NOVALUES|>
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
SSCAN {t} 0 <COUNT 1000|COUNT 1|COUNT 2 MATCH {glob}|MATCH {glob}|>
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
ZSCAN {z} 0 <COUNT 1000|COUNT 1|MATCH {glob}|COUNT 2 MATCH {glob}|>
XADD {x} <NOMKSTREAM|MAXLEN 3|MAXLEN = 2|MINID 3|MAXLEN ~ 2|MAXLEN 5 LIMIT 3|MAXLEN ~ 5 LIMIT 3|> {newid} a {v}|4
XADD {x} {id} a
XADD {x} {id} {f} {v}
XADD {x} <5-*|6-*|abc-*|9007199254740993-*> a {v}
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
XTRIM {x} <MAXLEN ~ 1|MINID ~ 5|MAXLEN ~ 2 LIMIT 3|MAXLEN 3|MAXLEN ~ 3|MINID 2|MAXLEN -1|MAXLEN 4 MINID 3|MAXLEN|LIMIT 3|MINID = abc>
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
ZMPOP <1|2|0|abc> {z} {z} <MIN|MAX|foo> <COUNT {i}|>
ZMPOP 1 {z} <MIN|MAX> <COUNT {p}|>
ZINTERCARD <2|0|abc> {z} <{z}|{t}> <LIMIT {i}|foo|>
LCS {s} {s} <LEN|IDX|IDX MINMATCHLEN {i}|IDX WITHMATCHLEN|IDX LEN|foo|>
SETBIT {s} <0|7|13|20|-1|4294967296|abc> <0|1|2>
GETBIT {s} <0|7|13|100|-1|abc>
BITCOUNT {s} <{i} {i}|{i} {i} BYTE|{i} {i} BIT|{i} {i} foo|{i}|>
BITPOS {s} <0|1|2> <{i}|{i} {i}|{i} {i} BIT|>
BITOP <AND|OR|XOR|NOT|foo> {s} {s} <{s}|>
DUMP nokey
RESTORE {s} <0|-1|abc> garbage <REPLACE|foo|>
MEMORY USAGE nokey
LATENCY LATEST
LATENCY RESET
COMMAND GETKEYS <GET {k}|MSET {k} 1 {k} 2|EVAL x 1 {k} a|XREAD STREAMS {x} 0|PING a b|FOO a b|ZUNIONSTORE {z} 2 {z} {t}|LMPOP 2 {l} {l} LEFT>
CLIENT <PAUSE abc|PAUSE -1|REPLY foo|GETREDIR|TRACKINGINFO|CACHING YES|NO-EVICT foo|UNBLOCK abc>
CONFIG SET maxmemory 0 maxmemory 0
CONFIG SET stream-node-max-entries <2|3|100|-1|abc|0>
CONFIG SET stream-node-max-bytes <40|60|100|4096|4kb|abc>
CONFIG SET hash-max-<listpack|ziplist>-<entries|value> <2|4|64|512|-1>
CONFIG SET set-max-intset-entries <1|2|64|512|x>
CONFIG SET zset-max-<listpack|ziplist>-<entries|value> <2|3|64|128|abc>
CONFIG SET tracking-table-max-keys <1000000|0|abc>
CONFIG SET list-max-listpack-size <-2|128|0|abc>
CONFIG SET min-replicas-to-write <0|0|0|-1|abc>
CONFIG SET <save|timeout|tcp-keepalive|maxclients|hz|activerehashing|appendonly|list-max-ziplist-size|foo> <foo|-1>
CONFIG GET <stream-node-max-entries|hash-max-ziplist-entries|*max-intset*|min-slaves-to-write|timeout>
LPOS {l} {m} RANK -9223372036854775808
SUBSTR {s} {i} {i}
ZINTER 2 {z} <{z}|{t}> <WITHSCORES|WEIGHTS 2 3|>
ZDIFFSTORE {z} 2 {z} {z}
SPUBLISH ch {v}
<EVALSHA|EVALSHA_RO> <abc|e0e1f9fabfc9d4800c877a703b823ac0578ff8db> 0
ROLE
SORT <{l}|{t}|{z}> ALPHA <ASC|DESC|LIMIT {i} {i}|DESC LIMIT 0 2|LIMIT -1 2|>
SORT <{l}|{t}|{z}> <ASC|DESC|LIMIT {i} {i}|foo|>
SORT {l} ALPHA <GET #|GET s* GET #|GET h*->f1|GET s1|STORE {k}|STORE l2|GET s* STORE l1|LIMIT 0 100 STORE l2>
SORT {z} BY nosort <DESC|LIMIT 0 2|DESC LIMIT 1 1|GET # STORE l1|>
SORT {k} BY s* <ALPHA|DESC|>
SORT_RO {l} ALPHA <STORE l1|DESC|>
BITFIELD {s} <GET|GET i5|GET u8|SET u8> <0|3|#1|#2|-1|100> <{int}|>
BITFIELD {s} SET <u4|i4|u8|i8|u63|i64|u64|x3> <0|5|#1|#3> {int}
BITFIELD {s} OVERFLOW <WRAP|SAT|FAIL|foo> INCRBY <u4|i4|u8|i8|u16|i64> <0|3|#1> {int} GET u8 0
BITFIELD {s} SET u8 0 <255|300|-1> INCRBY i5 100 1 OVERFLOW SAT SET <u8|i8> #1 <1000|-1000>
BITFIELD_RO {s} <GET u8 0|GET i16 #1 GET u3 5|SET u8 0 1>
PFADD <p1|p2> {v} {m} {m}|2
PFADD <p1|p2|{k}>
PFCOUNT <p1|p1 p2|p2 nokey|{k}>
PFMERGE <p3|p1|{k}> <p1|p2|p1 p2|{k}|>
GET <p1|p2|p3>
GEOADD <g1|g2|l1> <NX|XX|CH|NX XX|NX CH|> {lon} {lat} {m} <{lon} {lat} {m}|>|2
GEOPOS <g1|g2|l1> {m} {m}
GEOHASH <g1|g2|l1> {m} {m}
GEODIST <g1|g2|l1> {m} {m} <m|km|ft|mi|MI|xx|>
ZSCORE g1 {m}
GEORADIUS <g1|g1|g3|l1> {lon} {lat} <0|1000|5000|-1|abc> <km|m|x> ASC <WITHDIST|WITHCOORD WITHDIST|COUNT 2|COUNT 1 ANY WITHHASH|COUNT 0|STORE g2|STOREDIST g2|STORE g2 WITHDIST|ANY|>
GEORADIUS_RO <g1|g1|g3|l1> {lon} {lat} 3000 km DESC <STORE g2|COUNT 2|>
GEORADIUSBYMEMBER <g1|g1|g3|l1> {m} <10|2000|-1> <km|foo> DESC <WITHDIST|COUNT 1|STOREDIST g2|>
GEORADIUSBYMEMBER_RO g1 {m} 4000 km ASC
GEOSEARCH <g1|g1|g3|l1> <FROMMEMBER {m}|FROMLONLAT {lon} {lat}|FROMMEMBER a FROMMEMBER b> <BYRADIUS 3000 km|BYBOX 4000 4000 km|BYBOX 100 -1 m|BYRADIUS abc m> <ASC|DESC> <WITHDIST|WITHCOORD|COUNT 1|COUNT 2 ANY|ANY|STOREDIST|foo|>
GEOSEARCH g1 <FROMMEMBER a ASC|BYRADIUS 1 m|FROMLONLAT 1 2> <BYRADIUS 1 m|WITHDIST WITHDIST WITHDIST>
GEOSEARCHSTORE <g2|{k}> g1 FROMLONLAT {lon} {lat} <BYRADIUS 3000 km|BYBOX 4000 3000 km> <ASC|COUNT 2|STOREDIST|WITHDIST|>
<SRANDMEMBER {t}|HRANDFIELD {h}|ZRANDMEMBER {z}> -9223372036854775808
`.trim().split("\n")

/**
 * Pairs of commands: the first adds an element, and the second is a blocking command that finds it and so does not
 * block.
 */
export const blocking: ReadonlyArray<readonly [string, string]> = [
  ["RPUSH {l} {m}", "BLPOP {l} 0"],
  ["RPUSH {l} {m} {m}", "BRPOP {l} {l} 0"],
  ["LPUSH l1 {m}", "BLMOVE l1 {l} {pos} {pos} 0"],
  ["LPUSH l1 {m}", "BRPOPLPUSH l1 {k} 0"],
  ["LPUSH l1 {m}", "BLMPOP 0 2 l1 {l} {pos} COUNT {p}"],
  ["ZADD z1 1 {m}", "BZPOPMIN z1 {z} 0"],
  ["ZADD z1 1 {m}", "BZPOPMAX {z} z1 0"],
  ["ZADD z1 1 {m}", "BZMPOP 0 2 z1 {z} <MIN|MAX> COUNT {p}"],
  ["XADD tmp * a 1", "DEL tmp"],
  ["XADD tmp 1-1 a 1", "XREAD BLOCK 0 STREAMS tmp 0"]
]

/**
 * Commands that fill a key, each with the commands that are tried on it, because reads of a missing key, or of another
 * type, find nothing. Redis does not define lexicographic ranges of members whose scores differ.
 */
export const fillings: ReadonlyArray<readonly [filling: string, related: RegExp]> = [
  ["ZADD {z} 1 a 2 b 2 c 3.7 d -1 e 5 aa", /^Z(?!.*(?:LEX|STORE))/],
  ["ZADD {z} 0 a 0 aa 0 b 0 c 0 d", /^Z.*LEX/],
  ["GEOADD g1 13.361389 38.115556 a 15.087269 37.502669 b 12.5 41.9 c -122.4 37.8 d", /^GEO/],
  ["HSET {h} f1 a f2 10 f3 3.7 1 b", /^H/],
  ["LPUSH {l} a b c a d 1", /^L/],
  ["SADD {t} a b c d", /^S[A-Z]*(?:MEMBER|INTER|UNION|DIFF|MOVE|CARD|REM)/],
  ["SADD {t} 1 2 3 4 5", /^S[A-Z]*(?:MEMBER|INTER|UNION|DIFF|MOVE|CARD|REM)/]
]

/** Prepares a consumer group: adds entries, and delivers some of them. */
export const groupBeginning: ReadonlyArray<string> = `
DISCARD
SELECT 0
DEL x1
XGROUP CREATE x1 g1 <0|0|2|$> MKSTREAM
XADD x1 1-0 a {v}
XADD x1 2-0 a {v}
XADD x1 3-0 a {v}
XADD x1 4-0 a {v}
XREADGROUP GROUP g1 {c} <COUNT 2|> STREAMS x1 >
`.trim().split("\n")

/** Commands on a consumer group, in any order. */
export const groupSteps: ReadonlyArray<string> = `
XREADGROUP GROUP g1 {c} <COUNT 1|COUNT 2|NOACK|> STREAMS x1 >
XREADGROUP GROUP g1 {c} <COUNT 2|> STREAMS x1 <0|{entry}>
XACK x1 g1 {entry} <{entry}|>
XPENDING x1 g1
XPENDING x1 g1 <IDLE 0|IDLE 10000000|> <-|{entry}|(1-0> <+|{entry}> 10 <{c}|>
XCLAIM x1 g1 {c} 0 {entry} {entry} <JUSTID|FORCE|IDLE 5000|TIME 1000|RETRYCOUNT 7|FORCE JUSTID|LASTID 9|>
XCLAIM x1 g1 {c} <0|100000000> {entry}
XAUTOCLAIM x1 g1 {c} <0|0|100000000> <0|-|{entry}> <COUNT 1|COUNT 2|JUSTID|>
XADD x1 <MAXLEN 3|MINID 2|> {entry} a {v}
XDEL x1 {entry}
XTRIM x1 <MAXLEN 2|MINID 3>
XGROUP CREATECONSUMER x1 g1 {c}
XGROUP DELCONSUMER x1 g1 {c}
XGROUP SETID x1 g1 <0|$|2> <ENTRIESREAD 3|>
XREAD COUNT 2 STREAMS x1 {entry}
XINFO CONSUMERS x1 g1
XINFO GROUPS x1
XINFO STREAM x1 FULL
`.trim().split("\n")
