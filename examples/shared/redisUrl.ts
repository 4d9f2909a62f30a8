/** The Redis for the small examples: the server at `REDIS_URL`, or an in-memory one inside this process. */
import { Config, Context, Effect, Layer, Option, Scope } from "effect"

/**
 * Starts an in-memory Redis inside this process. Clients connect to it over a socket. It stops when the scope closes.
 */
export const embedded = Effect.gen(function*() {
  const [FakeRedis, FakeRedisServer] = yield* Effect.promise(() =>
    Promise.all([import("@effect-simba/testkit/FakeRedis"), import("@effect-simba/testkit/FakeRedisServer")])
  )
  const fake = Context.get(yield* Layer.build(FakeRedis.layer({ trace: 0, undoDepth: 0 })), FakeRedis.FakeRedis)
  const { url } = yield* Effect.provideService(FakeRedisServer.listen(), FakeRedis.FakeRedis, fake)
  return url
})

export const redisUrl = Effect.gen(function*() {
  const url = yield* Config.option(Config.String("REDIS_URL"))
  return Option.isSome(url) ? url.value : yield* embedded
})

/** The same for examples without Effect. The in-memory Redis stops with the process. */
export const redisUrlPromise = (): Promise<string> =>
  Effect.runPromise(Effect.provideService(redisUrl, Scope.Scope, Scope.makeUnsafe()))
