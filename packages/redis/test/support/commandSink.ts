/** Adds command coalescing, as in `IoRedis`, to any other provider of `Redis`. */
import { Effect, Scheduler, type Scope } from "effect"
import type { Redis } from "effect/persistence/Redis"
import { type CommandSink, overRedis } from "../../src/internal/client/commandSink.ts"

/** A sink that sends the requests from one event-loop turn in one call. */
export const coalescing = (redis: Redis["Service"]): Effect.Effect<CommandSink["Service"], never, Scope.Scope> =>
  Effect.gen(function*() {
    const sink = yield* overRedis(redis)
    const dispatcher = (yield* Scheduler.Scheduler).makeDispatcher()
    return { ...sink, afterCurrentTask: (task) => dispatcher.scheduleTask(task, 0) }
  })
