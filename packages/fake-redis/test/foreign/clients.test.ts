import { describe } from "@effect/vitest"
import { Redis } from "ioredis"
import { createClient } from "redis"
import { alike, eventually, refusal, socketOf } from "./servers.ts"

const binary = Buffer.from(Array.from({ length: 256 }, (_, at) => at))

describe("ioredis with its defaults", () => {
  for (const protocol of [2, 3] as const) {
    const names = [
      "info",
      "text",
      "bytes",
      "pipeline",
      "transaction",
      "watch",
      "script",
      "hash",
      "sorted set",
      "stream"
    ]
    alike(`RESP${protocol}`, [...names, "blocking", "scan", "refusal", "messages", "monitored"], async (where) => {
      const redis = new Redis({ ...where, protocol })
      const other = new Redis({ ...where, protocol })
      const steps: Record<string, unknown> = {}
      steps["info"] = /redis_version:(.*)\r/.exec(await redis.info("server"))?.[1]
      steps["text"] = [await redis.set("t", "grüße √ 🦁"), await redis.get("t"), await redis.strlen("t")]
      steps["bytes"] = [
        await redis.set("b", binary),
        (await redis.getBuffer("b"))?.equals(binary),
        await redis.strlen("b")
      ]
      const pipeline = redis.pipeline()
      for (let i = 0; i < 1000; i++) pipeline.incr("n")
      steps["pipeline"] = (await pipeline.exec())?.map(([, value]) => value).at(-1)
      steps["transaction"] = await redis.multi().set("a", 1).incr("a").lpush("a", 1).get("a").exec()
        .then((replies) => replies?.map(([error, value]) => error === null ? value : String(error)))
      await redis.watch("a")
      await other.set("a", "changed")
      steps["watch"] = await redis.multi().get("a").exec()
      redis.defineCommand("both", { numberOfKeys: 1, lua: "return {redis.call('GET', KEYS[1]), ARGV[1], {1, false}}" })
      steps["script"] = await (redis as unknown as { both: (...args: Array<string>) => Promise<unknown> }).both(
        "a",
        "x"
      )
      steps["hash"] = [
        await redis.hset("h", { one: "1", two: "2" }),
        await redis.hgetall("h"),
        await redis.hget("h", "no")
      ]
      steps["sorted set"] = [
        await redis.call("ZADD", "z", "1.5", "a", "2", "b", "-inf", "c"),
        await redis.zrange("z", "0", "-1", "WITHSCORES"),
        await redis.zscore("z", "a"),
        await redis.call("ZMPOP", "1", "z", "MIN")
      ]
      await redis.xadd("x", "1-1", "field", "value")
      await redis.xgroup("CREATE", "x", "g", "0")
      steps["stream"] = [
        await redis.xreadgroup("GROUP", "g", "c", "STREAMS", "x", ">"),
        await redis.xpending("x", "g"),
        await redis.xack("x", "g", "1-1")
      ]
      const popped = redis.blpop("l", 5)
      await other.rpush("l", "item")
      steps["blocking"] = [await popped, await other.blpop("l", 0.01)]
      await redis.mset(Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`scan:${at}`, "1"])))
      const found = new Set<string>()
      for await (const page of redis.scanStream({ match: "scan:*", count: 50 })) {
        for (const key of page as Array<string>) found.add(key)
      }
      steps["scan"] = found.size
      steps["refusal"] = [
        await refusal(redis.call("NOPE", "a")),
        await refusal(redis.lpush("t", "1")),
        await refusal(redis.call("GET"))
      ]
      const heard: Array<unknown> = []
      other.on("message", (...message) => heard.push(message))
      other.on("pmessage", (...message) => heard.push(message))
      await other.subscribe("news")
      await other.psubscribe("n?ws")
      const receivers = await redis.publish("news", "grüße")
      await eventually(() => heard.length === 2)
      steps["messages"] = [receivers, heard, await other.unsubscribe("news"), await other.punsubscribe("n?ws")]
      steps["monitored"] = await redis.client("SETNAME", "me").then(() => redis.client("GETNAME"))
      redis.disconnect()
      other.disconnect()
      return steps
    })
  }
})

describe("node-redis with its defaults", () => {
  for (const RESP of [2, 3] as const) {
    alike(`RESP${RESP}`, [
      "text",
      "many",
      "transaction",
      "hash",
      "sorted set",
      "script",
      "stream",
      "blocking",
      "scan",
      "messages",
      "refusal"
    ], async (where) => {
      const redis = await createClient({ socket: socketOf(where), RESP }).connect()
      const other = await redis.duplicate().connect()
      const steps: Record<string, unknown> = {}
      steps["text"] = [
        await redis.set("t", "grüße √ 🦁", { EX: 100 }),
        await redis.get("t"),
        await redis.exists("nope")
      ]
      steps["many"] = await Promise.all(Array.from({ length: 1000 }, () => redis.incr("n"))).then((values) =>
        values.at(-1)
      )
      steps["transaction"] = await redis.multi().set("a", "1").incr("a").exec()
      steps["hash"] = [await redis.hSet("h", { one: "1", two: "2" }), await redis.hGetAll("h")]
      steps["sorted set"] = [
        await redis.zAdd("z", [{ score: 1.5, value: "a" }, { score: Infinity, value: "b" }]),
        await redis.zRangeWithScores("z", 0, -1),
        await redis.zScore("z", "a"),
        await redis.zPopMin("z")
      ]
      steps["script"] = await redis.eval("return {KEYS[1], ARGV[1], 3}", { keys: ["k"], arguments: ["v"] })
      await redis.xAdd("x", "1-1", { field: "value" })
      steps["stream"] = [await redis.xRead({ key: "x", id: "0" }), (await redis.xInfoStream("x"))["last-generated-id"]]
      const popped = other.blPop("l", 5)
      await redis.rPush("l", "item")
      steps["blocking"] = await popped
      const found = new Set<string>()
      await redis.mSet(Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`scan:${at}`, "1"])))
      for await (const keys of redis.scanIterator({ MATCH: "scan:*" })) for (const key of keys) found.add(key)
      steps["scan"] = found.size
      const heard: Array<unknown> = []
      await other.subscribe("news", (message, channel) => heard.push([channel, message]))
      await redis.publish("news", "hello")
      await eventually(() => heard.length === 1)
      steps["messages"] = heard
      steps["refusal"] = await refusal(redis.lPush("t", "1"))
      other.destroy()
      redis.destroy()
      return steps
    })
  }

  alike("invalidates its own cache", ["read", "observed"], async (where) => {
    const redis = createClient({
      socket: socketOf(where),
      RESP: 3,
      clientSideCache: { ttl: 0, maxEntries: 0, evictPolicy: "LRU" }
    })
    await redis.connect()
    const other = await createClient({ socket: socketOf(where) }).connect()
    await other.set("k", "old")
    const steps = { read: [await redis.get("k"), await redis.get("k")], observed: "" as string | null }
    await other.set("k", "new")
    await eventually(async () => (await redis.get("k")) === "new")
    steps.observed = await redis.get("k")
    redis.destroy()
    other.destroy()
    return steps
  })
})
