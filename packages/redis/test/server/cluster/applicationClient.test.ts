/** Layers that share a Cluster client created by the application. */
import { IoRedis } from "@effect-simba/redis"
import { assert, it } from "@effect/vitest"
import { Context, type Duration, Effect, Exit, Fiber, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { Cluster, type ClusterNode, type Redis as Client } from "ioredis"
import { slot } from "../../../src/internal/client/clusterSlot.ts"
import { capturingLogs, quiet, RedisServer, until } from "../../support/harness.ts"
import type { ClusterSetup, Server } from "../../support/redisServer.ts"
import { ownerOfSlot } from "../../support/resharding.ts"

const at = ({ port }: Server) => ({ host: "127.0.0.1", port })

/** Resolves when the client is connected to every primary. */
const made = Effect.fnUntraced(function*(nodes: ReadonlyArray<ClusterNode>) {
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => new Cluster([...nodes]).on("error", () => undefined)),
    (cluster) => Effect.sync(() => cluster.disconnect())
  )
  yield* Effect.callback<void>((resume) => {
    client.once("ready", () => resume(Effect.void))
  })
  for (const node of client.nodes("master")) yield* Effect.promise(() => node.ping())
  return client
})

const open = (client: Cluster, commandTimeout: Duration.Input = "20 seconds") =>
  Effect.map(
    Layer.build(Layer.fresh(IoRedis.layerClient(client, { commandTimeout, serverChecks: false }))),
    (context) => Context.get(context, Redis)
  )

/** Returns a key that this node stores. */
const keyAt = Effect.fnUntraced(function*(setup: ClusterSetup, node: Server) {
  for (let i = 0;; i++) if ((yield* ownerOfSlot(setup, slot(`key ${i}`))) === node) return `key ${i}`
})

it.live(
  "when a connection is lost, ioredis resends the application's commands, but the layer's fail",
  () =>
    Effect.gen(function*() {
      const setup = yield* RedisServer.cluster()
      const node = setup.nodes[1]!
      const key = yield* keyAt(setup, node)
      const client = yield* made(setup.nodes.map(at))
      const redis = yield* open(client)
      // The first connection exists before the layer is built; the second is opened afterwards
      for (let round = 1; round <= 2; round++) {
        yield* Effect.promise(() => client.exists(key))
        yield* node.pause
        const own = yield* Effect.forkChild(Effect.exit(redis.send("INCR", key)), { startImmediately: true })
        const foreign = yield* Effect.forkChild(Effect.promise(() => client.incr(key)), { startImmediately: true })
        yield* Effect.sleep("100 millis")
        client.nodes("master").find(({ options: { port } }) => port === node.port)!.stream.destroy()
        yield* node.resume
        assert.isTrue(Exit.isFailure(yield* Fiber.join(own)))
        // The server ran the layer's command once and the application's twice
        assert.strictEqual(yield* Fiber.join(foreign), 3 * round)
      }
    }).pipe(Effect.scoped, Effect.provide(quiet)),
  60_000
)

/** A client with a layer, its connection to one node, and a key on that node. */
const onOneNode = Effect.gen(function*() {
  const setup = yield* RedisServer.cluster()
  const node = setup.nodes[1]!
  const client = yield* made(setup.nodes.map(at))
  const { stream } = client.nodes("master").find(({ options: { port } }) => port === node.port)!
  return { client, key: yield* keyAt(setup, node), node, redis: yield* open(client, "200 millis"), stream }
})

it.live("a connection is replaced if its node does not reply for twice the timeout", () =>
  Effect.gen(function*() {
    const { client, key, node, redis, stream } = yield* onOneNode
    yield* node.pause
    for (let i = 0; i < 3; i++) assert.isTrue(Exit.isFailure(yield* Effect.exit(redis.send("GET", key))))
    assert.isTrue(stream.destroyed)
    yield* node.resume
    yield* until("the node is replying again", Effect.map(Effect.exit(redis.send("GET", key)), Exit.isSuccess))
    // The connections to other nodes stay open
    assert.lengthOf(client.nodes("master").filter(({ stream }) => !stream.destroyed), 3)
  }).pipe(Effect.scoped, Effect.provide(quiet)), 60_000)

