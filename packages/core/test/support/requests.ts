/** Turns requests that are written as Effects into the form that a store needs. */
import type {
  AcquireRequest,
  AcquireResult,
  GuardRequest,
  GuardResult,
  MutexStore
} from "@effect-simba/core/MutexStore"
import type { StoreError } from "@effect-simba/core/SimbaError"
import { Effect, type Exit, type Fiber } from "effect"

type Run = <A>(request: Effect.Effect<A, StoreError>) => Fiber.Fiber<A, StoreError>

const start = <A>(
  run: Run,
  request: Effect.Effect<A, StoreError>,
  done: (exit: Exit.Exit<A, StoreError>) => void
) => {
  const fiber = run(request)
  fiber.addObserver(done)
  return () => fiber.interruptUnsafe()
}

export const acquiring = (
  ask: (request: AcquireRequest) => Effect.Effect<AcquireResult, StoreError>,
  run: Run = Effect.runFork
): MutexStore["Service"]["acquire"] =>
(request, done) => start(run, ask(request), done)

export const guarding = (
  ask: (requests: ReadonlyArray<GuardRequest>) => Effect.Effect<ReadonlyArray<GuardResult>, StoreError>,
  run: Run = Effect.runFork
): MutexStore["Service"]["guard"] =>
(requests, done) => start(run, ask(requests), done)
