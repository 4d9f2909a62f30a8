/**
 * Compares the fake with a redis-server in corner cases that random commands rarely reach.
 */
import { createFakeRedis } from "@effect-simba/fake-redis"
import { assert, it } from "@effect/vitest"
import { openRaw } from "../rawSocket.ts"
import { bothServers } from "./alike.ts"
import { toPlain } from "./comparison.ts"
import { open } from "./resp.ts"

const { alike, where } = bothServers()

alike(
  "the Lua libraries behave as in Redis",
  String.raw`
  EVAL "return cjson.encode({1/0})" 0
  EVAL "return cjson.encode({0/0})" 0
  EVAL "cjson.encode_invalid_numbers(true) return cjson.encode({1/0, -1/0})" 0
  EVAL "cjson.encode_invalid_numbers('null') return cjson.encode({1/0})" 0
  EVAL "cjson.encode_invalid_numbers(false) return cjson.encode({1/0})" 0
  EVAL "return cjson.encode_invalid_numbers('foo')" 0
  EVAL "cjson.encode_max_depth(2) return cjson.encode({{{1}}})" 0
  EVAL "cjson.encode_max_depth(1000) return cjson.encode({{{1}}})" 0
  EVAL "return cjson.encode_max_depth(0)" 0
  EVAL "cjson.decode_max_depth(2) return cjson.decode('[[[1]]]')[1][1][1]" 0
  EVAL "cjson.decode_max_depth(1000) return cjson.decode('[[[1]]]')[1][1][1]" 0
  EVAL "cjson.encode_number_precision(3) return cjson.encode({3.14159, 12345})" 0
  EVAL "cjson.encode_number_precision(14) return cjson.encode({3.14159})" 0
  EVAL "cjson.encode_number_precision(99)" 0
  EVAL "return cjson.encode({176367809612345, 176367809612355, -1763678096123450, 999999999999995, 0.1})" 0
  EVAL "return tostring(tonumber('ffffffffff', 16)) .. tostring(tonumber(' -0xFf ', 16))" 0
  EVAL "return tostring(tonumber('10000000000000000', 16)) .. tostring(tonumber('zzzzzzzzzzzz', 36))" 0
  EVAL "return {tostring(tonumber('0x', 16)), tostring(tonumber('', 2)), tostring(tonumber('12', 2))}" 0
  EVAL "return tostring(tonumber(string.rep('9', 1000000), 16))" 0
  EVAL "return tonumber('1', 37)" 0
  EVAL "return tonumber('1', 0/0)" 0
  EVAL "return tonumber(nil, 16)" 0
  EVAL "return tonumber()" 0
  EVAL "return string.format('%d', 0/0)" 0
  EVAL "return string.format({}, 2^40)" 0
  EVAL "local h = 5381 for i = 1, 20 do h = bit.bxor(h * 16777619, i) end return h" 0
  EVAL "return {bit.tobit(2.5), bit.tobit(3.5), bit.tobit(-206598143.326), bit.tobit(2^56 + 80), bit.tohex(255, 2.5)}" 0
  EVAL "return math.random(1, 2^40)" 0
  EVAL "return redis.log('2', 'a')" 0
  EVAL "error('a' .. string.char(10))" 0
  EVAL "cjson.encode_sparse_array(true) return cjson.encode({[20] = 1})" 0
  EVAL "cjson.encode_sparse_array(false) return cjson.encode({[20] = 1})" 0
  EVAL "return cjson.decode('[nan]')" 0
  EVAL "cjson.decode_invalid_numbers(false) return cjson.decode('[0x10]')" 0
  EVAL "cjson.decode_invalid_numbers(true) return cjson.decode('[0x10]')[1]" 0
  EVAL "return type(string.dump)" 0
  EVAL "return #string.dump(function() end) > 0" 0
  EVAL "return tostring(getmetatable(_G))" 0
  EVAL "return type(getmetatable(_G))" 0
  EVAL "getmetatable(_G).__index = nil" 0
  EVAL "redis.setresp(4)" 0
  EVAL "redis.setresp('x')" 0
  EVAL "redis.setresp()" 0
  EVAL "return loadstring('return 1 + 1')()" 0
  EVAL "return redis.acl_check_cmd('get', 'a')" 0
  EVAL "return redis.acl_check_cmd('nope')" 0
  EVAL "return {redis.REDIS_VERSION, redis.REDIS_VERSION_NUM}" 0
  EVAL_RO "return redis.call('publish', 'a', 'b')" 0
  EVAL_RO "return redis.call('pfcount', 'a')" 0
  `,
  (reply) => String(reply).replace(/table: 0x[0-9a-f]+/, "table")
)
alike(
  "scripts see the types of RESP2 unless they choose RESP3",
  `
  GEOADD g 13.361389 38.115556 a
  EVAL "return redis.call('GEOPOS', KEYS[1], 'a')" 1 g
  EVAL "return type(redis.call('GEOPOS', KEYS[1], 'a')[1][1])" 1 g
  EVAL "return redis.call('GEOSEARCH', KEYS[1], 'FROMMEMBER', 'a', 'BYRADIUS', 1, 'km', 'WITHCOORD')" 1 g
  EVAL "redis.setresp(3) return redis.call('GEOPOS', KEYS[1], 'a')" 1 g
  EVAL "redis.setresp(3) return {true, false}" 0
  EVAL "redis.setresp(3) return false" 0
  `
)

