/** Descriptors of scripts, and how a script reaches a server that does not know it. */
import type { StoreError } from "@effect-simba/core/SimbaError"
import * as Effect from "effect/Effect"
import type { Reader } from "./decode.ts"
import * as Redis from "./effectRedis.ts"
import { backendError, isForgotten } from "./errors.ts"

/** Keys and arguments of a script. A codec reads its reply. */
export type Script<Keys extends ReadonlyArray<string>, Args extends ReadonlyArray<string | number>> = Redis.Script<
  { readonly params: readonly [keys: Keys, args: Args]; readonly result: unknown }
>

/** Slots that come again for each item, in the order of `Slots`. */
export type Each<Slots extends ReadonlyArray<unknown>> = ReadonlyArray<Slots[number]>

/** The descriptor of a script. The text is constant: names and numbers travel in KEYS and ARGV only. */
export const script = <Keys extends ReadonlyArray<string>, Args extends ReadonlyArray<string | number>>(
  lua: string
): Script<Keys, Args> =>
  Redis.script((keys: Keys, args: Args) => [...keys, ...args], { numberOfKeys: (keys) => keys.length, lua })
    .withReturnType<unknown>()

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

/** Runs a script and decodes its reply. */
export const call = <Keys extends ReadonlyArray<string>, Args extends ReadonlyArray<string | number>, T>(
  redis: Redis.Redis["Service"],
  operation: string,
  script: Script<Keys, Args>,
  read: Reader<T>
) => {
  const run = evaluate(redis, script)
  return (keys: Keys, args: Args): Effect.Effect<T, StoreError> =>
    Effect.flatMap(Effect.mapError(run(keys, args), ({ cause }) => backendError(operation, cause, keys)), read)
}
