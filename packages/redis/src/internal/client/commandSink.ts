/** What the hot path needs beyond Effect's `Redis` service: commands without a fiber each. */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { type Redis, RedisError } from "effect/persistence/Redis"
import * as Scheduler from "effect/Scheduler"

export interface Failure {
  readonly cause: unknown
}

export interface CommandSink {
  /** Whether what is sent now goes out at once, and what is sent later comes behind it. */
  readonly isReady: () => boolean
  /** Runs a task when those that run now have asked for all that they want. */
  readonly atEndOfTurn: (task: () => void) => void
  /** `done` is called once. Answers how to say that nobody wants it any more, where it may not have gone out yet. */
  readonly send: (
    command: string,
    args: ReadonlyArray<string>,
    done: (failure: Failure | undefined, reply: unknown) => void
  ) => (() => void) | undefined
}

/** Provided by layers that can; without it commands go through `Redis`. */
export const CommandSink: Context.Reference<CommandSink | undefined> = Context.Reference<CommandSink | undefined>(
  "@effect-simba/redis/internal/Direct",
  { defaultValue: () => undefined }
)

const causeOf = (cause: Cause.Cause<RedisError>): unknown => {
  const error = Cause.squash(cause)
  return error instanceof RedisError ? error.cause : error
}

/**
 * By Effect's service, a fiber for each command: whoever asked may be interrupted without disturbing others. It tells
 * nothing about the connection. Without `coalescing` each command goes out as it is asked for: a turn more on the way
 * would be one that `TestClock` does not wait for.
 */
export const overRedis = (
  redis: Redis["Service"],
  { coalescing }: { readonly coalescing: boolean }
): Effect.Effect<CommandSink> =>
  Effect.map(Effect.context<never>(), (context) => {
    const run = Effect.runForkWith(context)
    const dispatcher = Context.get(context, Scheduler.Scheduler).makeDispatcher()
    return {
      isReady: () => false,
      atEndOfTurn: coalescing ? (task) => dispatcher.scheduleTask(task, 0) : (task) => task(),
      send: (command, args, done) => {
        const fiber = run(redis.send(command, ...args))
        fiber.addObserver((exit) =>
          Exit.isSuccess(exit) ? done(undefined, exit.value) : done({ cause: causeOf(exit.cause) }, undefined)
        )
        return () => fiber.interruptUnsafe()
      }
    }
  })
