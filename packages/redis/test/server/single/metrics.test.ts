import * as MutexMetrics from "@effect-simba/core/MutexMetrics"
import type { LeaseId } from "@effect-simba/core/MutexName"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Metric, Scope } from "effect"
import {
  capturingLogs,
  freshName,
  inboxChannelOf,
  keysOf,
  openMutex,
  queued,
  RedisServer,
  until
} from "../../support/harness.ts"

layer(RedisServer.layer, { excludeTestServices: true })("metrics on Redis", (it) => {
  it.effect("an unreadable message is counted, logged and skipped without affecting the next hand-off", () => {
    const lines: Array<string> = []
    return Effect.gen(function*() {
      const server = yield* RedisServer
      const m = freshName("malformed")
      const count = (metric: Metric.Counter<number>) => Effect.map(Metric.value(metric), ({ count }) => count)
      const options = { ttl: "10 minutes", transition: "5 minutes" } as const
      const [holder, mutex] = yield* Effect.all([openMutex(server, options), openMutex(server, options)])
      const scope = yield* Scope.make()
      yield* Scope.provide(holder.acquire(m), scope)
      const waiting = yield* Effect.forkScoped(Effect.scoped(mutex.acquire(m)))
      yield* queued(server, m, 1)
      assert.strictEqual((yield* Metric.value(MutexMetrics.mutex.waiters)).value, 1)
      const [id] = (yield* server.send("ZRANGE", keysOf(m).queue, "0", "-1")) as [LeaseId]
      assert.strictEqual(yield* server.send("PUBLISH", inboxChannelOf(id), "nonsense"), 1)
      yield* until("the message is counted", Effect.map(count(MutexMetrics.mutex.malformedMessages), (n) => n === 1))
      assert.isTrue(lines.some((line) => line.includes("nonsense")), "the message's text is logged")
      yield* Scope.close(scope, yield* Effect.exit(Effect.void))
      yield* Fiber.join(waiting)
      assert.strictEqual(yield* count(MutexMetrics.mutex.handOffs), 1)
      assert.strictEqual((yield* Metric.value(MutexMetrics.mutex.waiters)).value, 0)
      assert.strictEqual((yield* Metric.value(MutexMetrics.mutex.held)).value, 0)
    }).pipe(Effect.provide(capturingLogs(lines)), Effect.provideService(Metric.MetricRegistry, new Map()))
  })
})
