import * as RedisSubscriber from "@effect-simba/redis/RedisSubscriber"
import * as BunRedis from "@effect/platform-bun/BunRedis"
import { Layer } from "effect"
import { onServer } from "./onServer.mjs"

await onServer(Layer.provideMerge(RedisSubscriber.layer, BunRedis.layer({ url: process.env.REDIS_URL })))
