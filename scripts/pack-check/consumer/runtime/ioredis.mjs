// Checks both stores on ioredis.
import { IoRedis } from "@effect-simba/redis"
import { onServer } from "./onServer.mjs"

await onServer(IoRedis.layer({ url: process.env.REDIS_URL }))
