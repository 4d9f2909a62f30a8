/** Layers whose Cluster has lost a node. */
import { Mutex } from "@effect-simba/core"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import * as RedisTopology from "@effect-simba/redis/RedisTopology"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Queue, Schedule } from "effect"
import { Redis } from "effect/persistence/Redis"
import type { Cluster } from "ioredis"
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { slot } from "../../../src/internal/client/clusterSlot.ts"
import { capturingLogs, commandStats, RedisServer, until } from "../../support/harness.ts"
import { ownerOfSlot } from "../../support/resharding.ts"

it.live(
  "a layer rarely contacts a node that is down, and the other nodes keep serving",
  () =>
    Effect.gen(function*() {
      const setup = yield* RedisServer.cluster({ args: ["--cluster-require-full-coverage no"] })
      const [first, second, gone] = setup.nodes
      const layer = RedisMutex.layerRedis({ ttl: "1 second", transition: "3 seconds", commandTimeout: "500 millis" })
        .pipe(
          Layer.provide(IoRedis.layerCluster({
            nodes: setup.nodes.map(({ port }) => ({ host: "127.0.0.1", port })),
            commandTimeout: "500 millis"
          }))
        )
      const mutexes = yield* Effect.forEach(
        [1, 2, 3],
        () => Effect.map(Layer.build(Layer.fresh(layer)), (context) => Context.get(context, Mutex.Mutex))
      )
      const owners = yield* Effect.forEach(
        Array.from({ length: 90 }, (_, i) => `m ${i}`),
        (name) => Effect.map(ownerOfSlot(setup, slot(`simba:{${name}}`)), (owner) => [name, owner] as const)
      )
      const near = owners.filter(([, owner]) => owner !== gone).map(([name]) => name)
      const far = owners.filter(([, owner]) => owner === gone).map(([name]) => name)
      const leases = yield* Effect.forEach(
        near,
        (name, i) =>
          Effect.scoped(Effect.as(mutexes[i % 3]!.acquire(name), name)).pipe(
            Effect.andThen(mutexes[i % 3]!.acquire(name))
          )
      )
      yield* Effect.forEach(far, (name, i) => mutexes[i % 3]!.acquire(name))
      yield* gone!.kill()
      const stats = [first!, second!].map(commandStats)
      yield* Effect.forEach(stats, ({ reset }) => reset)
      // Callers that retry in a tight loop
      yield* Effect.forEach(far, (name, i) =>
        Effect.forkScoped(Effect.forever(Effect.andThen(
          Effect.exit(Effect.scoped(mutexes[i % 3]!.acquire(`{${name}}`, { timeout: "1 second" }))),
          Effect.sleep("20 millis")
        ))))
      yield* Effect.sleep("5 seconds")
      const calls = yield* Effect.forEach(stats, (each) => each.calls)
      const refreshes = calls.reduce((sum, each) => sum + (each.get("cluster|slots") ?? 0), 0)
      // Three layers, each retrying for five seconds
      assert.isAtMost(refreshes, 40)
      for (const lease of leases) yield* lease.ensure
      yield* gone!.restart
      yield* until(
        "all nodes serve again",
        Effect.map(
          Effect.exit(Effect.scoped(mutexes[0]!.acquire(`again {${far[0]}}`, { timeout: "1 second" }))),
          Exit.isSuccess
        )
      )
    }).pipe(Effect.scoped, Effect.provide(capturingLogs([]))),
  90_000
)

