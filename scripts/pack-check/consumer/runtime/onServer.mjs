/** Both stores on a real server, over any layer of `Redis` and `Subscriber`. */
import * as RedisMutexStore from "@effect-simba/redis/RedisMutexStore"
import * as RedisStreamStore from "@effect-simba/redis/streams/RedisStreamStore"
import { Effect, Layer } from "effect"
import { mutexes, outage, streams } from "./scenario.mjs"

export const onServer = async (redis) => {
  const mutexStore = () => RedisMutexStore.layer.pipe(Layer.provideMerge(Layer.fresh(redis)))
  const streamStore = () => RedisStreamStore.layer.pipe(Layer.provideMerge(Layer.fresh(redis)))
  await Effect.runPromise(Effect.all([mutexes(mutexStore), outage(mutexStore), streams(streamStore)]))
  console.log("holds")
}
