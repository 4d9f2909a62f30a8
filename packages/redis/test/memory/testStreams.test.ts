/** How an application tests its data-stream handlers with `TestStreams` and the fake server. */
import { Mutex } from "@effect-simba/core"
import { StreamClient, StreamLease, StreamMessages } from "@effect-simba/core/streams"
import { RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { FakeNetwork, FakeRedis, TestRedis } from "@effect-simba/testkit"
import { TestStreams } from "@effect-simba/testkit/streams"
import { assert, it } from "@effect/vitest"
import { Config, Context, Effect, Layer, Ref, Schema } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"

const Step = Schema.Struct({ n: Schema.FiniteFromString })

const add = (...numbers: ReadonlyArray<number>) =>
  Redis.use((redis) => Effect.forEach(numbers, (n) => redis.send("XADD", "orders:eu", "*", "n", String(n))))

it.effect("a client processes announced messages, and FakeRedis shows the server's keys", () =>
  Effect.gen(function*() {
    const observed = yield* Ref.make<ReadonlyArray<number>>([])
    yield* StreamClient.announce("orders:eu", {})
    yield* add(1, 2, 3)
    yield* Effect.forkChild(StreamClient.run(
      StreamMessages.process(Step, ({ value }) => Ref.update(observed, (before) => [...before, value.n]), {
        until: ({ value }) => value.n === 3
      })
    ))
    yield* TestClock.adjust("5 seconds")
    assert.deepStrictEqual(yield* Ref.get(observed), [1, 2, 3])
    assert.strictEqual((yield* StreamClient.inspect).announced, 0)
    const server = yield* FakeRedis.FakeRedis
    assert.include((yield* server.keys).map(({ key }) => key), "orders:eu")
  }).pipe(Effect.provide(TestStreams.layerFakeRedis(RedisStreams.layerStore, { service: "orders" }))))

it.effect("every client has all of the module's operations, including clients from an application's own classes", () =>
  Effect.gen(function*() {
    const client = yield* StreamClient.StreamClient
    const operations = Object.keys(StreamClient).filter((name) => /^[a-z]/.test(name) && !name.startsWith("layer"))
    assert.includeMembers(Object.keys(client), operations)
    const { isNew, stream } = yield* client.announce("orders:eu", { region: "eu" })
    assert.deepStrictEqual([isNew, stream], [true, "orders:eu"])
    assert.strictEqual((yield* client.inspect).announced, 1)
  }).pipe(Effect.provide(TestStreams.layerFakeRedis(RedisStreams.layerStore, { service: "orders" }))))

it.effect("a dead message is redriven and processed after the others", () =>
  Effect.gen(function*() {
    const observed: Array<number> = []
    let isMended = false
    yield* StreamClient.announce("orders:eu", {})
    yield* add(1, 2, 3)
    yield* Effect.forkChild(StreamClient.run(StreamMessages.process(Step, (message) =>
      message.value.n === 2 && !isMended
        ? StreamLease.StreamLease.use((lease) => lease.deadLetter(message, "no such customer"))
        : Effect.sync(() => void observed.push(message.value.n)))))
    yield* TestClock.adjust("5 seconds")
    assert.deepStrictEqual(observed, [1, 3])
    const dead = yield* StreamClient.deadMessages("orders:eu")
    assert.deepStrictEqual(dead.map(({ fields, reason }) => ({ fields, reason })), [
      { fields: [["n", "2"]], reason: "no such customer" }
    ])
    isMended = true
    assert.isTrue(yield* StreamClient.redriveMessage("orders:eu", dead[0]!.id))
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(observed, [1, 3, 2])
    assert.deepStrictEqual(yield* StreamClient.deadMessages("orders:eu"), [])
    assert.strictEqual((yield* Effect.flip(StreamClient.deadMessages("")))._tag, "InvalidName")
    assert.strictEqual((yield* Effect.flip(StreamClient.redriveMessage("orders:eu", "x")))._tag, "InvalidName")
  }).pipe(Effect.provide(TestStreams.layerFakeRedis(RedisStreams.layerStore, { service: "orders" }))))

it.effect("if a client is cut off, another one continues after the last commit", () =>
  Effect.gen(function*() {
    const processOf = (name: string) =>
      Layer.build(TestStreams.layerClient(RedisStreams.layerStore, { service: "orders", name }))
    const [a, b] = yield* Effect.all([processOf("a"), processOf("b")])
    const observed = yield* Ref.make<ReadonlyArray<string>>([])
    const consumer = (name: string) =>
      StreamClient.run(
        StreamMessages.process(Step, ({ value }) => Ref.update(observed, (before) => [...before, `${name}${value.n}`]))
      )
    yield* Effect.provideContext(StreamClient.announce("orders:eu", {}), a)
    yield* Effect.forkChild(Effect.provideContext(consumer("a"), a))
    yield* TestClock.adjust("1 second")
    yield* Effect.forkChild(Effect.provideContext(consumer("b"), b))
    yield* Effect.provideContext(add(1, 2), a)
    yield* TestClock.adjust("3 seconds")
    const name = yield* Redis.use((redis) => redis.send<string>("GET", "mutex:orders:eu")).pipe(
      Effect.provideContext(b)
    )
    assert.match(name, /^simba-consumer-a@@/)

    const link = yield* FakeNetwork.link("a")
    yield* link.partition()
    yield* Effect.provideContext(add(3), b)
    yield* TestClock.adjust("5 seconds")

    assert.deepStrictEqual(yield* Ref.get(observed), ["a1", "a2", "b3"])
    assert.lengthOf(yield* Context.get(b, StreamClient.StreamClient).owned, 1)
    // Heal the link, because closing the client would otherwise wait for a timeout on the test clock
    yield* link.heal()
  }).pipe(Effect.provide(FakeRedis.layer())))

class Returns extends Context.Service<Returns, StreamClient.StreamClient["Service"]>()("test/Returns") {
  static readonly layer = Layer.effect(Returns, StreamClient.StreamClient).pipe(
    Layer.provide(StreamClient.layer({ service: "returns", gracePeriod: 0 }))
  )
}

it.effect("mutexes and two stream services share one Redis client", () => {
  const StoreLive = RedisStreams.layerStore.pipe(Layer.provideMerge(TestRedis.layer()))
  const Live = Layer.mergeAll(
    Mutex.layer().pipe(Layer.provide(RedisMutex.layerStore)),
    StreamClient.layer({ service: "orders", gracePeriod: 0 }),
    Returns.layer
  ).pipe(Layer.provideMerge(StoreLive))
  return Effect.gen(function*() {
    const returns = yield* Returns
    yield* StreamClient.announce("orders:eu", {})
    yield* returns.announceAll([{ stream: "returns:eu", info: {} }])
    yield* Effect.forkChild(StreamClient.run(Effect.never))
    yield* Effect.forkChild(returns.run(Effect.never))
    yield* TestClock.adjust("5 seconds")
    const held = yield* Effect.map(Mutex.owner("m"), ({ _tag }) => _tag).pipe(Mutex.withLock("m"))
    assert.strictEqual(held, "Held")
    assert.deepStrictEqual((yield* StreamClient.owned).map(({ stream }) => String(stream)), ["orders:eu"])
    assert.deepStrictEqual((yield* returns.owned).map(({ stream }) => String(stream)), ["returns:eu"])
  }).pipe(Effect.provide(Live))
})

class Orders extends StreamClient.Service<Orders>()("test/Orders") {}
class Refunds extends StreamClient.Service<Refunds>()("test/Refunds") {}

it.effect("clients for two services, provided as separate Effect services, share one connection", () =>
  Effect.gen(function*() {
    const observed: Array<string> = []
    const [orders, refunds] = [yield* Orders, yield* Refunds]
    for (const client of [orders, refunds]) {
      yield* Effect.forkChild(client.run(({ stream }) => Effect.sync(() => observed.push(stream))))
    }
    yield* orders.announceAll([{ stream: "order" }])
    yield* refunds.announceAll([{ stream: "refund" }])
    yield* TestClock.adjust("5 seconds")
    assert.deepStrictEqual(observed.sort(), ["order", "refund"])
  }).pipe(Effect.provide(
    Layer.mergeAll(
      Orders.layer({ service: "orders" }),
      Refunds.layerConfig({ service: Config.succeed("refunds") })
    ).pipe(Layer.provide(RedisStreams.layerStore), Layer.provide(TestRedis.layer()))
  )))