it.live(
  "a layer built while a primary is down subscribes on it as soon as it is back",
  () =>
    Effect.gen(function*() {
      const { nodes } = yield* RedisServer.cluster({ args: ["--cluster-require-full-coverage no"] })
      const gone = nodes[2]!
      yield* gone.kill()
      const layer = IoRedis.layerCluster({ nodes: nodes.map(({ port }) => ({ host: "127.0.0.1", port })) })
      const context = yield* Layer.build(Layer.fresh(layer))
      const subscriber = Context.get(context, Subscriber)
      const first = yield* Effect.timeout(subscriber.subscribe("first"), "5 seconds")
      const begun = performance.now()
      const queues = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, i) => `channel ${i}`),
        (channel) => subscriber.subscribe(channel)
      )
      assert.isBelow(performance.now() - begun, 1000, "a primary that is down does not delay any caller")
      yield* Effect.scoped(subscriber.subscribe("left"))
      const problem = yield* Effect.flip(IoRedis.health.pipe(Effect.provide(context)))
      assert.match(problem.message, new RegExp(`127\\.0\\.0\\.1:${gone.port}`))
      yield* nodes[0]!.send("PUBLISH", "first", "hello")
      assert.deepStrictEqual(yield* Queue.take(first), { _tag: "Message", channel: "first", text: "hello" })
      yield* gone.restart
      for (const queue of [first, ...queues]) {
        assert.deepStrictEqual(yield* Queue.take(queue).pipe(Effect.timeout("20 seconds")), { _tag: "Gap" })
      }
      for (const channel of ["first", "channel 19"]) {
        assert.deepStrictEqual(yield* gone.send("PUBSUB", "NUMSUB", channel), [channel, 1])
      }
      yield* until(
        "all nodes serve again",
        Effect.map(Effect.exit(IoRedis.health.pipe(Effect.provide(context))), Exit.isSuccess)
      )
      // Channels unsubscribed while the primary was down are not restored
      assert.deepStrictEqual(yield* gone.send("PUBSUB", "NUMSUB", "left"), ["left", 0])
    }).pipe(Effect.scoped, Effect.provide(capturingLogs([]))),
  60_000
)

it.live("a command fails without an unhandled rejection if it is redirected to a node that dies", () =>
  Effect.gen(function*() {
    const setup = yield* RedisServer.cluster()
    const key = "moving"
    const from = yield* ownerOfSlot(setup, slot(key))
    const to = setup.nodes.find((node) => node !== from)!
    const unhandled: Array<unknown> = []
    const note = (error: unknown) => void unhandled.push(error)
    yield* Effect.acquireRelease(
      Effect.sync(() => process.on("unhandledRejection", note)),
      () => Effect.sync(() => process.off("unhandledRejection", note))
    )
    const context = yield* Layer.build(IoRedis.layerCluster({
      nodes: setup.nodes.map(({ port }) => ({ host: "127.0.0.1", port })),
      commandTimeout: "2 seconds"
    }))
    const redis = Context.get(context, Redis)
    const [source, target] = yield* Effect.forEach(
      [from, to],
      ({ send }) => Effect.map(send("CLUSTER", "MYID"), String)
    )
    yield* to.send("CLUSTER", "SETSLOT", String(slot(key)), "IMPORTING", source!)
    yield* from.send("CLUSTER", "SETSLOT", String(slot(key)), "MIGRATING", target!)
    // The key does not exist yet, so the source redirects the command to the target
    assert.strictEqual(yield* redis.send("SET", key, "here"), "OK")
    assert.strictEqual(yield* to.send("CLUSTER", "COUNTKEYSINSLOT", String(slot(key))), 1)
    yield* to.pause
    const redirected = yield* Effect.forkChild(Effect.exit(redis.send("SET", key, "there")), { startImmediately: true })
    yield* Effect.sleep("300 millis")
    yield* to.kill()
    assert.isTrue(Exit.isFailure(yield* Fiber.join(redirected)))
    yield* Effect.sleep("300 millis")
    assert.deepStrictEqual(unhandled, [])
  }).pipe(Effect.scoped, Effect.provide(capturingLogs([]))))

