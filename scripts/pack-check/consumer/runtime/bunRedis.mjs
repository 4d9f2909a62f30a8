// Checks both stores on Bun's Redis client.
import * as BunRedis from "@effect/platform-bun/BunRedis"
import { onServer } from "./onServer.mjs"

await onServer(BunRedis.layer({ url: process.env.REDIS_URL }))
