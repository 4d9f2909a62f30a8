/** Checks both stores on a real server, over any `Redis` layer. */
import * as RedisMutex from "@effect-simba/redis/RedisMutex"
import * as RedisStreams from "@effect-simba/redis/streams/RedisStreams"
import { Effect, Layer } from "effect"
import { mutexes, outage, streams } from "./scenario.mjs"

export const onServer = async (redis) => {
  const mutexStore = () => RedisMutex.layerStore.pipe(Layer.provideMerge(Layer.fresh(redis)))
  const streamStore = () => RedisStreams.layerStore.pipe(Layer.provideMerge(Layer.fresh(redis)))
  await Effect.runPromise(Effect.all([mutexes(mutexStore), outage(mutexStore), streams(streamStore)]))
  console.log("holds")
}
