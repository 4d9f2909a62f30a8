/**
 * A layer subscribes on every primary of a Cluster. Tests which subscribers are counted, and how the layer follows
 * failures and topology changes.
 */
import { Mutex } from "@effect-simba/core"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { assert, it } from "@effect/vitest"
import { Context, Duration, Effect, Exit, Fiber, Layer, Queue, Scope } from "effect"
import * as Redis from "effect/persistence/Redis"
import { Cluster, Redis as Client } from "ioredis"
import { createRequire } from "node:module"
import { slot } from "../../../src/internal/client/clusterSlot.ts"
import * as clusterSubscriptions from "../../../src/internal/client/ioredis/clusterSubscriptions.ts"
import * as connection from "../../../src/internal/client/ioredis/connection.ts"
import {
  capturingLogs,
  channelsOpen,
  connections,
  killConnections,
  type MutexOptions,
  RedisServer,
  until
} from "../../support/harness.ts"
import type { ClusterSetup, Server } from "../../support/redisServer.ts"
import { ownerOfSlot } from "../../support/resharding.ts"

const at = ({ port }: Server) => ({ host: "127.0.0.1", port })

const redisAt = (node: Server) => IoRedis.layerCluster({ nodes: [at(node)] })

/**
 * Opens a mutex as a separate process would. Its lease is so long that only a message or a gap can wake a waiter in
 * time.
 */
const open = (redis: ReturnType<typeof IoRedis.layerCluster>, options: MutexOptions = {}) =>
  Effect.map(
    Layer.build(
      Layer.fresh(
        Mutex.layer({ ttl: "10 minutes", transition: "5 minutes", confirmTimeout: "1 minute", ...options }).pipe(
          Layer.provideMerge(RedisMutex.layerStore),
          Layer.provideMerge(redis)
        )
      )
    ),
    (context) => ({
      mutex: Context.get(context, Mutex.Mutex),
      redis: Context.get(context, Redis.Redis),
      subscriber: Context.get(context, Subscriber),
      client: Context.get(context, IoRedis.IoRedis).client as Cluster
    })
  )

/** Returns a name whose slot belongs to this node. */
const nameAt = Effect.fnUntraced(function*(setup: ClusterSetup, node: Server) {
  for (let i = 0;; i++) {
    const owner = yield* ownerOfSlot(setup, slot(`{m ${i}}`))
    if (owner === node) return `m ${i}`
  }
})

const queued = (setup: ClusterSetup, name: string, count: number) =>
  Effect.flatMap(ownerOfSlot(setup, slot(`{${name}}`)), (owner) =>
    until(
      `${count} wait for ${name}`,
      Effect.map(owner.send("ZCARD", `simba:{${name}}:contender`), (n) => Number(n) === count)
    ))

it.live(
  "every primary counts a layer's subscription, so a dead effect-simba waiter does not cause a delay",
  () =>
    Effect.gen(function*() {
      const setup = yield* RedisServer.cluster()
      const own = yield* open(redisAt(setup.nodes[0]!))
      for (const node of setup.nodes) {
        const name = yield* nameAt(setup, node)
        const held = yield* Scope.make()
        yield* Scope.provide(own.mutex.acquire(name), held)
        const others = yield* open(redisAt(node))
        const waiting = yield* Effect.forkScoped(Effect.scoped(others.mutex.acquire(name)), { startImmediately: true })
        yield* queued(setup, name, 1)
        for (const each of setup.nodes) {
          const inboxes = yield* channelsOpen(each, "simba:inbox:*")
          for (const inbox of inboxes) {
            for (const every of setup.nodes) {
              assert.deepStrictEqual(yield* every.send("PUBSUB", "NUMSUB", String(inbox)), [String(inbox), 1])
            }
          }
          assert.isAtLeast(inboxes.length, 1)
        }
        const queue = `simba:{${name}}:contender`
        const seconds = Math.floor(Number((yield* node.send("TIME") as Effect.Effect<ReadonlyArray<string>>)[0]))
        // Neither waiter listens. The effect-simba waiter is skipped, but the Simba waiter might be listening on
        // another node.
        yield* node.send("ZADD", queue, `${seconds - 60}.000001`, "1-000000000000:dead")
        yield* Scope.close(held, Exit.void)
        yield* Fiber.join(waiting).pipe(Effect.timeout("10 seconds"))
      }
    }).pipe(Effect.scoped, Effect.provide(capturingLogs([]))),
  { timeout: 60_000, tags: ["H3"] }
)

