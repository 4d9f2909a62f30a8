// Checks both stores on the fake Redis.
import * as RedisMutex from "@effect-simba/redis/RedisMutex"
import * as RedisStreams from "@effect-simba/redis/streams/RedisStreams"
import * as FakeRedis from "@effect-simba/testkit/FakeRedis"
import { Effect, Layer } from "effect"
import { mutexes, streams } from "./scenario.mjs"

const program = Effect.flatMap(Layer.build(FakeRedis.layer()), (server) => {
  const client = (name) => FakeRedis.layerClient({ name }).pipe(Layer.provide(Layer.succeedContext(server)))
  return Effect.andThen(
    mutexes((name) => RedisMutex.layerStore.pipe(Layer.provide(client(name)))),
    streams((name) => RedisStreams.layerStore.pipe(Layer.provideMerge(client(name))))
  )
})

await Effect.runPromise(Effect.scoped(program))
console.log("holds")