it("replies have the same bytes as in Redis", async () => {
  const commands = `
    FLUSHALL
    EVAL "return {2^62, -2^63, 2^53, 7}" 0
    GEOPOS none a
    XADD x 1-1 f v
    XRANGE x - + COUNT 0
    XGROUP CREATE x g 0
    XREADGROUP GROUP g c STREAMS x >
    XDEL x 1-1
    XREADGROUP GROUP g c STREAMS x 0
    HELLO 3
    EVAL "return {verbatim_string = {string = 'a', format = 'x'}}" 0
    ECHO end
  `
  const replies = async (server: Parameters<typeof openRaw>[0]) => {
    const client = await openRaw(server)
    client.write(commands.trimStart().replaceAll("\n", "\r\n"))
    const text = await client.until((text) => text.endsWith("end\r\n"))
    client.socket.destroy()
    return text.replace(/(\r\nid\r\n:)[0-9]+/, "$1")
  }
  assert.strictEqual(await replies(where().fake), await replies(where().real))
})

alike(
  "blocking commands accept the same timeouts as in Redis",
  `
  RPUSH l 1 2 3 4 5
  BLPOP l 9223372036854775807
  BLPOP l inf
  BLPOP l nan
  BLPOP l -0.9
  BLPOP l -0.0001
  BLPOP l 0x10
  BLPOP l 1e15
  LLEN l
  `
)
alike(
  "OBJECT, DUMP and RESTORE reply as Redis does",
  `
  SET k v
  OBJECT IDLETIME k
  DEBUG SLEEP 0
  EXISTS k
  TYPE k
  TTL k
  OBJECT IDLETIME k
  OBJECT FREQ k
  OBJECT REFCOUNT k
  RESTORE x 0 garbage IDLETIME 5 FREQ 5
  RESTORE x 0 garbage IDLETIME -1
  RESTORE x 0 garbage IDLETIME abc
  RESTORE x 0 garbage FREQ 256
  RESTORE x 0 garbage FREQ 5
  RESTORE x 0 garbage IDLETIME 5
  RESTORE x 0 garbage ABSTTL
  OBJECT FOO k
  `,
  // The two servers' seconds tick at different times
  (reply) => String(reply).replace(/(IDLETIME k -> )[0-9]+$/, "$1n")
)
alike(
  "a collection that has become a table keeps that encoding, and so does its copy",
  `
  CONFIG SET hash-max-listpack-entries 2 set-max-intset-entries 2 zset-max-listpack-entries 2
  HSET h a 1 b 2
  OBJECT ENCODING h
  HSET h c 3
  HDEL h b c
  OBJECT ENCODING h
  COPY h copied
  SADD s 1 2
  OBJECT ENCODING s
  SADD s 3
  SREM s 2 3
  OBJECT ENCODING s
  SADD t x
  OBJECT ENCODING t
  SADD t 1
  SREM t x
  OBJECT ENCODING t
  SUNIONSTORE u t
  OBJECT ENCODING u
  ZADD z -0 a -0 b
  ZRANGE z 0 -1 WITHSCORES
  ZADD z -0 c
  ZREM z a b
  OBJECT ENCODING z
  ZRANGE z 0 -1 WITHSCORES
  ZRANGESTORE w z 0 -1
  OBJECT ENCODING w
  ZRANGE w 0 -1 WITHSCORES
  CONFIG SET zset-max-listpack-entries 1
  ZADD y 1 a 1 b
  ZADD y -0 a -0 b
  ZRANGESTORE w y 0 -1
  ZRANGE w 0 -1 WITHSCORES
  ZRANGESTORE w y -1 1 BYSCORE
  ZRANGE w 0 -1 WITHSCORES
  GEOADD g 1 inf a
  ZCOUNT y " -1" " 7"
  ZCOUNT y "( -1" " "
  ZCOUNT y "" 1x
  GEOADD g -inf 1e300 a
  CONFIG SET hash-max-listpack-entries 512 set-max-intset-entries 512 zset-max-listpack-entries 128
  OBJECT ENCODING h
  OBJECT ENCODING copied
  OBJECT ENCODING z
  HSET long f ${"x".repeat(65)}
  HDEL long f
  HSET long f 1
  OBJECT ENCODING long
  ZUNION 2 z z WEIGHTS 1 -1 WITHSCORES
  PUBSUB HELP x
  `
)
alike(
  "CLIENT subcommands reply as Redis does",
  `
  CLIENT UNBLOCK abc
  CLIENT UNBLOCK 999
  CLIENT UNBLOCK 999 FOO
  CLIENT UNBLOCK 999 TIMEOUT x
  CLIENT LIST FOO
  CLIENT LIST TYPE
  CLIENT LIST TYPE foo
  CLIENT LIST ID
  CLIENT LIST ID abc
  CLIENT LIST ID 999
  CLIENT KILL FOO bar
  CLIENT KILL ID 0
  CLIENT KILL TYPE foo
  CLIENT KILL USER nobody
  CLIENT KILL SKIPME foo
  CLIENT SETNAME "a b"
  CLIENT NO-EVICT foo
  CLIENT REPLY foo
  CLIENT GETREDIR
  CLIENT FOO
  sub: CLIENT REPLY FOO
  `
)
alike(
  "transactions reply as Redis does",
  `
  MULTI
  MULTI
  WATCH a
  SET a 1
  PUBLISH c x
  EXEC
  EXEC
  DISCARD
  MULTI
  NOPE
  EXEC
  MULTI
  GET
  DISCARD
  WATCH a
  SET a 2
  MULTI
  GET a
  EXEC
  MULTI
  EVAL "return 1" 0
  SELECT 1
  SET b 1
  EXEC
  GET b
  SELECT 0
  `
)

