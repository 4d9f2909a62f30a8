/** Provides `REDIS_URL`. If the environment does not set it, starts an in-memory Redis inside this process. */
import { Config, ConfigProvider, Effect, Option } from "effect"
import { embedded } from "./redisUrl.ts"

export const RedisEnv = ConfigProvider.layer(Effect.gen(function*() {
  const present = yield* ConfigProvider.ConfigProvider
  const url = yield* Config.option(Config.String("REDIS_URL"))
  if (Option.isSome(url)) return present
  return ConfigProvider.orElse(present, ConfigProvider.fromUnknown({ REDIS_URL: yield* embedded }))
}))
