import * as RedisSubscriber from "@effect-simba/redis/RedisSubscriber"
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { Layer } from "effect"
import { onServer } from "./onServer.mjs"

await onServer(Layer.provideMerge(RedisSubscriber.layer, NodeRedis.layer({ url: process.env.REDIS_URL })))
