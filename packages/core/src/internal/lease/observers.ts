/**
 * Notifies an event's observers one by one. An exception in one does not affect the others. Used by `ownedLease`,
 * `protectedWork` and `leaseHandle`.
 */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as Scheduler from "effect/Scheduler"

/** Throws `error` in a separate task, as an uncaught exception. For exceptions in a fiber's observers. */
export const throwUncaught = (dispatcher: Scheduler.SchedulerDispatcher, error: unknown): void =>
  dispatcher.scheduleTask(() => {
    throw error
  }, 0)

export const isolate = ({ currentDispatcher }: Fiber.Fiber<unknown, unknown>, act: () => void): void => {
  try {
    act()
  } catch (error) {
    throwUncaught(currentDispatcher, error)
  }
}

/**
 * Like `Fiber.await`, for a fiber with other observers. The fiber `waiting` runs it; `run` may delay its continuation.
 */
export const awaitExit = <A, E>(
  fiber: Fiber.Fiber<A, E>,
  waiting: Fiber.Fiber<unknown, unknown>,
  run: (resume: () => void) => void = (resume) => resume()
): Effect.Effect<Exit.Exit<A, E>> =>
  Effect.callback((resume) =>
    Effect.sync(fiber.addObserver((exit) => run(() => isolate(waiting, () => resume(Effect.succeed(exit))))))
  )

/** The listeners for one event. A listener must not throw. */
export class Listeners<A> {
  private listeners: Set<(value: A) => void> | undefined

  /** Returns a function that removes the listener. */
  add(listener: (value: A) => void): () => void {
    const listeners = this.listeners ??= new Set()
    listeners.add(listener)
    return () => listeners.delete(listener)
  }

  /**
   * Waits for the event. `past` checks in the same step whether the event has already happened: a yield between the two
   * could miss it.
   */
  next(past: () => Effect.Effect<A> | undefined): Effect.Effect<A> {
    return Effect.withFiber((waiting) =>
      Effect.callback((resume) => {
        const found = past()
        if (found !== undefined) return resume(found)
        return Effect.sync(this.add((value) => isolate(waiting, () => resume(Effect.succeed(value)))))
      })
    )
  }

  notify(value: A): void {
    const { listeners } = this
    this.listeners = undefined
    listeners?.forEach((listener) => listener(value))
  }
}
