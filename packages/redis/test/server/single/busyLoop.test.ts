/** A process whose event-loop turns outlast its command timeout still uses the replies waiting in its sockets. */
import { Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { assert, it } from "@effect/vitest"
import { Array as Arr, Effect, Fiber, Layer } from "effect"
import { capturingLogs, connections, RedisServer } from "../../support/harness.ts"

/** Blocks the event loop for 40 ms. Sixty such tasks make a turn of 2.4 seconds. */
const busy = Effect.forever(Effect.andThen(
  Effect.sync(() => {
    const end = performance.now() + 40
    while (performance.now() < end);
  }),
  Effect.yieldNow
))

it.live("with turns five times the command timeout, a process keeps its connections and leases and reports no outage", () =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    yield* Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const context = yield* Layer.build(Layer.fresh(RedisMutex.layer({
        ttl: "3 seconds",
        transition: "9 seconds",
        commandTimeout: "500 millis",
        redis: { url: server.url, serverChecks: false }
      })))
      const names = Arr.makeBy(20, (i) => `m${i}`)
      const leases = yield* Effect.forEach(names, (name) => Effect.provide(Mutex.acquire(name), context))
      const clients = Effect.forEach(["simba:commands", "simba:subscriber"], (name) => connections(server, name))
      const before = yield* clients
      const works = yield* Effect.forEach(Arr.makeBy(60, () => busy), (work) => Effect.forkScoped(work))
      yield* Effect.sleep("12 seconds")
      for (const lease of leases) yield* lease.ensure
      // The server check has its own timeout
      yield* Fiber.interruptAll(works)
      assert.deepStrictEqual(yield* clients, before)
    }).pipe(Effect.scoped, Effect.provide(capturingLogs(lines)))
    // The only warning is that the process is busy
    assert.deepStrictEqual(lines.filter((line) => !line.startsWith("This process was paused or too busy")), [])
  }))
