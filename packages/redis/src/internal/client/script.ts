/** A script with the types of its head, and the ways to run it on a server that may have forgotten it. */
import type { BackendError, StoreError } from "@effect-simba/core/SimbaError"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { CommandSink, Failure } from "./commandSink.ts"
import { reader } from "./decode.ts"
import { DriverError } from "./driverError.ts"
import * as Redis from "./effectRedis.ts"
import { backendError, fromRedis, isForgotten } from "./errors.ts"

type Packed = readonly [keys: ReadonlyArray<string>, args: ReadonlyArray<string | number>]

/** The text is constant: names and numbers are passed only in KEYS and ARGV. */
export interface Script<Params, Reply, Encoded = unknown> {
  readonly text: Redis.Script<{ readonly params: Packed; readonly result: unknown }>
  readonly reply: Schema.Codec<Reply, Encoded>
  /** In the order of the head. */
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

export const load = (
  redis: Redis.Redis["Service"],
  { text: { lua } }: Script<never, unknown>
): Effect.Effect<Loaded, BackendError> =>
  Effect.mapBoth(redis.send<string>("SCRIPT", "LOAD", lua), {
    onFailure: fromRedis("load a script"),
    onSuccess: (sha) => ({ lua, sha })
  })

/**
 * Sends a loaded script. `write` returns the arguments of the command, starting with the hash or text of the script. It
 * is called again for a server that has forgotten the script and ran nothing, and returns undefined if the caller no
 * longer wants it. Returns a function that cancels a command that is not written yet.
 */
export const send = (
  sink: CommandSink["Service"],
  { lua, sha }: Loaded,
  write: (script: string, isRepeated: boolean) => ReadonlyArray<string> | undefined,
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
      // No caller may wait for a reply that never comes
      done({ cause: new DriverError(`the command cannot be written: ${cause}`, false) }, undefined)
    }
  }
  attempt(false)
  return () => cancel?.()
}

/**
 * Runs it through `Redis`, without loading it first. Effect reloads a forgotten script once. If it is forgotten again,
 * or was loaded on another node, EVAL sends the text.
 */
export const evaluate = <Config extends { readonly params: ReadonlyArray<unknown>; readonly result: unknown }>(
  redis: Redis.Redis["Service"],
  script: Redis.Script<Config>
) => {
  const run = redis.eval(script)
  return (...params: Config["params"]): Effect.Effect<Config["result"], Redis.RedisError> =>
    Effect.catchIf(run(...params), (error) => isForgotten(error.cause), () =>
      redis.send<Config["result"]>(
        "EVAL",
        script.lua,
        String(script.numberOfKeys(...params)),
        ...script.params(...params).map(String)
      ))
}

/** Runs a script and decodes its reply. `operation` names it in errors. */
export const call = <Params, Reply>(
  redis: Redis.Redis["Service"],
  operation: string,
  { pack, reply, text }: Script<Params, Reply>
) => {
  const run = evaluate(redis, text)
  const read = reader(`the reply of the script to ${operation}`, reply)
  return (params: Params): Effect.Effect<Reply, StoreError> => {
    const packed = pack(params)
    return Effect.flatMap(
      Effect.mapError(run(...packed), ({ cause }) => backendError(operation, cause, packed[0])),
      read
    )
  }
}
