/** Scripts: their keys, arguments and replies, and how their text reaches a server that does not know it. */
import * as Effect from "effect/Effect"
import * as Redis from "effect/persistence/Redis"
import { isForgotten } from "./redisFailure.ts"

/** What a script takes, and what it is expected to reply. Replies are read by codecs all the same. */
export type Script<Keys extends ReadonlyArray<string>, Args extends ReadonlyArray<string | number>, Reply> =
  Redis.Script<{ readonly params: readonly [keys: Keys, args: Args]; readonly result: Reply }>

/** Slots that come again for each item, in the order of `Slots`. */
export type Each<Slots extends ReadonlyArray<unknown>> = ReadonlyArray<Slots[number]>

/** The descriptor of a script. The text is constant: names and numbers travel in KEYS and ARGV only. */
export const script = <Keys extends ReadonlyArray<string>, Args extends ReadonlyArray<string | number>, Reply>(
  lua: string
): Script<Keys, Args, Reply> =>
  Redis.script((keys: Keys, args: Args) => [...keys, ...args], { numberOfKeys: (keys) => keys.length, lua })
    .withReturnType<Reply>()

/**
 * Effect loads a script that the server forgot, and tries once more. If it was forgotten again meanwhile, or loaded on
 * another node, the text itself goes along.
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
