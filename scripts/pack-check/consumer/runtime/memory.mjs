import { MemoryMutexStore } from "@effect-simba/core"
import { Effect, Layer } from "effect"
import { mutexes } from "./scenario.mjs"

const program = Effect.flatMap(
  Layer.build(MemoryMutexStore.layer),
  (shared) => mutexes(() => Layer.succeedContext(shared))
)

await Effect.runPromise(Effect.scoped(program))
console.log("holds")