it.live(
  "a primary whose connection was lost still counts as a target for commands on all primaries",
  () =>
    Effect.gen(function*() {
      const { nodes } = yield* RedisServer.cluster({ args: ["--cluster-require-full-coverage no"] })
      const [first, second] = nodes
      const context = yield* Layer.build(IoRedis.layerCluster({ nodes: nodes.map(({ port }) => `127.0.0.1:${port}`) }))
      const redis = Context.get(context, Redis)
      const topology = Context.get(context, RedisTopology.RedisTopology)
      for (let i = 0; i < 100; i++) yield* redis.send("SET", `key ${i}`, "x")
      const loseConnections = Effect.andThen(
        second!.send("CLIENT", "KILL", "TYPE", "normal"),
        Effect.sleep("100 millis")
      )
      // The topology is refreshed at most every two seconds. Until then, requests fail
      const retried = Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 100 })
      yield* loseConnections
      assert.strictEqual(yield* retried(redis.send("DBSIZE")), 100)
      yield* loseConnections
      assert.lengthOf(yield* retried(redis.send<ReadonlyArray<string>>("KEYS", "*")), 100)
      yield* loseConnections
      yield* retried(IoRedis.health.pipe(Effect.provide(context)))
      yield* loseConnections
      assert.strictEqual(topology._tag, "Cluster")
      if (topology._tag !== "Cluster") return
      const sizes = Effect.flatMap(topology.primaries, Effect.forEach((send) => send<number>("DBSIZE")))
      assert.strictEqual((yield* retried(sizes)).reduce((sum, size) => sum + size), 100)
      yield* first!.kill()
      yield* Effect.sleep("100 millis")
      // The commands fail rather than return an incomplete result
      assert.isTrue(Exit.isFailure(yield* Effect.exit(redis.send("DBSIZE"))))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(sizes)))
    }).pipe(Effect.scoped, Effect.provide(capturingLogs([]))),
  60_000
)

it.live("blocking commands work even if the only configured node is down", () =>
  Effect.gen(function*() {
    const { nodes } = yield* RedisServer.cluster({ args: ["--cluster-require-full-coverage no"] })
    const [first, second] = nodes
    const redis = Context.get(yield* Layer.build(IoRedis.layerCluster({ nodes: [`127.0.0.1:${first!.port}`] })), Redis)
    yield* first!.kill()
    yield* until(
      "the Cluster has noticed that the node is down",
      Effect.map(second!.send("CLUSTER", "NODES"), (text) => /\bfail\b/.test(String(text)))
    )
    const pong = Effect.scoped(Effect.flatMap(redis.reserve, ({ send }) => send("PING")))
    assert.strictEqual(yield* Effect.retry(pong, { times: 3 }), "PONG")
  }).pipe(Effect.scoped, Effect.provide(capturingLogs([]))), 60_000)

it.live(
  "commands on all primaries ignore a removed primary's slots",
  () =>
    Effect.gen(function*() {
      const { nodes } = yield* RedisServer.cluster({ args: ["--cluster-require-full-coverage no"] })
      const [first, second, removed] = nodes
      const context = yield* Layer.build(IoRedis.layerCluster({ nodes: nodes.map(({ port }) => `127.0.0.1:${port}`) }))
      const redis = Context.get(context, Redis)
      yield* first!.send("SET", "{06S}", "x")
      assert.strictEqual(yield* redis.send("DBSIZE"), 1)
      const id = String(yield* removed!.send("CLUSTER", "MYID"))
      yield* removed!.kill()
      for (const node of [first!, second!]) yield* node.send("CLUSTER", "FORGET", id)
      const retried = Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 100 })
      assert.strictEqual(yield* retried(redis.send("DBSIZE")), 1)
      yield* retried(IoRedis.health.pipe(Effect.provide(context)))
    }).pipe(Effect.scoped, Effect.provide(capturingLogs([]))),
  60_000
)

