/** A process whose turns of the event loop are longer than its command timeout: replies wait in the socket, and count. */
import { Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { assert, it } from "@effect/vitest"
import { Array as Arr, Effect, Layer } from "effect"
import { capturingLogs, connections, RedisServer } from "../../support/harness.ts"

/** Twenty milliseconds without a pause, again and again. */
const busy = Effect.forever(Effect.andThen(
  Effect.sync(() => {
    const end = performance.now() + 20
    while (performance.now() < end);
  }),
  Effect.yieldNow
))

it.live("a process with turns of twice the command timeout keeps its connections and leases, and reports no outage", () =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    yield* Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const context = yield* Layer.build(Layer.fresh(RedisMutex.layer({
        ttl: "2 seconds",
        transition: "6 seconds",
        commandTimeout: "500 millis",
        redis: { url: server.url, serverChecks: false }
      })))
      const names = Arr.makeBy(20, (i) => `m${i}`)
      const leases = yield* Effect.forEach(names, (name) => Effect.provide(Mutex.acquire(name), context))
      const clients = Effect.forEach(["simba:commands", "simba:subscriber"], (name) => connections(server, name))
      const before = yield* clients
      yield* Effect.forEach(Arr.makeBy(60, () => busy), (work) => Effect.forkScoped(work))
      yield* Effect.sleep("8 seconds")
      for (const lease of leases) yield* lease.ensure
      assert.deepStrictEqual(yield* clients, before)
    }).pipe(Effect.scoped, Effect.provide(capturingLogs(lines)))
    // It says that it is busy, and nothing else
    assert.deepStrictEqual(lines.filter((line) => !line.startsWith("This process is so busy")), [])
  }))