it.live("a Simba waiter counts as alive, because it may be listening on another node", () =>
  Effect.gen(function*() {
    const setup = yield* RedisServer.cluster()
    const own = yield* open(redisAt(setup.nodes[0]!))
    const [node] = setup.nodes
    const name = yield* nameAt(setup, node!)
    const held = yield* Scope.make()
    yield* Scope.provide(own.mutex.acquire(name), held)
    const seconds = Math.floor(Number((yield* node!.send("TIME") as Effect.Effect<ReadonlyArray<string>>)[0]))
    yield* node!.send("ZADD", `simba:{${name}}:contender`, String(seconds - 60), "7:4711@stock-host")
    yield* Scope.close(held, Exit.void)
    assert.strictEqual(yield* node!.send("GET", `simba:{${name}}:reserved`), "7:4711@stock-host")
  }).pipe(Effect.scoped), { timeout: 60_000, tags: ["H1"] })

it.live("a message arrives once, no matter which node publishes it", () =>
  Effect.gen(function*() {
    const setup = yield* RedisServer.cluster()
    const { subscriber } = yield* open(redisAt(setup.nodes[0]!))
    for (const channel of ["plain", "with {tag}"]) {
      const queue = yield* subscriber.subscribe(channel)
      const sent: Array<string> = []
      for (let round = 0; round < 20; round++) {
        for (const [index, node] of setup.nodes.entries()) {
          // Messages with the same text are delivered separately
          const text = `${round % 5} ${index}`
          sent.push(text)
          yield* node.send("PUBLISH", channel, text)
        }
      }
      const first = yield* Queue.takeN(queue, sent.length)
      yield* Effect.sleep("300 millis")
      const more = yield* Queue.clear(queue)
      const received = [...first, ...more].map((notice) => notice._tag === "Message" ? notice.text : "gap")
      assert.deepStrictEqual([...received].sort(), [...sent].sort())
    }
  }).pipe(Effect.scoped), 60_000)

it.live(
  "losing the connection to one primary is reported as a gap, and the connection is restored",
  () =>
    Effect.gen(function*() {
      const setup = yield* RedisServer.cluster()
      const { subscriber } = yield* open(redisAt(setup.nodes[0]!))
      const queue = yield* subscriber.subscribe("plain")
      for (const node of setup.nodes) {
        yield* killConnections(node, "simba:subscriber")
        assert.deepStrictEqual(yield* Queue.take(queue), { _tag: "Gap" })
        yield* until(
          "the connection is restored",
          Effect.map(connections(node, "simba:subscriber"), (ids) => ids.length === 1)
        )
        yield* until(
          "the subscription is counted",
          Effect.map(
            node.send("PUBSUB", "NUMSUB", "plain"),
            (reply) => Number((reply as ReadonlyArray<unknown>)[1]) === 1
          )
        )
      }
    }).pipe(Effect.scoped, Effect.provide(capturingLogs([]))),
  60_000
)

/** Moves the third node's original slots to another node, like resharding. */
const giveLastThird = Effect.fnUntraced(function*({ nodes }: ClusterSetup, to: Server) {
  const slots: Array<string> = []
  for (let i = 0; i < 16_384; i++) if (Math.floor((i * 3) / 16_384) === 2) slots.push(String(i))
  // Gives the new owner the largest epoch. Otherwise an in-flight ping from the old owner could take the slots back
  yield* to.send("CLUSTER", "BUMPEPOCH")
  const give = Effect.gen(function*() {
    for (const node of nodes) yield* Effect.ignore(node.send("CLUSTER", "DELSLOTS", ...slots))
    yield* to.send("CLUSTER", "ADDSLOTS", ...slots)
  })
  // On a node where the slots have no owner, such a ping can still return them to the old owner. Retry until none does.
  yield* Effect.retry(give, { times: 20 })
  for (const node of nodes) {
    yield* until(
      "the slots are served",
      Effect.map(
        Effect.all([node.send("CLUSTER", "INFO"), ownerOfSlot({ nodes: [node, ...nodes] }, 16_383)]),
        ([info, owner]) => String(info).includes("cluster_state:ok") && owner?.port === to.port
      )
    )
  }
})

