/** Replies from the fake Redis have the same shapes as replies through `IoRedis.layer`, over RESP2 and RESP3. */
import { IoRedis } from "@effect-simba/redis"
import { TestRedis } from "@effect-simba/testkit"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Redis } from "effect/persistence/Redis"
import { RedisServer } from "../../support/harness.ts"

const commands = [
  "FLUSHDB",
  "ZADD z 1.5 a 2 b inf WITHSCORES",
  "HSET h field value",
  "SADD s a",
  "XADD x 1-1 f v",
  "XADD y 1-1 f v",
  "ZRANGE z 0 -1",
  "ZRANGE z 0 -1 withscores",
  "ZRANGE none 0 -1 WITHSCORES",
  "ZREVRANGE z 0 -1 WITHSCORES",
  "ZRANGEBYSCORE z 0 9 WITHSCORES LIMIT 0 1",
  "ZREVRANGEBYSCORE z 9 0 WITHSCORES",
  "ZRANDMEMBER none 1 WITHSCORES",
  "ZUNION 1 z WITHSCORES",
  "ZINTER 1 z WITHSCORES",
  "ZDIFF 1 z WITHSCORES",
  "ZSCORE z a",
  "ZMSCORE z a none",
  "ZSCAN z 0",
  "ZPOPMIN z",
  "ZPOPMAX z 1",
  "ZPOPMIN none 1",
  "ZADD z INCR 1 b",
  "BZPOPMIN z 1",
  "HGETALL h",
  "HSCAN h 0",
  "HRANDFIELD h",
  "HRANDFIELD h 1",
  "HRANDFIELD h 1 WITHVALUES",
  "SMEMBERS s",
  "XREAD COUNT 1 STREAMS x y 0 0",
  "XREAD STREAMS x 9-9",
  "XGROUP CREATE x g 0",
  "XREADGROUP GROUP g c STREAMS x >",
  "XREADGROUP GROUP g c STREAMS x >",
  "XRANGE x - +",
  "XPENDING x g",
  "XINFO GROUPS x",
  "CONFIG GET maxmemory-policy",
  "GET none",
  "PUBSUB NUMSUB none",
  "EVAL return{redis.call('HGETALL','h'),redis.call('ZRANGE','z',0,-1,'WITHSCORES'),false} 0"
]

const replies = Effect.forEach(commands, (line) => {
  const [command, ...args] = line.split(" ")
  // A blocking command needs its own connection.
  const connection = command!.startsWith("B") ? Redis.use(({ reserve }) => reserve) : Redis
  return Effect.scoped(Effect.flatMap(connection, ({ send }) => send(command!, ...args))).pipe(
    Effect.map((reply) => [line, reply] as const)
  )
})

const refused = [
  "SUBSCRIBE c",
  "punsubscribe",
  "QUIT",
  "SYNC",
  "PSYNC ? -1",
  "REPLCONF listening-port 1",
  "HELLO 2",
  "SELECT 1",
  "MULTI",
  "EXEC",
  "WATCH a",
  "blpop a 1",
  "BZMPOP 1 1 z MIN",
  "WAIT 0 1",
  "WAITAOF 1 0 1",
  "XREAD BLOCK 10 STREAMS x 0",
  "XREADGROUP GROUP g c COUNT 1 block 10 STREAMS x >",
  "XREADGROUP GROUP streams streams BLOCK 10 STREAMS x >",
  "XREADGROUP BLOCK 10 GROUP g c STREAMS x >",
  "CLIENT reply OFF",
  "CLIENT TRACKING ON"
]

const refusals = Effect.forEach(refused, (line) => {
  const [command, ...args] = line.split(" ")
  return Redis.use(({ send }) => Effect.flip(send(command!, ...args))).pipe(
    Effect.map(({ cause }) => [line, (cause as Error).message])
  )
})

layer(RedisServer.layer, { excludeTestServices: true })("replies from the fake", (it) => {
  it.effect.each([2, 3] as const)(
    "have the same shapes as ioredis's replies over RESP%d",
    (protocol) =>
      Effect.gen(function*() {
        const { url } = yield* RedisServer
        const real = yield* Effect.provide(replies, IoRedis.layer({ url, client: { protocol } }))
        const fake = yield* Effect.provide(replies, TestRedis.layer({ protocol }))
        assert.deepStrictEqual(fake, real)
      })
  )

  it.effect("have the default shapes of IoRedis.layer", () =>
    Effect.gen(function*() {
      const { url } = yield* RedisServer
      const real = yield* Effect.provide(replies, IoRedis.layer({ url }))
      assert.deepStrictEqual(yield* Effect.provide(replies, TestRedis.layer()), real)
    }))

  it.effect("Redis.send refuses commands that would break a shared connection, on the fake and on ioredis", () =>
    Effect.gen(function*() {
      const { url } = yield* RedisServer
      const real = yield* Effect.provide(refusals, IoRedis.layer({ url }))
      for (const [line, message] of real) assert.include(message, "Redis.send refuses", line)
      assert.deepStrictEqual(yield* Effect.provide(refusals, TestRedis.layer()), real)
      const read = Redis.use(({ send }) => send("XREAD", "COUNT", "1", "STREAMS", "block", "0"))
      const readOfGroup = Redis.use(({ send }) =>
        Effect.andThen(
          send("XGROUP", "CREATE", "block", "block", "$", "MKSTREAM"),
          send("XREADGROUP", "GROUP", "block", "block", "COUNT", "1", "STREAMS", "block", ">")
        )
      )
      for (const allowed of [read, readOfGroup]) {
        assert.isNull(yield* Effect.provide(allowed, IoRedis.layer({ url })))
        assert.isNull(yield* Effect.provide(allowed, TestRedis.layer()))
      }
    }))
})
