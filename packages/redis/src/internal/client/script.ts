/** A script with the types of its head, and how it reaches a server that does not know it. */
import type { StoreError } from "@effect-simba/core/SimbaError"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { reader } from "./decode.ts"
import * as Redis from "./effectRedis.ts"
import { backendError, isForgotten } from "./errors.ts"

type Packed = readonly [keys: ReadonlyArray<string>, args: ReadonlyArray<string | number>]

/** The text is constant: names and numbers travel in KEYS and ARGV only. */
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

/** Effect reloads a forgotten script once. If it is forgotten again, or was loaded on another node, EVAL sends the text. */
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
