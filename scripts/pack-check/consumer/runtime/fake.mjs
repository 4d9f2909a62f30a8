import * as RedisMutexStore from "@effect-simba/redis/RedisMutexStore"
import * as RedisStreamStore from "@effect-simba/redis/streams/RedisStreamStore"
import * as FakeRedis from "@effect-simba/testkit/FakeRedis"
import { Effect, Layer } from "effect"
import { mutexes, streams } from "./scenario.mjs"

const program = Effect.flatMap(Layer.build(FakeRedis.layer()), (server) => {
  const client = (name) => FakeRedis.layerClient({ name }).pipe(Layer.provide(Layer.succeedContext(server)))
  return Effect.andThen(
    mutexes((name) => RedisMutexStore.layer.pipe(Layer.provide(client(name)))),
    streams((name) => RedisStreamStore.layer.pipe(Layer.provideMerge(client(name))))
  )
})

await Effect.runPromise(Effect.scoped(program))
console.log("holds")
