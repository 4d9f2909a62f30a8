/** What the doctor, and the look at a server when a layer is built, find on real servers. */
import { InvalidConfig } from "@effect-simba/core/SimbaError"
import { IoRedis, RedisDoctor } from "@effect-simba/redis"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { capturingLogs, RedisServer } from "../../support/harness.ts"
import type { Server } from "../../support/redisServer.ts"

const examine = (server: Server, options?: RedisDoctor.Options, redis?: IoRedis.Options) =>
  Effect.provide(
    RedisDoctor.examine(options),
    Layer.fresh(IoRedis.layer({ url: server.url, serverChecks: false, ...redis }))
  )

const find = (report: RedisDoctor.Report, check: string) => report.findings.find((finding) => finding.check === check)

describe("RedisDoctor", () => {
  it.live("a good server is healthy, and nothing is left there", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start({ args: ["--notify-keyspace-events Ex", "--appendonly yes"] })
      const report = yield* examine(server, { streams: true })
      assert.isTrue(report.isHealthy, RedisDoctor.format(report))
      assert.isTrue(report.findings.every(({ status }) => status === "ok"), RedisDoctor.format(report))
      assert.deepStrictEqual(report.findings.map(({ check }) => check), [
        "version",
        "mode",
        "role",
        "eviction",
        "connections",
        "persistence",
        "keyspaceEvents",
        "clock",
        "latency",
        "permissions",
        "messages"
      ])
      assert.deepStrictEqual(yield* server.send("KEYS", "*"), [])
    }), 30_000)

  it.live("settings that break leases are warnings with their cure", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start({ args: ["--maxmemory-policy allkeys-lru"] })
      const report = yield* examine(server, { streams: true })
      assert.isTrue(report.isUsable)
      assert.isFalse(report.isHealthy)
      assert.deepInclude(find(report, "eviction"), { status: "warning", advice: "set maxmemory-policy noeviction" })
      assert.deepInclude(find(report, "keyspaceEvents"), { status: "warning" })
      assert.deepInclude(find(report, "persistence"), { status: "info" })
    }), 30_000)

  it.live("a node of a Cluster, and a replica, are named", () =>
    Effect.gen(function*() {
      const node = yield* RedisServer.start({ args: ["--cluster-enabled yes"] })
      const report = yield* examine(node)
      assert.isFalse(report.isUsable)
      assert.deepInclude(find(report, "mode"), { status: "error", advice: "use IoRedis.layerCluster" })
      const replica = yield* RedisServer.start({ args: ["--replicaof 127.0.0.1 1"] })
      assert.match(find(yield* examine(replica), "role")!.advice!, /Sentinels/)
    }), 30_000)

  it.live("a user without permissions learns which are missing", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      yield* server.send("ACL", "SETUSER", "app", "on", ">x", "~simba:*", "resetchannels", "+@all", "-zadd", "-evalsha")
      const url = `redis://app:x@127.0.0.1:${server.port}`
      const report = yield* examine(server, {}, { url })
      const permissions = find(report, "permissions")!
      assert.strictEqual(permissions.status, "error")
      assert.match(permissions.message, /'zadd'/)
      assert.match(permissions.message, /'evalsha'/)
      assert.match(permissions.message, /channel/)
      assert.notMatch(permissions.message, /'set'/)
      assert.strictEqual(find(report, "messages")!.status, "warning")
    }), 30_000)

  it.live("each primary of a Cluster is examined", () =>
    Effect.gen(function*() {
      const { nodes } = yield* RedisServer.cluster()
      const examined = Effect.provide(
        RedisDoctor.examine(),
        Layer.fresh(IoRedis.layerCluster({ nodes: nodes.map(({ port }) => ({ host: "127.0.0.1", port })) }))
      )
      assert.deepInclude(find(yield* examined, "coverage"), {
        status: "warning",
        advice: "set cluster-require-full-coverage no"
      })
      yield* Effect.forEach(nodes, (node) => node.send("CONFIG", "SET", "cluster-require-full-coverage", "no"))
      const report = yield* examined
      assert.isTrue(report.isHealthy, RedisDoctor.format(report))
      assert.strictEqual(report.findings.filter(({ check }) => check === "version").length, 3)
    }), 60_000)
})

describe("the look at a server when a layer is built", () => {
  const build = (options: IoRedis.Options) => {
    const lines: Array<string> = []
    return Effect.map(
      Effect.exit(Effect.scoped(Layer.build(Layer.fresh(IoRedis.layer(options))))).pipe(
        Effect.provide(capturingLogs(lines))
      ),
      (exit) => ({ exit, lines })
    )
  }

  it.live("warns once for each setting, unless serverChecks is off", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start({ args: ["--maxmemory-policy volatile-lru", "--replicaof 127.0.0.1 1"] })
      const { lines } = yield* build({ url: server.url })
      assert.strictEqual(lines.length, 2, lines.join("\n"))
      assert.match(
        lines.join("\n"),
        /replica.*\n.*volatile-lru, which may evict a lease: set maxmemory-policy noeviction/
      )
      assert.deepStrictEqual((yield* build({ url: server.url, serverChecks: false })).lines, [])
    }))

  it.live("a node of a Cluster is refused, and layerCluster is named", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start({ args: ["--cluster-enabled yes"] })
      const layer = Layer.fresh(IoRedis.layer({ url: server.url }))
      const error = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
      assert.instanceOf(error, InvalidConfig)
      assert.match(error.message, /IoRedis\.layerCluster/)
    }))
})