it.live("no messages are missed when a node leaves the Cluster but keeps running", () =>
  Effect.gen(function*() {
    const setup = yield* RedisServer.cluster()
    const leaving = setup.nodes[2]!
    const own = yield* open(redisAt(setup.nodes[0]!))
    const others = yield* open(redisAt(setup.nodes[1]!))
    const name = yield* nameAt(setup, leaving)
    // The layer subscribes on every primary, and observes the mutex through the one that leaves
    yield* Effect.scoped(others.mutex.acquire("elsewhere"))
    const channel = `simba:{${name}}`
    const observed = yield* others.subscriber.subscribe(channel)
    const rest = setup.nodes.slice(0, 2)
    yield* giveLastThird(setup, rest[0]!)
    const leavingId = String(yield* leaving.send("CLUSTER", "MYID"))
    for (const node of rest) yield* node.send("CLUSTER", "FORGET", leavingId)
    yield* leaving.send("CLUSTER", "RESET", "SOFT")
    yield* until(
      "the layer has disconnected from the node",
      Effect.map(connections(leaving, "simba:subscriber"), (ids) => ids.length === 0)
    )
    assert.deepStrictEqual(yield* Queue.take(observed), { _tag: "Gap" })
    const held = yield* Scope.make()
    yield* Effect.retry(Scope.provide(own.mutex.acquire(name), held), { times: 5 })
    assert.strictEqual((yield* Queue.take(observed))._tag, "Message")
    const waiting = yield* Effect.forkScoped(Effect.scoped(others.mutex.acquire(name)), { startImmediately: true })
    yield* queued({ nodes: rest }, name, 1)
    yield* Scope.close(held, Exit.void)
    yield* Fiber.join(waiting).pipe(Effect.timeout("5 seconds"))
  }).pipe(Effect.scoped, Effect.provide(capturingLogs([]))), 90_000)

it.live("a new primary counts the existing layers", () =>
  Effect.gen(function*() {
    const setup = yield* RedisServer.cluster()
    const [first, , joining] = setup.nodes
    yield* giveLastThird(setup, first!)
    yield* open(redisAt(first!))
    const inboxes = yield* channelsOpen(first!, "simba:inbox:*")
    assert.lengthOf(inboxes, 1)
    assert.deepStrictEqual(yield* channelsOpen(joining!, "simba:inbox:*"), [])
    yield* giveLastThird(setup, joining!)
    yield* until(
      "the new primary counts the layer",
      Effect.map(channelsOpen(joining!, "simba:inbox:*"), (found) => found.length === 1 && found[0] === inboxes[0])
    )
  }).pipe(Effect.scoped, Effect.provide(capturingLogs([]))), 90_000)

