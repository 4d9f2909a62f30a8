/** Fleets of consumers of ours and of stock consumers, on the fake Redis in virtual time and on a real one. */
import { StreamClient } from "@effect-simba/core/streams"
import { IoRedis } from "@effect-simba/redis"
import { RedisStreamStore } from "@effect-simba/redis/streams"
import { FakeNetwork, FakeRedis } from "@effect-simba/testkit"
import { StockStreamConsumer } from "@effect-simba/testkit/streams"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import { capturingLogs, RedisServer } from "../../support/harness.ts"
import * as scenarios from "../../support/streamInteropScenarios.ts"

type Connection = Layer.Layer<
  Layer.Success<ReturnType<typeof FakeRedis.layerClient>>,
  unknown
>

/** Consumers on connections of their own, each in a scope of its own. */
const consumers = (
  connection: (name: string) => Connection,
  cut: (name: string) => Effect.Effect<void>
): Pick<scenarios.Stage, "ours" | "stock"> => ({
  ours: Effect.fnUntraced(function*(id, options) {
    const scope = yield* Effect.acquireRelease(Scope.make(), (scope, exit) => Scope.close(scope, exit))
    const layer = StreamClient.layer({ gracePeriod: 0, ...options, service: scenarios.service, consumer: id }).pipe(
      Layer.provide(RedisStreamStore.layer),
      Layer.provide(connection(id))
    )
    const client = Context.get(yield* Layer.buildWithScope(layer, scope), StreamClient.StreamClient)
    return {
      client,
      run: (work) =>
        Effect.asVoid(Effect.forkIn(client.run((lease) => work(lease.stream)), scope, { startImmediately: true })),
      close: Scope.close(scope, Exit.void),
      kill: cut(id)
    }
  }),
  stock: Effect.fnUntraced(function*(id, work = () => Effect.never) {
    const scope = yield* Effect.acquireRelease(Scope.make(), (scope, exit) => Scope.close(scope, exit))
    const client = yield* Layer.buildWithScope(connection(id), scope)
    const joined = yield* StockStreamConsumer.join({ service: scenarios.service, id, work }).pipe(
      Effect.provideContext(client),
      Scope.provide(scope)
    )
    return { ...joined, kill: Scope.close(scope, Exit.void) }
  })
})

const quiet = capturingLogs([])

const fake = <A>(scenario: (stage: scenarios.Stage) => Effect.Effect<A, unknown, Scope.Scope>) =>
  Effect.gen(function*() {
    const context = yield* Effect.context<FakeRedis.FakeRedis>()
    const here = Effect.provideContext(context)
    const admin = Context.get(yield* Layer.build(FakeRedis.layerClient({ name: "admin" })), Redis)
    const server = Layer.succeedContext(context)
    const stage = {
      send: (command, ...args) => admin.send(command!, ...args),
      ...consumers(
        (name) => Layer.fresh(FakeRedis.layerClient({ name })).pipe(Layer.provide(server)),
        (name) => here(Effect.flatMap(FakeNetwork.link(name), (link) => link.partition()))
      )
    } satisfies scenarios.Stage as scenarios.Stage
    const playing = yield* Effect.forkChild(Effect.scoped(scenario(stage)))
    while (playing.pollUnsafe() === undefined) yield* TestClock.adjust("5 millis")
    return yield* Fiber.join(playing)
  }).pipe(Effect.provide([FakeRedis.layer({ expiryDelay: [0, 0] }), quiet]))

const lease = 2000
const heartbeat = 1000
// Of a sweep of 2 seconds, varied by a fifth
const sweep = 2400

describe("with stock consumers, on the fake Redis", () => {
  it.effect("data streams flow both ways, each to one consumer, and none is left behind", () =>
    fake(scenarios.bothWays))

  it.effect("what a living stock consumer owns is left alone", () => fake(scenarios.livingStock))

  it.effect("G20: an orderly hand-back is taken over within milliseconds", () =>
    Effect.gen(function*() {
      assert.isAtMost(yield* fake(scenarios.handBack), 10)
    }))

  it.effect("the death of a stock consumer is noticed when its lease runs out, with events", () =>
    Effect.gen(function*() {
      // With a moment for the delay by rank
      assert.isAtMost(yield* fake((stage) => scenarios.stockDies(stage, true)), lease + 500)
    }))

  it.effect("G15: and by a sweep, without", () =>
    Effect.gen(function*() {
      assert.isAtMost(yield* fake((stage) => scenarios.stockDies(stage, false)), lease + sweep)
    }))

  it.effect("ours that is cut off stops before the stock consumer begins, when its lease runs out", () =>
    Effect.gen(function*() {
      const millis = yield* fake(scenarios.oursDies)
      assert.isAtMost(millis, lease + 50)
      assert.isAtLeast(millis, lease - heartbeat)
    }))

  it.effect("G3: the recovery of a stock consumer finds nothing of what ours has owned for long", () =>
    fake(scenarios.recovery))

  it.effect("G8: two announcements of one data stream are processed one after the other", () =>
    fake(scenarios.duplicates))

  it.effect("G18: a stock owner that is late and finishes: ours stops, and nothing is made again", () =>
    fake(scenarios.lateDone))

  it.effect("G20: the orderly end of a stock consumer takes its own with it, and nothing of ours", () =>
    fake(scenarios.stockDone))
})

/** On a server of its own: its settings and its whole keyspace are looked at. */
const real = <A>(scenario: (stage: scenarios.Stage) => Effect.Effect<A, unknown, Scope.Scope>) =>
  Effect.gen(function*() {
    const server = yield* RedisServer.start()
    return yield* scenario({
      send: server.send,
      ...consumers(
        () => Layer.fresh(IoRedis.layer({ url: server.url })),
        () => Effect.die("a process of this test cannot be cut off")
      )
    })
  }).pipe(Effect.scoped, Effect.provide(quiet))

describe("with stock consumers, on a real Redis", () => {
  it.live("data streams flow both ways, each to one consumer, and none is left behind", () => real(scenarios.bothWays))

  it.live("what a living stock consumer owns is left alone", () => real(scenarios.livingStock))

  it.live("G20: an orderly hand-back is taken over", () => real(scenarios.handBack))

  it.live("a death of a stock consumer is noticed, with events", () =>
    real((stage) => scenarios.stockDies(stage, true)))

  it.live("G15: and without", () => real((stage) => scenarios.stockDies(stage, false)))

  it.live("G8: two announcements of one data stream are processed one after the other", () =>
    real(scenarios.duplicates))

  it.live("G18: a stock owner that is late and finishes: ours stops, and nothing is made again", () =>
    real(scenarios.lateDone))

  it.live("G20: the orderly end of a stock consumer takes its own with it, and nothing of ours", () =>
    real(scenarios.stockDone))
})