/**
 * Returns the replies that a client receives immediately and after the pause, while writes or all commands are paused.
 */
const whilePaused = async (at: number | string) => {
  const [admin, client] = [await open(at), await open(at)]
  const replies: Array<unknown> = []
  const ask = async (...commands: ReadonlyArray<string>) => {
    const results = await client.send(commands.map((command) => command.split(" ")))
    replies.push(...results.map(toPlain))
  }
  await admin.send([["FLUSHALL"], ["SET", "k", "v"], ["CLIENT", "PAUSE", "100000", "WRITE"]])
  await ask("GET k", "EVAL_RO return{1} 0", "PING", "MULTI", "GET k", "EXEC")
  // One at a time, so that no command waits behind another
  for (
    const command of ["SET k 2", "EVAL return{2} 0", "MULTI ; SET k 3 ; EXEC", "PUBLISH c x", "PFCOUNT none"]
  ) {
    let isOver = false
    const later = ask(...command.split(" ; ")).then(() => isOver = true)
    const [value] = await admin.send([["GET", "k"]])
    replies.push(value, isOver)
    await admin.send([["CLIENT", "UNPAUSE"]])
    await later
    await admin.send([["CLIENT", "PAUSE", "100000", "WRITE"]])
  }
  await admin.send([["CLIENT", "UNPAUSE"]])
  // A second pause may make the first pause stricter, but cannot shorten it
  const start = performance.now()
  await admin.send([["CLIENT", "PAUSE", "300", "WRITE"], ["CLIENT", "PAUSE", "1", "ALL"]])
  await ask("PING", "GET k")
  replies.push(performance.now() - start >= 290)
  await admin.send([["CLIENT", "PAUSE", "100000", "WRITE"], ["CLIENT", "UNPAUSE"], ["SET", "k", "4"]])
  admin.close()
  client.close()
  return replies
}

