/** The Redis of the small examples: the server at `REDIS_URL`, or one in the memory of this process. */
import { Config, Context, Effect, Layer, Option, Scope } from "effect"

/** A Redis in the memory of this process, which clients reach over a socket. Ends with the scope. */
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

/** For examples without Effect: the Redis in memory lives as long as the process. */
export const redisUrlPromise = (): Promise<string> =>
  Effect.runPromise(Effect.provideService(redisUrl, Scope.Scope, Scope.makeUnsafe()))
