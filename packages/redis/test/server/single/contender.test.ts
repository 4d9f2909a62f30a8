/** A stopped contender does not leave an owner behind on a real server. */
import * as Mutex from "@effect-simba/core/Mutex"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { RedisServer, until } from "../../support/harness.ts"

layer(RedisServer.layer, { excludeTestServices: true })("a contender on a server", (it) => {
  it.effect("releases its mutex before `stop` returns", () =>
    Effect.gen(function*() {
      const { url } = yield* RedisServer
      // Open the connection first, so that nothing delays the check
      const observer = Context.get(yield* Layer.build(IoRedis.layer({ url })), Redis)
      const observed: Array<unknown> = []
      yield* Effect.gen(function*() {
        const jobs = yield* Mutex.contend("stopped jobs")
        for (let i = 0; i < 20; i++) {
          yield* jobs.start
          yield* until("it leads", Effect.map(jobs.state, ({ _tag }) => _tag === "Leading"))
          yield* jobs.stop
          observed.push(yield* observer.send("EXISTS", "simba:{stopped jobs}"))
        }
      }).pipe(Effect.scoped, Effect.provide(RedisMutex.layer({ redis: { url } })))
      assert.deepStrictEqual(observed, Array.from({ length: 20 }, () => 0))
    }))
})
