/** Outages of a real server cause no unhandled rejection. */
import * as Mutex from "@effect-simba/core/Mutex"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { freshName, held, killConnections, openMutex, queued, quiet, RedisServer } from "../../support/harness.ts"

it.live("no outage ends in an unhandled rejection", () =>
  Effect.gen(function*() {
    const unhandled: Array<unknown> = []
    const note = (error: unknown) => unhandled.push(error)
    yield* Effect.acquireRelease(
      Effect.sync(() => process.on("unhandledRejection", note).on("uncaughtException", note)),
      () => Effect.sync(() => process.off("unhandledRejection", note).off("uncaughtException", note))
    )
    const server = yield* RedisServer.start()
    const options = {
      ttl: "200 millis",
      transition: "3 seconds",
      commandTimeout: "200 millis",
      releaseTimeout: "300 millis",
      redis: { commandTimeout: "1 second" }
    } as const
    yield* Effect.scoped(Effect.gen(function*() {
      const mutex = yield* openMutex(server, options)
      const m = freshName("outage")
      const holding = yield* Effect.forkScoped(Effect.exit(mutex.withLock(m)(Effect.never)))
      yield* held(server, m)
      const [second, third] = yield* Effect.all([openMutex(server, options), openMutex(server, options)])
      const waiting = yield* Effect.forkScoped(Effect.exit(Effect.scoped(second.acquire(m))))
      const gone = yield* Effect.forkScoped(Effect.scoped(third.acquire(m)))
      yield* Effect.forkScoped(Effect.exit(Stream.runDrain(Stream.provideService(Mutex.events(m), Mutex.Mutex, mutex))))
      const contention = yield* Effect.provideService(Mutex.contend(freshName("outage")), Mutex.Mutex, mutex)
      yield* Effect.forkScoped(Effect.exit(contention.whileLeader(Effect.never)))
      yield* queued(server, m, 2)
      yield* server.pause
      yield* Effect.sleep("1500 millis")
      yield* Fiber.interrupt(gone)
      yield* server.kill()
      yield* Fiber.join(holding)
      yield* Fiber.join(waiting)
      yield* Effect.exit(Effect.scoped(mutex.acquire(m)))
      yield* Effect.exit(mutex.forceRelease(m))
      yield* server.restart
      yield* killConnections(server, "simba:subscriber")
      yield* Effect.retry(mutex.withLock(m)(Effect.void), { times: 20 })
      yield* server.kill()
    }))
    yield* Effect.sleep("300 millis")
    assert.deepStrictEqual(unhandled, [])
  }).pipe(Effect.provide(quiet)), { tags: ["B22"] })
