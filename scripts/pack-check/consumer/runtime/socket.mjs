/** Runs the fake Redis as a server on a port, to which ioredis connects. */
import { IoRedis } from "@effect-simba/redis"
import * as FakeRedis from "@effect-simba/testkit/FakeRedis"
import * as FakeRedisServer from "@effect-simba/testkit/FakeRedisServer"
import { Effect } from "effect"
import { onServer } from "./onServer.mjs"

const program = Effect.flatMap(
  FakeRedisServer.listen(),
  ({ url }) => Effect.promise(() => onServer(IoRedis.layer({ url })))
)

await Effect.runPromise(Effect.scoped(Effect.provide(program, FakeRedis.layer())))
