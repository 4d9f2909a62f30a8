// Checks the in-memory mutex store.
import * as MutexStore from "@effect-simba/core/MutexStore"
import { Effect, Layer } from "effect"
import { mutexes } from "./scenario.mjs"

const program = Effect.flatMap(
  Layer.build(MutexStore.layerMemory),
  (shared) => mutexes(() => Layer.succeedContext(shared))
)

await Effect.runPromise(Effect.scoped(program))
console.log("holds")
