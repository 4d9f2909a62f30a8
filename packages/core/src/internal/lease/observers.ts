/** Fibers that wait for the same event are told one after the other: what one of them throws is no matter of the next. */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as Scheduler from "effect/Scheduler"

/** Thrown by whoever observes a fiber that was just resumed. */
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

/** `Fiber.await` for a fiber that others may wait for, too. `waiting` is the one that runs this. */
export const awaitExit = <A, E>(
  fiber: Fiber.Fiber<A, E>,
  waiting: Fiber.Fiber<unknown, unknown>
): Effect.Effect<Exit.Exit<A, E>> =>
  Effect.callback((resume) =>
    Effect.sync(fiber.addObserver((exit) => isolate(waiting, () => resume(Effect.succeed(exit)))))
  )
