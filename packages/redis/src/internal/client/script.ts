import * as Effect from "effect/Effect"
import type { Redis, RedisError, Script } from "effect/persistence/Redis"
import { isForgotten } from "./errors.ts"

/**
 * Effect loads a script that the server forgot, and tries once more. If it was forgotten again meanwhile, or loaded on
 * another node, the text itself goes along.
 */
export const evaluate = <Config extends { readonly params: ReadonlyArray<unknown>; readonly result: unknown }>(
  redis: Redis["Service"],
  script: Script<Config>
) => {
  const run = redis.eval(script)
  return (...params: Config["params"]): Effect.Effect<Config["result"], RedisError> =>
    Effect.catchIf(run(...params), (error) => isForgotten(error.cause), () =>
      redis.send<Config["result"]>(
        "EVAL",
        script.lua,
        String(script.numberOfKeys(...params)),
        ...script.params(...params).map(String)
      ))
}
