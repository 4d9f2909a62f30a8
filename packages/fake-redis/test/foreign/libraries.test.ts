import { describe } from "@effect/vitest"
import { RedisStore } from "connect-redis"
import { Redis } from "ioredis"
import { RateLimiterRedis } from "rate-limiter-flexible"
import { createClient } from "redis"
import { Mutex, Semaphore } from "redis-semaphore"
// @ts-expect-error -- redlock's package.json does not declare its types
import Redlock from "redlock"
import { alike, refusal, socketOf } from "./servers.ts"

describe("other libraries", () => {
  alike("redlock", ["first", "second", "extended", "after release", "using"], async (where) => {
    const redis = new Redis(where)
    const redlock = new Redlock([redis], { retryCount: 0 })
    const steps: Record<string, unknown> = {}
    const lock = await redlock.acquire(["a", "b"], 10_000)
    steps["first"] = await redis.exists("a", "b")
    steps["second"] = await refusal(redlock.acquire(["b"], 10_000))
    const extended = await lock.extend(20_000)
    steps["extended"] = await redis.pttl("a") > 10_000
    await extended.release()
    steps["after release"] = await redis.exists("a", "b")
    steps["using"] = await redlock.using(["c"], 5000, async () => redis.exists("c"))
    redis.disconnect()
    return steps
  })

  alike("redis-semaphore", ["mutex", "second", "released", "semaphore", "full", "room"], async (where) => {
    const redis = new Redis(where)
    const steps: Record<string, unknown> = {}
    const options = { acquireTimeout: 100, retryInterval: 10, lockTimeout: 5000 }
    const [a, b] = [new Mutex(redis, "m", options), new Mutex(redis, "m", options)]
    await a.acquire()
    steps["mutex"] = [a.isAcquired, await redis.exists("mutex:m")]
    steps["second"] = await refusal(b.acquire())
    await a.release()
    steps["released"] = [await b.tryAcquire(), await b.release()]
    const places = Array.from({ length: 3 }, () => new Semaphore(redis, "s", 2, options))
    await places[0]!.acquire()
    await places[1]!.acquire()
    steps["semaphore"] = await redis.zcard("semaphore:s")
    steps["full"] = await refusal(places[2]!.acquire())
    await places[0]!.release()
    steps["room"] = await places[2]!.tryAcquire()
    for (const place of places) await place.release()
    redis.disconnect()
    return steps
  })

  alike("rate-limiter-flexible", ["within", "beyond", "looked at", "penalty", "blocked", "deleted"], async (where) => {
    const redis = new Redis(where)
    const limiter = new RateLimiterRedis({ storeClient: redis, points: 3, duration: 100, keyPrefix: "limit" })
    const points = ({ consumedPoints, remainingPoints }: { consumedPoints: number; remainingPoints: number }) => [
      consumedPoints,
      remainingPoints
    ]
    const steps: Record<string, unknown> = {}
    steps["within"] = [points(await limiter.consume("u")), points(await limiter.consume("u", 2))]
    steps["beyond"] = await limiter.consume("u").then(() => "allowed", points)
    steps["looked at"] = points((await limiter.get("u"))!)
    steps["penalty"] = [points(await limiter.penalty("v", 2)), points(await limiter.reward("v", 1))]
    await limiter.block("w", 50)
    steps["blocked"] = await limiter.consume("w").then(
      () => "allowed",
      (left: { msBeforeNext: number }) => left.msBeforeNext > 0
    )
    steps["deleted"] = [await limiter.delete("u"), await limiter.get("u")]
    redis.disconnect()
    return steps
  })

  alike("connect-redis", ["stored", "ids", "length", "all", "touched", "destroyed", "cleared"], async (where) => {
    const client = await createClient({ socket: socketOf(where) }).connect()
    const store = new RedisStore({ client, prefix: "sess:" })
    const session = (user: string) => ({ cookie: { originalMaxAge: 60_000 }, user }) as never
    const steps: Record<string, unknown> = {}
    await store.set("1", session("alice"))
    await store.set("2", session("bob"))
    steps["stored"] = [await store.get("1"), await store.get("3")]
    steps["ids"] = ((await store.ids()) as Array<string>).sort()
    steps["length"] = await store.length()
    steps["all"] = ((await store.all()) as Array<{ user: string }>).map(({ user }) => user).sort()
    await store.touch("1", session("alice"))
    steps["touched"] = await client.ttl("sess:1") > 0
    await store.destroy("1")
    steps["destroyed"] = (await store.get("1")) ?? "gone"
    await store.clear()
    steps["cleared"] = await store.length()
    client.destroy()
    return steps
  })
})
