/** What the end of a contender leaves on a real server. */
import * as Mutex from "@effect-simba/core/Mutex"
import { RedisMutex } from "@effect-simba/redis"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { RedisServer, until } from "../../support/harness.ts"

layer(RedisServer.layer, { excludeTestServices: true })("a contender on a server", (it) => {
  it.effect("that is stopped has released its mutex: nobody sees the key any more", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      yield* Effect.gen(function*() {
        const jobs = yield* Mutex.contend("stopped jobs")
        for (let i = 0; i < 20; i++) {
          yield* jobs.start
          yield* until("it leads", Effect.map(jobs.state, ({ _tag }) => _tag === "Leading"))
          yield* jobs.stop
          assert.strictEqual(yield* server.send("EXISTS", "simba:{stopped jobs}"), 0, `round ${i}`)
        }
      }).pipe(Effect.scoped, Effect.provide(RedisMutex.layer({ redis: { url: server.url } })))
    }))
})
