/** How several consumers react to events for expired leases, and the metrics for takes. */
import * as StreamClient from "@effect-simba/core/streams/StreamClient"
import * as StreamMetrics from "@effect-simba/core/streams/StreamMetrics"
import { RedisStreams } from "@effect-simba/redis/streams"
import { FakeNetwork, FakeRedis } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Metric, Option, Scope } from "effect"
import { TestClock } from "effect/testing"
import { capturingLogs } from "../support/harness.ts"

/** Opens a consumer with its own connection until the scope closes. */
const open = Effect.fnUntraced(function*(options: StreamClient.Options & { readonly db?: number }) {
  const name = `${options.service} ${options.processName}`
  const scope = yield* Scope.fork(yield* Effect.scope)
  const context = yield* Layer.buildWithScope(
    RedisStreams.layerRedis({ enableEvents: true, gracePeriod: 0, ...options }).pipe(
      Layer.provide(FakeRedis.layerClient({ name, db: options.db ?? 0, commandTimeout: "500 millis" }))
    ),
    scope
  )
  const client = Context.get(context, StreamClient.StreamClient)
  const link = yield* FakeNetwork.link(name)
  // Each request and each reply takes 2 ms
  yield* link.set({ requestDelay: [2, 2], replyDelay: [2, 2] })
  return {
    name,
    client,
    run: Effect.forkIn(client.run(Effect.never), scope, { startImmediately: true }),
    kill: Effect.andThen(link.partition(), Effect.asVoid(Effect.forkDetach(Scope.close(scope, Exit.void))))
  }
})

/** Runs a test while virtual time passes until its scope has closed. */
const playing = <A, E>(body: Effect.Effect<A, E, FakeRedis.FakeRedis | Scope.Scope>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(Effect.scoped(body))
    while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("50 millis")
    return yield* Fiber.join(fiber)
  }).pipe(
    Effect.provide(Layer.merge(FakeRedis.layer(), capturingLogs([]))),
    Effect.provideService(Metric.MetricRegistry, new Map())
  )

const count = (metric: Metric.Counter<number>) => Effect.map(Metric.value(metric), ({ count }) => count)

const never = { sweepInterval: "1 hour" } as const

describe("expiry events", () => {
  it.effect("reach only consumers whose connection uses the same database", () =>
    playing(Effect.gen(function*() {
      const [a, b, other] = [
        yield* open({ service: "orders", processName: "a", db: 3 }),
        yield* open({ service: "orders", processName: "b", db: 3, rebalance: false, ...never }),
        yield* open({ service: "orders", processName: "c", db: 4, rebalance: false, ...never })
      ]
      yield* a.run
      yield* a.client.announceAll([{ stream: "one" }, { stream: "two" }])
      yield* Effect.sleep("1 second")
      yield* b.run
      yield* other.run
      yield* Effect.sleep("1 second")
      yield* a.kill
      yield* Effect.sleep("4 seconds")
      assert.deepStrictEqual((yield* b.client.owned).map(({ stream }) => String(stream)).sort(), ["one", "two"])
      assert.deepStrictEqual(yield* other.client.owned, [])
    })), { tags: ["G22"] })

  it.effect(
    "make exactly one member take each data stream, without affecting other services",
    () =>
      playing(Effect.gen(function*() {
        const orders = yield* Effect.forEach(
          ["a", "b", "c", "d"],
          (processName) => open({ service: "orders", processName, ...never })
        )
        const billing = yield* open({ service: "billing", processName: "a", ...never })
        const [a, ...others] = orders
        yield* a!.run
        yield* a!.client.announceAll(Array.from({ length: 8 }, (_, i) => ({ stream: `orders ${i}` })))
        yield* Effect.sleep("500 millis")
        for (const { run } of others) {
          yield* run
        }
        yield* billing.run
        // Wait until every member has its share
        yield* Effect.sleep("1 minute")
        const owned = (yield* a!.client.owned).length
        assert.strictEqual(owned, 2)
        const server = yield* FakeRedis.FakeRedis
        yield* server.clearTrace
        const before = yield* Effect.all([
          count(StreamMetrics.stream.takes.taken),
          count(StreamMetrics.stream.acquisitions.expiry)
        ])
        yield* a!.kill
        yield* Effect.sleep("3 seconds")
        const after = yield* Effect.all([
          count(StreamMetrics.stream.takes.taken),
          count(StreamMetrics.stream.acquisitions.expiry)
        ])
        assert.deepStrictEqual(
          after.map((n, i) => n - before[i]!),
          [owned, owned]
        )
        assert.strictEqual(yield* count(StreamMetrics.stream.takes.occupied), 0, "no member was too late")
        assert.strictEqual(yield* count(StreamMetrics.stream.takes.notIdle), 0)
        const trace = yield* server.trace
        const said = trace.filter(({ client, role }) => client === billing.name && role !== "subscriber")
        assert.isAbove(said.length, 0)
        assert.isFalse(
          said.some(({ args }) => args.some((text) => text.includes("orders"))),
          "the billing consumer sends no requests about orders"
        )
      })),
    { tags: ["G23"] }
  )
})

describe("metrics for takes", () => {
  it.effect("count successful takes, not requests", () =>
    playing(Effect.gen(function*() {
      const [a, b] = [
        yield* open({ service: "figures", processName: "a" }),
        yield* open({ service: "figures", processName: "b" })
      ]
      yield* a.run
      yield* a.client.announceAll([{ stream: "one" }])
      yield* Effect.sleep("1 second")
      const taken = yield* count(StreamMetrics.stream.takes.taken)
      const claimed = yield* count(StreamMetrics.stream.acquisitions.name)
      assert.isTrue(Option.isNone(yield* b.client.acquireIfAvailable("one")))
      assert.strictEqual(yield* count(StreamMetrics.stream.takes.taken), taken)
      assert.strictEqual(yield* count(StreamMetrics.stream.acquisitions.name), claimed)
      assert.isAbove(yield* count(StreamMetrics.stream.takes.occupied), 0)
    })), { tags: ["G26"] })
})