it.live("an application's Cluster client works and stays open", () =>
  Effect.gen(function*() {
    const { nodes } = yield* RedisServer.cluster()
    const client = yield* Effect.acquireRelease(
      Effect.sync(() => new Cluster([at(nodes[0]!)], { redisOptions: { connectionName: "app" } })),
      (cluster) => Effect.sync(() => cluster.disconnect())
    )
    yield* Effect.scoped(Effect.gen(function*() {
      const { mutex, redis } = yield* open(IoRedis.layerClient(client))
      for (const name of ["a", "b", "c", "d"]) yield* Effect.scoped(mutex.acquire(name))
      const popped = yield* Effect.forkScoped(
        Effect.scoped(Effect.flatMap(redis.reserve, ({ send }) => send("BLPOP", "list", "5")))
      )
      yield* Effect.sleep("100 millis")
      yield* redis.send("RPUSH", "list", "x")
      assert.deepStrictEqual(yield* Fiber.join(popped), ["list", "x"])
      for (let i = 0; i < 30; i++) yield* redis.send("SET", `key ${i}`, "x")
      assert.lengthOf(yield* redis.send<ReadonlyArray<string>>("KEYS", "key *"), 30)
      assert.isAtLeast(yield* redis.send<number>("DBSIZE"), 30)
      assert.match(String((yield* Effect.flip(redis.send("SCAN", "0"))).cause), /RedisTopology's primaries/)
    }))
    assert.strictEqual(yield* Effect.promise(() => client.get("key 1")), "x")
    for (const node of nodes) {
      yield* until(
        "no subscribers are left",
        Effect.map(connections(node, "simba:subscriber"), (ids) => ids.length === 0)
      )
    }
  }).pipe(Effect.scoped), 60_000)

/** Loads a second copy of ioredis, as in a program whose packages have separate installations. */
const anotherCopy = Effect.sync((): { readonly Cluster: typeof Cluster } => {
  const require = createRequire(import.meta.url)
  const known = { ...require.cache }
  for (const path of Object.keys(known)) if (path.includes("ioredis")) delete require.cache[path]
  const copy = require("ioredis")
  Object.assign(require.cache, known)
  return copy
})

it.live(
  "every primary counts a layer whose Cluster client comes from another copy of ioredis",
  () =>
    Effect.gen(function*() {
      const { nodes } = yield* RedisServer.cluster()
      const copy = yield* anotherCopy
      assert.notStrictEqual(copy.Cluster, Cluster)
      const client = yield* Effect.acquireRelease(
        Effect.sync(() => new copy.Cluster([at(nodes[0]!)])),
        (cluster) => Effect.sync(() => cluster.disconnect())
      )
      yield* open(IoRedis.layerClient(client))
      for (const node of nodes) assert.lengthOf(yield* channelsOpen(node, "simba:inbox:*"), 1)
    }).pipe(Effect.scoped),
  60_000
)

it.live("a connection that replies but delivers no messages is replaced", () =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    const { nodes } = yield* RedisServer.cluster()
    // This server replies to SUBSCRIBE and PING but is not part of a Cluster, so published messages do not reach it
    const outside = yield* RedisServer.start()
    const client = yield* Effect.acquireRelease(
      Effect.callback<Cluster>((resume) => {
        const cluster = new Cluster([at(nodes[0]!)])
        cluster.once("ready", () => resume(Effect.succeed(cluster)))
      }),
      (cluster) => Effect.sync(() => cluster.disconnect())
    )
    let isDeaf = true
    const settings = { client: {}, commandTimeout: Duration.seconds(1), connectTimeout: Duration.seconds(2) }
    const connectTo = (options: { readonly host: string; readonly port: number }) =>
      connection.duplicate(new Client({ ...options, lazyConnect: true }), "subscriber", settings)
    const subscriptions = yield* clusterSubscriptions.make(client, ({ options: { port } }) => {
      if (port !== nodes[2]!.port || !isDeaf) return connectTo({ host: "127.0.0.1", port: port! })
      isDeaf = false
      return connectTo(at(outside))
    }, Duration.seconds(1)).pipe(Effect.provide(capturingLogs(lines)))
    const queue = yield* subscriptions.subscribe("plain")
    assert.deepStrictEqual(yield* nodes[2]!.send("PUBSUB", "NUMSUB", "plain"), ["plain", 0])
    assert.deepStrictEqual(yield* Queue.take(queue).pipe(Effect.timeout("20 seconds")), { _tag: "Gap" })
    assert.deepStrictEqual(yield* nodes[2]!.send("PUBSUB", "NUMSUB", "plain"), ["plain", 1])
    assert.lengthOf(lines.filter((line) => line.includes("receives nothing")), 1)
  }).pipe(Effect.scoped), 60_000)

it.live(
  "on each primary, the subscriber uses the configured name and logs in as the commands' user",
  () =>
    Effect.gen(function*() {
      const { nodes } = yield* RedisServer.cluster()
      for (const node of nodes) yield* node.send("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all")
      const layer = IoRedis.layerCluster({ nodes: [`redis://app:secret@127.0.0.1:${nodes[0]!.port}`] })
      const ofUser = IoRedis.layerCluster({
        nodes: [`app@127.0.0.1:${nodes[0]!.port}`],
        client: { password: "secret", connectionName: "of-user" }
      })
      const named = IoRedis.layerCluster({ nodes: nodes.map(at), client: { connectionName: "named" } })
      const subscriber = Context.get(yield* Layer.build(Layer.fresh(layer)), Subscriber)
      yield* subscriber.subscribe("plain")
      yield* Context.get(yield* Layer.build(Layer.fresh(named)), Subscriber).subscribe("plain")
      yield* Context.get(yield* Layer.build(Layer.fresh(ofUser)), Subscriber).subscribe("plain")
      for (const node of nodes) {
        const lines = String(yield* node.send("CLIENT", "LIST")).split("\n")
        assert.isTrue(lines.some((line) => line.includes("name=named ") && !line.includes(" sub=0 ")))
        const own = lines.filter((line) => line.includes("name=simba:subscriber"))
        assert.lengthOf(own, 1)
        assert.include(own[0], " user=app ")
        for (const line of lines.filter((line) => line.includes("name=of-user"))) assert.include(line, " user=app ")
      }
    }).pipe(Effect.scoped),
  60_000
)