it("CLIENT PAUSE delays the same commands as Redis does", async () => {
  const [own, theirs] = [await whilePaused(where().fake.port), await whilePaused(where().real.path)]
  assert.deepStrictEqual(own, theirs)
  assert.lengthOf(own.filter((reply) => reply === false), 5, "the five commands that may write are delayed")
})

it("commands that only inspect a key do not reset its idle time", async () => {
  await using server = await createFakeRedis()
  const connection = await open(server.port)
  await connection.send([["SET", "k", "v"]])
  server.advance(5000)
  const idle = async (...command: ReadonlyArray<string>) =>
    (await connection.send([command, ["OBJECT", "IDLETIME", "k"]]))[1]
  for (const command of ["EXISTS", "TYPE", "TTL", "PTTL", "EXPIRETIME"]) assert.strictEqual(await idle(command, "k"), 5)
  assert.strictEqual(await idle("TOUCH", "k"), 0)
  server.advance(5000)
  assert.strictEqual(await idle("GET", "k"), 0)
  const [payload] = await connection.send([["DUMP", "k"]])
  assert.strictEqual(await idle("RESTORE", "k", "0", String(payload), "REPLACE", "IDLETIME", "7"), 7)
  connection.close()
})

/** Returns the replies to `others` while `script` runs, and the script's result. */
const whileRunning = async (
  where: { readonly port: number } | { readonly path: string },
  script: ReadonlyArray<string>,
  others: ReadonlyArray<ReadonlyArray<string>>
) => {
  const [runner, other] = await Promise.all([
    "port" in where ? open(where.port) : open(where.path),
    "port" in where ? open(where.port) : open(where.path)
  ])
  await runner.send([["CONFIG", "SET", "busy-reply-threshold", "50"], ["FUNCTION", "FLUSH"], ["FLUSHALL"], library])
  const ended = runner.send([script, ["ECHO", "behind the script"]])
  let busy: unknown
  while (!String(busy).includes("BUSY")) busy = toPlain((await other.send([["PING"]]))[0]!)
  const replies = (await other.send(others)).map(toPlain)
  const last = (await ended).map(toPlain)
  runner.close()
  other.close()
  return JSON.stringify([busy, replies, last]).replace(/"duration_ms",[0-9]+/, "")
}

const library = [
  "FUNCTION",
  "LOAD",
  "#!lua name=l\nredis.register_function('forever', function() while true do end end)"
]

for (
  const [title, script, others] of [
    [
      "a long script keeps the server busy until it is killed",
      ["EVAL", "while true do end", "0"],
      [["GET", "a"], ["FUNCTION", "KILL"], ["MULTI"], ["DISCARD"], ["AUTH", "a", "b"], ["SCRIPT", "KILL"]]
    ],
    [
      "a long function keeps the server busy until it is killed",
      ["FCALL", "forever", "1", "a"],
      [["SCRIPT", "KILL"], ["FUNCTION", "STATS"], ["FUNCTION", "KILL"]]
    ],
    [
      "a script that has written cannot be killed, and completes",
      [
        "EVAL",
        "redis.call('set', KEYS[1], ARGV[1]) for i = 1, 3e7 do end return {KEYS[1], redis.call('get', KEYS[1])}",
        "1",
        "k",
        "v"
      ],
      [["SCRIPT", "KILL"], ["GET", "k"]]
    ]
  ] as const
) {
  it(title, async () => {
    assert.strictEqual(
      await whileRunning(where().fake, script, others),
      await whileRunning(where().real, script, others)
    )
  })
}
