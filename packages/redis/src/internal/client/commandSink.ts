/**
 * Sends commands without starting a fiber for each. Effect's `Redis` service cannot do this. Used for acquires,
 * releases and renewals.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { type Redis, RedisError } from "./effectRedis.ts"

export interface Failure {
  readonly cause: unknown
}

/**
 * A command's arguments. A function belongs to one command and always returns the same ones, so that a sink needs to
 * encode the command only once.
 */
export type Args = ReadonlyArray<string> | (() => ReadonlyArray<string>)

/** Optional for `Redis` providers. */
export class CommandSink extends Context.Service<CommandSink, {
  /**
   * Whether the connection is ready. If it is, commands are written immediately, and later commands cannot overtake
   * them.
   */
  readonly isReady: () => boolean
  /** Runs `task` after the event loop's current task. */
  readonly afterCurrentTask: (task: () => void) => void
  /**
   * Sends a command, and calls `done` once. Returns a function that cancels the command if it has not been written yet.
   */
  readonly send: (
    command: string,
    args: Args,
    done: (failure: Failure | undefined, reply: unknown) => void
  ) => (() => void) | undefined
}>()("@effect-simba/redis/CommandSink") {}

const causeOf = (cause: Cause.Cause<RedisError>): unknown => {
  const error = Cause.squash(cause)
  return error instanceof RedisError ? error.cause : error
}

/** Sends through Effect's `Redis` service. `run` starts a fiber for each command. */
export const sendOver = (
  redis: Redis["Service"],
  run: (command: Effect.Effect<unknown, RedisError>) => Fiber.Fiber<unknown, RedisError>
): CommandSink["Service"]["send"] =>
(command, args, done) => {
  const fiber = run(redis.send(command, ...(typeof args === "function" ? args() : args)))
  fiber.addObserver((exit) =>
    Exit.isSuccess(exit) ? done(undefined, exit.value) : done({ cause: causeOf(exit.cause) }, undefined)
  )
  return () => fiber.interruptUnsafe()
}

/**
 * A sink on top of Effect's `Redis` service. `afterCurrentTask` runs its task immediately, because `TestClock` does not
 * wait for another pass of the scheduler. Closing the scope interrupts commands that are still waiting for a reply.
 */
export const overRedis = (redis: Redis["Service"]): Effect.Effect<CommandSink["Service"], never, Scope.Scope> =>
  Effect.map(FiberSet.makeRuntime<never, unknown, RedisError>(), (run) => ({
    isReady: () => false,
    afterCurrentTask: (task) => task(),
    send: sendOver(redis, run)
  }))

/** Returns the `Redis` provider's sink, or else a sink on top of `Redis.send`. */
export const currentSink = (redis: Redis["Service"]): Effect.Effect<CommandSink["Service"], never, Scope.Scope> =>
  Effect.flatMap(
    Effect.serviceOption(CommandSink),
    Option.match({ onNone: () => overRedis(redis), onSome: (sink) => Effect.succeed(sink) })
  )
