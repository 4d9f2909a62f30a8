/** An acquire that times out while the server is unreachable reports an outage, not a busy mutex. */
import type { SimbaError } from "@effect-simba/core"
import { createSimba } from "@effect-simba/redis/promise"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshName, openMutex, quiet, RedisServer } from "../../support/harness.ts"
import type { Server } from "../../support/redisServer.ts"

const outages: ReadonlyArray<readonly [string, RegExp, (server: Server) => Effect.Effect<unknown, unknown>]> = [
  ["down", /not connected|lost before the reply/, (server) => server.kill()],
  ["paused", /no reply|not connected/, (server) => server.pause],
  ["full", /OOM/, (server) =>
    Effect.andThen(
      server.send("CONFIG", "SET", "maxmemory", "1"),
      server.send("CONFIG", "SET", "maxmemory-policy", "noeviction")
    )]
]

describe("a timeout below the lease", () => {
  it.live.each(outages)("a server that is %s", ([, cause, begin]) =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const mutex = yield* openMutex(server)
      const other = yield* openMutex(server)
      const simba = yield* Effect.acquireRelease(
        Effect.promise(() => createSimba({ url: server.url })),
        (simba) => Effect.promise(() => simba.close())
      )
      const [free, taken] = [freshName("free"), freshName("taken")]
      yield* other.acquire(taken)
      yield* begin(server)
      const waiting = (name: string) => Effect.flip(Effect.scoped(mutex.acquire(name, { timeout: "3 seconds" })))
      const promised = Effect.flip(
        Effect.tryPromise({
          try: () => simba.withLock(free, { timeout: "3 seconds" }, () => Promise.resolve()),
          catch: (error) => error as SimbaError.AcquireError
        })
      )
      const errors = yield* Effect.all([waiting(free), waiting(taken), promised], { concurrency: "unbounded" })
      for (const error of errors) {
        assert.deepInclude(error, { _tag: "BackendError", isRetryable: true })
        assert.match(error.message, cause)
      }
    }).pipe(Effect.provide(quiet)), { timeout: 30_000 })
})
