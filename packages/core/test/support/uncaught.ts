/** Collects uncaught errors until the scope closes. */
import { Effect } from "effect"

export const uncaught = Effect.gen(function*() {
  const thrown: Array<unknown> = []
  const listener = (error: unknown) => thrown.push(error)
  const former = process.listeners("uncaughtException")
  process.removeAllListeners("uncaughtException").on("uncaughtException", listener)
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      process.off("uncaughtException", listener)
      for (const one of former) process.on("uncaughtException", one)
    })
  )
  return thrown
})