it.live(
  "a Cluster whose only node does not know its own address is reached at the configured address",
  () =>
    Effect.gen(function*() {
      const { port, send } = yield* RedisServer.start({ args: ["--cluster-enabled yes"] })
      yield* send("CLUSTER", "ADDSLOTS", ...Array.from({ length: 16_384 }, (_, slot) => String(slot)))
      yield* until(
        "the Cluster is up",
        Effect.map(send("CLUSTER", "INFO"), (text) => String(text).includes("state:ok"))
      )
      const context = yield* Layer.build(IoRedis.layerCluster({ nodes: [`127.0.0.1:${port}`] }))
      const redis = Context.get(context, Redis)
      const notices = yield* Context.get(context, Subscriber).subscribe("channel")
      yield* redis.send("SET", "key", "value")
      yield* redis.send("PUBLISH", "channel", "hello")
      assert.deepInclude(yield* Queue.take(notices), { text: "hello" })
      assert.strictEqual(yield* redis.send("DBSIZE"), 1)
      assert.strictEqual(yield* Effect.scoped(Effect.flatMap(redis.reserve, ({ send }) => send("GET", "key"))), "value")
    }).pipe(Effect.scoped, Effect.provide(capturingLogs([]))),
  30_000
)

it.live(
  "a redirection without a host leads to the host that sent it",
  () =>
    Effect.gen(function*() {
      const setup = yield* RedisServer.cluster({
        args: ["--bind 127.0.0.1 127.0.0.2", "--cluster-preferred-endpoint-type unknown-endpoint"]
      })
      const { nodes } = setup
      const layer = IoRedis.layerCluster({ nodes: nodes.map(({ port }) => `127.0.0.2:${port}`), serverChecks: false })
      const context = yield* Layer.build(layer)
      const redis = Context.get(context, Redis)
      const cluster = Context.get(context, IoRedis.IoRedis).client as Cluster
      for (let i = 0; i < 12; i++) {
        const key = `key ${i}`
        const owner = yield* ownerOfSlot(setup, slot(key))
        cluster.slots[slot(key)] = [`127.0.0.2:${nodes.find((node) => node !== owner)!.port}`]
        yield* redis.send("SET", key, "x")
        assert.deepStrictEqual(cluster.slots[slot(key)], [`127.0.0.2:${owner.port}`])
      }
      const redirections = yield* Effect.forEach(nodes, (node) => node.send("INFO", "errorstats"))
      assert.strictEqual(
        redirections.reduce((sum: number, text) => sum + Number(/MOVED:count=(\d+)/.exec(String(text))?.[1] ?? 0), 0),
        12
      )
      assert.isEmpty(cluster.nodes("all").filter(({ options: { host } }) => host !== "127.0.0.2"))
    }).pipe(Effect.scoped, Effect.provide(capturingLogs([]))),
  30_000
)

it.live.each([
  ["an unreachable Cluster", "layerCluster({ nodes: [\"127.0.0.1:1\"] })"],
  ["an unreachable Sentinel", "layer({ client: { name: \"m\", sentinels: [{ port: 1 }] } })"],
  [
    "a Sentinel that does not reply",
    "layer({ client: { name: \"m\", sentinels: [silent.address()], sentinelCommandTimeout: 50 } })"
  ]
])("a program with %s exits quickly", ([, layer]) =>
  Effect.gen(function*() {
    const program = `import { IoRedis } from "@effect-simba/redis"
      import { Effect, Layer } from "effect"
      import { once } from "node:events"
      import { createServer } from "node:net"
      const silent = createServer().listen(0, "127.0.0.1")
      await once(silent, "listening")
      const layer = IoRedis.${layer}
      await Effect.runPromise(Effect.flip(Effect.scoped(Layer.build(layer))))
      const begun = performance.now()
      const check = () => {
        // This timer is one of them
        if (process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length > 1) return setTimeout(check, 20)
        console.log(performance.now() - begun)
        process.exit()
      }
      setTimeout(check)`
    const args = ["--input-type=module", "--eval", program]
    const { stdout } = yield* Effect.promise(() =>
      promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname })
    )
    // ioredis would keep timers for two seconds. The wait before the next attempt to reach Sentinels takes up to 1.2
    assert.isBelow(Number(stdout), 1900)
  }), 30_000)
