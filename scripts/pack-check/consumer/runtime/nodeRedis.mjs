// Checks both stores on Effect's `NodeRedis`.
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { onServer } from "./onServer.mjs"

await onServer(NodeRedis.layer({ url: process.env.REDIS_URL }))
