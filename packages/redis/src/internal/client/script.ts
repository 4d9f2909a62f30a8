/**
 * Runs Lua scripts, even if the server no longer has them in its cache. A script's types come from the KEYS, ARGV and
 * Reply lines in its Lua file's header comment. Batches are sent through a `CommandSink`, and all other calls through
 * `Redis`.
 *
 * This module does not use Effect's `Redis.eval`. If the script is missing, `Redis.eval` sends SCRIPT LOAD and repeats
 * EVALSHA. On a Cluster, that fails again if the SCRIPT LOAD goes to another node. `send` repeats the call with EVAL
 * instead.
 */
import type { BackendError, StoreError } from "@effect-simba/core/SimbaError"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Schema from "effect/Schema"
import { type Args, type CommandSink, type Failure, sendOver } from "./commandSink.ts"
import { reader } from "./decode.ts"
import { DriverError } from "./driverError.ts"
import * as Redis from "./effectRedis.ts"
import { backendError, fromRedis, isForgotten } from "./errors.ts"

type Packed = readonly [keys: ReadonlyArray<string>, args: ReadonlyArray<string | number>]

/** The Lua code. It is constant: names and numbers are passed only in KEYS and ARGV. */
export interface Script<Params, Reply, Encoded = unknown> {
  readonly text: Redis.Script<{ readonly params: Packed; readonly result: unknown }>
  readonly reply: Schema.Codec<Reply, Encoded>
  /** Returns KEYS and ARGV in the order given in the Lua file's header comment. */
  readonly pack: (params: Params) => Packed
}

export const script = <Params, Reply, Encoded>(
  lua: string,
  reply: Schema.Codec<Reply, Encoded>,
  pack: (params: Params) => Packed
): Script<Params, Reply, Encoded> => ({
  text: Redis.script((keys: Packed[0], args: Packed[1]) => [...keys, ...args], {
    numberOfKeys: (keys) => keys.length,
    lua
  }).withReturnType<unknown>(),
  reply,
  pack
})

export interface Loaded {
  readonly lua: string
  readonly sha: string
}

const loadText = (redis: Redis.Redis["Service"], lua: string): Effect.Effect<Loaded, Redis.RedisError> =>
  Effect.map(redis.send<string>("SCRIPT", "LOAD", lua), (sha) => ({ lua, sha }))

export const load = (
  redis: Redis.Redis["Service"],
  { text: { lua } }: Script<never, unknown>
): Effect.Effect<Loaded, BackendError> => Effect.mapError(loadText(redis, lua), fromRedis("load a script"))

/**
 * Calls a loaded script. `write` returns the arguments for EVALSHA or EVAL, starting with the script's hash or text. It
 * returns undefined if the caller has abandoned the call. If the server did not have the script, and so did not run it,
 * `write` is called again. The result is a function that cancels a command that has not been written yet.
 */
export const send = (
  sink: Pick<CommandSink["Service"], "send">,
  { lua, sha }: Loaded,
  write: (script: string, isRepeated: boolean) => Args | undefined,
  done: (failure: Failure | undefined, reply: unknown) => void
): () => void => {
  let cancel: (() => void) | undefined
  const attempt = (isRepeated: boolean) => {
    const args = write(isRepeated ? lua : sha, isRepeated)
    if (args === undefined) return
    try {
      cancel = sink.send(isRepeated ? "EVAL" : "EVALSHA", args, (failure, reply) => {
        if (isRepeated || failure === undefined || !isForgotten(failure.cause)) done(failure, reply)
        else attempt(true)
      })
    } catch (cause) {
      // Fail every caller, because no reply will come. The error is not retryable, because the arguments are at fault
      done({ cause: new DriverError(`the command cannot be written: ${cause}`, false) }, undefined)
    }
  }
  attempt(false)
  return () => cancel?.()
}

/** Each `Redis` service's scripts, loaded or being loaded, by their text. */
const loaded = new WeakMap<Redis.Redis["Service"], Map<string, Loaded | Deferred.Deferred<void, Redis.RedisError>>>()

/**
 * Loads a script on its first use. Concurrent first uses share the request and its failure, but not an interruption.
 * The mask prevents an interruption between `scripts.set` and `onExit`, which would leave the others waiting forever.
 */
const loadOnce = (redis: Redis.Redis["Service"], lua: string): Effect.Effect<Loaded, Redis.RedisError> =>
  Effect.uninterruptibleMask((restore) => {
    const scripts = loaded.get(redis) ?? new Map<string, Loaded | Deferred.Deferred<void, Redis.RedisError>>()
    loaded.set(redis, scripts)
    const known = scripts.get(lua)
    if (known !== undefined) {
      return "sha" in known
        ? Effect.succeed(known)
        : Effect.flatMap(restore(Deferred.await(known)), () => restore(loadOnce(redis, lua)))
    }
    const loading = Deferred.makeUnsafe<void, Redis.RedisError>()
    scripts.set(lua, loading)
    return Effect.onExit(restore(loadText(redis, lua)), (exit) =>
      Effect.sync(() => {
        if (Exit.isSuccess(exit)) scripts.set(lua, exit.value)
        else scripts.delete(lua)
        const isInterrupted = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
        Deferred.doneUnsafe(loading, isInterrupted ? Exit.void : Exit.asVoid(exit))
      }))
  })

/** Calls a script through `Redis`, for callers without a sink. An interruption abandons the request. */
export const evaluate = <Config extends { readonly params: ReadonlyArray<unknown>; readonly result: unknown }>(
  redis: Redis.Redis["Service"],
  { lua, numberOfKeys, params: argumentsOf }: Redis.Script<Config>
) =>
(...params: Config["params"]): Effect.Effect<Config["result"], Redis.RedisError> =>
  Effect.flatMap(loadOnce(redis, lua), (script) =>
    Effect.withFiber((fiber) =>
      Effect.callback((resume) => {
        const args = [String(numberOfKeys(...params)), ...argumentsOf(...params).map(String)]
        let isAbandoned = false
        const cancel = send(
          { send: sendOver(redis, Effect.runForkWith(fiber.context)) },
          script,
          (script) => isAbandoned ? undefined : [script, ...args],
          (failure, reply) =>
            resume(failure === undefined ? Effect.succeed(reply) : Effect.fail(Redis.redisError(failure.cause)))
        )
        return Effect.sync(() => {
          isAbandoned = true
          cancel()
        })
      })
    ))

/** Runs a script and decodes its reply. `operation` names it in errors. */
export const call = <Params, Reply>(
  redis: Redis.Redis["Service"],
  operation: string,
  { pack, reply, text }: Script<Params, Reply>
) => {
  const run = evaluate(redis, text)
  const read = reader(`the reply from the script to ${operation}`, reply)
  return (params: Params): Effect.Effect<Reply, StoreError> => {
    const packed = pack(params)
    return Effect.flatMap(
      Effect.mapError(run(...packed), ({ cause }) => backendError(operation, cause, packed[0])),
      read
    )
  }
}