it.live("a connection stays open while the application waits for a slow command", () =>
  Effect.gen(function*() {
    const { client, key, node, redis, stream } = yield* onOneNode
    const popped = yield* Effect.forkChild(Effect.promise(() => client.blpop(`{${key}}list`, 10)), {
      startImmediately: true
    })
    for (let i = 0; i < 3; i++) assert.isTrue(Exit.isFailure(yield* Effect.exit(redis.send("GET", key))))
    yield* node.send("RPUSH", `{${key}}list`, "x")
    assert.deepStrictEqual(yield* Fiber.join(popped), [`{${key}}list`, "x"])
    assert.isFalse(stream.destroyed)
    assert.isNull(yield* redis.send("GET", key))
  }).pipe(Effect.scoped, Effect.provide(quiet)), 60_000)

it.live("closing layers leaves no listeners behind", () =>
  Effect.gen(function*() {
    const { nodes } = yield* RedisServer.cluster()
    const client = yield* made(nodes.map(at))
    const listeners = () =>
      client.nodes("all").flatMap((node) =>
        [node, node.stream].map((emitter: Pick<Client, "eventNames" | "listenerCount">) =>
          emitter.eventNames().map((event) => `${String(event)} ${emitter.listenerCount(event as string)}`).sort()
        )
      )
    yield* Effect.scoped(open(client))
    const before = listeners()
    for (let i = 0; i < 3; i++) yield* Effect.scoped(open(client))
    assert.deepStrictEqual(listeners(), before)
  }).pipe(Effect.scoped, Effect.provide(quiet)), 60_000)

it.live("an unresponsive node does not delay the checks of the others", () =>
  Effect.gen(function*() {
    const { nodes } = yield* RedisServer.cluster()
    const client = yield* made(nodes.map(at))
    const [first, ...others] = client.nodes("master").map(({ options: { port } }) =>
      nodes.find((node) => node.port === port)!
    )
    for (const node of others) yield* node.send("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    yield* first!.pause
    const lines: Array<string> = []
    const layer = IoRedis.layerClient(client, { commandTimeout: "1 minute" })
    yield* Effect.forkScoped(Effect.provide(Layer.build(Layer.fresh(layer)), capturingLogs(lines)))
    for (const { port } of others) {
      yield* until(
        "the node is checked",
        Effect.sync(() => lines.some((line) => line.includes(`${port}: the eviction policy is allkeys-lru`)))
      )
    }
  }).pipe(Effect.scoped, Effect.provide(quiet)), 60_000)

it.live("reserved connections use the nodes' passwords", () =>
  Effect.gen(function*() {
    const { nodes } = yield* RedisServer.cluster()
    for (const node of nodes) yield* node.send("CONFIG", "SET", "requirepass", `secret ${node.port}`)
    const client = yield* made(nodes.map((node) => ({ ...at(node), password: `secret ${node.port}` })))
    const redis = yield* open(client)
    for (let i = 0; i < 9; i++) {
      assert.isNull(yield* Effect.scoped(Effect.flatMap(redis.reserve, ({ send }) => send("GET", `key ${i}`))))
    }
  }).pipe(Effect.scoped, Effect.provide(quiet)), 60_000)

it.live("a client that cannot connect reports the reason", () =>
  Effect.gen(function*() {
    const { port } = yield* RedisServer.start({ args: ["--cluster-enabled yes", "--requirepass secret"] })
    const failure = Effect.fnUntraced(function*(...nodes: ReadonlyArray<ClusterNode>) {
      const client = yield* Effect.acquireRelease(
        Effect.sync(() => new Cluster([...nodes]).on("error", () => undefined)),
        (cluster) => Effect.sync(() => cluster.disconnect())
      )
      const layer = IoRedis.layerClient(client, { connectTimeout: "500 millis" })
      return (yield* Effect.flip(Layer.build(Layer.fresh(layer)))).message
    })
    assert.include(yield* failure({ host: "127.0.0.1", port }), `the server at 127.0.0.1:${port} requires a password`)
    const unreachable = yield* failure("redis://app:hidden@127.0.0.1:1?password=hidden", 2)
    assert.include(unreachable, "no node of the Cluster can be reached at 127.0.0.1:1, localhost:2")
    assert.notInclude(unreachable, "hidden")
  }).pipe(Effect.scoped, Effect.provide(quiet)), 30_000)
