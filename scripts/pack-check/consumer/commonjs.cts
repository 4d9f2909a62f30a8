// A CommonJS program: `import` here becomes `require` of ES modules.
import { Mutex } from "@effect-simba/core"
import * as RedisMutex from "@effect-simba/redis/RedisMutex"
import { Effect } from "effect"

const layer = Mutex.layerMemory()
const program = Mutex.withLock("m")((lease) => Effect.succeed(lease.token))

Effect.runPromise(Effect.provide(program, layer)).then((token: number) => {
  if (!(token > 0) || typeof RedisMutex.layer !== "function") throw new Error("the mutex does not work")
  console.log("holds")
})
