/** Turns an acquire that is written as an Effect into the form that a store needs. */
import type { AcquireRequest, AcquireResult, MutexStore } from "@effect-simba/core/MutexStore"
import type { StoreError } from "@effect-simba/core/SimbaError"
import { Effect, type Fiber } from "effect"

type Ask = Effect.Effect<AcquireResult, StoreError>

export const acquiring = (
  ask: (request: AcquireRequest) => Ask,
  run: (ask: Ask) => Fiber.Fiber<AcquireResult, StoreError> = Effect.runFork
): MutexStore["Service"]["acquire"] =>
(request, done) => {
  const fiber = run(ask(request))
  fiber.addObserver(done)
  return () => fiber.interruptUnsafe()
}
