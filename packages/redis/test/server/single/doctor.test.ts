/** Tests the doctor on real servers, and the server check that runs when a layer is built. */
import { InvalidConfig } from "@effect-simba/core/SimbaError"
import { IoRedis, RedisDoctor, RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { Redis, RedisError } from "effect/persistence/Redis"
import { RedisServer } from "../../support/harness.ts"
import { rulesOf } from "../../support/permissions.ts"
import type { Server } from "../../support/redisServer.ts"

const examine = (server: Server, options?: Parameters<typeof RedisDoctor.examine>[0], redis?: IoRedis.Options) =>
  Effect.provide(
    RedisDoctor.examine(options),
    Layer.fresh(IoRedis.layer({ url: server.url, serverChecks: false, ...redis }))
  )

const keysWithoutExpiry = Effect.fnUntraced(function*(server: Server) {
  const keys = (yield* server.send("KEYS", "*")) as ReadonlyArray<string>
  return yield* Effect.filter(keys, (key) => Effect.map(server.send("PTTL", key), (left) => left === -1))
})

const find = (report: RedisDoctor.Report, check: string) => report.findings.find((finding) => finding.check === check)

describe("RedisDoctor", () => {
  it.live(
    "reports a well-configured server as healthy, and leaves no keys behind",
    () =>
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
          "jobs",
          "clock",
          "latency",
          "commands",
          "permissions",
          "writes",
          "pauses",
          "messages"
        ])
        assert.deepStrictEqual(yield* server.send("KEYS", "*"), [])
        yield* server.send("HSET", "simba:paused:orders-input", "", "1")
        yield* server.send("HSET", "simba:paused:returns-input", "returns:eu", "1")
        yield* server.send("HSET", "simba:{nightly}:jobs", "paused", "1", "paused:report", "1")
        // Another program's key
        yield* server.send("SET", "simba:{other}:jobs", "1")
        const paused = yield* examine(server, { streams: true })
        assert.isTrue(paused.isHealthy)
        const { message, status } = find(paused, "pauses")!
        assert.strictEqual(status, "info")
        for (const part of ["orders (all)", "returns (1 data stream(s))"]) assert.include(message, part)
        const jobs = { status: "info", message: "paused: nightly, nightly/report" } as const
        assert.deepInclude(find(paused, "jobs"), jobs)
      }),
    30_000
  )

  it.live("warns about a setting that breaks leases, and says what to set", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start({ args: ["--maxmemory-policy allkeys-lru"] })
      const report = yield* examine(server, { streams: true })
      assert.isTrue(report.isUsable)
      assert.isFalse(report.isHealthy)
      assert.deepInclude(find(report, "eviction"), { status: "warning", advice: "set maxmemory-policy noeviction" })
      assert.deepInclude(find(report, "keyspaceEvents"), { status: "warning" })
      assert.deepInclude(find(report, "persistence"), { status: "info" })
    }), 30_000)

  it.live("recognizes a Cluster node and a replica", () =>
    Effect.gen(function*() {
      const node = yield* RedisServer.start({ args: ["--cluster-enabled yes"] })
      const report = yield* examine(node)
      assert.isFalse(report.isUsable)
      assert.deepInclude(find(report, "mode"), { status: "error", advice: "use IoRedis.layerCluster" })
      const replica = yield* RedisServer.start({ args: ["--replicaof 127.0.0.1 1"] })
      const onReplica = yield* examine(replica, { streams: true })
      assert.match(find(onReplica, "role")!.advice!, /Sentinels/)
      assert.deepInclude(find(onReplica, "writes"), { status: "error", advice: "connect to the primary" })
      for (const check of ["pauses", "messages"]) assert.deepInclude(find(onReplica, check), { status: "ok" })
    }), 30_000)

  it.live("names the commands that a server lacks", () =>
    Effect.gen(function*() {
      const removed = ["ZADD", "XCLAIM"].flatMap((name) => ["--rename-command", name, ""])
      const server = yield* RedisServer.start({ args: removed })
      const report = yield* examine(server, { streams: true })
      assert.isFalse(report.isUsable)
      assert.deepInclude(find(report, "commands"), {
        status: "error",
        message: "the server does not know ZADD, XCLAIM",
        advice: "use a server that has these commands"
      })
    }), 30_000)

  it.live("names the options and subcommands that an older server lacks", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      // The replies of Redis 6.0
      const refusals = new Map([
        ["GET", "ERR syntax error"],
        ["(0", "ERR Invalid stream ID specified as stream command argument"],
        ["CREATECONSUMER", "ERR Unknown subcommand or wrong number of arguments for 'CREATECONSUMER'. Try XGROUP HELP."]
      ])
      const older = Layer.effect(
        Redis,
        Effect.map(Redis, (redis) => ({
          ...redis,
          send: (command: string, ...args: ReadonlyArray<string>) => {
            const refusal = args.map((arg) => refusals.get(arg)).find((text) => text !== undefined)
            return refusal === undefined
              ? redis.send(command, ...args)
              : Effect.fail(new RedisError({ cause: new Error(refusal) }))
          }
        } as typeof redis))
      )
      const report = yield* RedisDoctor.examine({ streams: true }).pipe(
        Effect.provide(
          Layer.provideMerge(older, Layer.fresh(IoRedis.layer({ url: server.url, serverChecks: false })))
        )
      )
      const { message, status } = find(report, "commands")!
      assert.strictEqual(status, "error")
      for (const part of [/SET \S+ doctor PX 5000 GET/, /XRANGE \S+ \(0/, /XGROUP CREATECONSUMER/]) {
        assert.match(message, part)
      }
    }), 30_000)

  it.live("names the permissions that a user lacks", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      yield* server.send("ACL", "SETUSER", "app", "on", ">x", "~simba:*", "resetchannels", "+@all", "-zadd", "-evalsha")
      const url = `redis://app:x@127.0.0.1:${server.port}`
      const report = yield* examine(server, {}, { url })
      const permissions = find(report, "permissions")!
      assert.strictEqual(permissions.status, "error")
      assert.match(permissions.message, /^refused: 'zadd', 'evalsha', NOPERM .*channel/)
      const messages = find(report, "messages")!
      assert.strictEqual(messages.status, "error")
      assert.match(messages.message, /^a layer cannot be built: NOPERM .*operations guide$/)
      assert.isEmpty(yield* keysWithoutExpiry(server))
    }), 30_000)

  it.live(
    "passes with the documented permissions, and fails if any one of them is missing",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer.start({ args: ["--appendonly yes", "--notify-keyspace-events Ex"] })
        const url = `redis://locks:secret@127.0.0.1:${server.port}`
        // Only the first permission is necessary for the layer to connect.
        const unseen = ["+info", "+client|setname", "+unsubscribe"]
        for (const nth of [1, 2]) {
          const streams = nth === 2
          const rules = [...rulesOf(1), ...(streams ? rulesOf(2) : [])]
          yield* server.send("ACL", "SETUSER", "locks", "reset", ...rules)
          const report = yield* examine(server, { streams, pings: 1 }, { url })
          assert.isTrue(report.isHealthy, RedisDoctor.format(report))
          const commands = rules.filter((rule) => rule.startsWith("+") && !unseen.includes(rule))
          for (const missing of streams ? commands.filter((rule) => !rulesOf(1).includes(rule)) : commands) {
            yield* server.send("ACL", "SETUSER", "locks", "reset", ...rules.filter((rule) => rule !== missing))
            const report = yield* examine(server, { streams, pings: 1 }, { url })
            assert.isFalse(report.isUsable, `without ${missing}: ${RedisDoctor.format(report)}`)
            assert.isEmpty(yield* keysWithoutExpiry(server), `without ${missing}`)
          }
        }
      }),
    60_000
  )

  it.live("building a layer requires permission to subscribe", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const url = `redis://app:x@127.0.0.1:${server.port}`
      yield* server.send("ACL", "SETUSER", "app", "on", ">x", "~simba:*", "resetchannels", "&simba:{*", "+@all")
      const report = yield* examine(server, {}, { url })
      assert.isFalse(report.isUsable)
      assert.deepInclude(find(report, "messages"), {
        status: "error",
        advice: "permit SUBSCRIBE and the channels simba:*"
      })
      const building = Layer.build(Layer.fresh(RedisMutex.layer({ redis: { url } })))
      assert.match((yield* Effect.flip(Effect.scoped(building))).message, /NOPERM/)
    }), 30_000)

  it.live(
    "reports a server as unusable if it refuses writes because its memory is full",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer.start()
        yield* server.send("SET", "large", "x".repeat(100_000))
        yield* server.send("CONFIG", "SET", "maxmemory", "1")
        const report = yield* examine(server)
        assert.isFalse(report.isUsable)
        const writes = find(report, "writes")!
        assert.strictEqual(writes.status, "error")
        assert.match(writes.message, /^the server refuses writes: OOM/)
        assert.strictEqual(writes.advice, "free memory or raise maxmemory")
      }),
    30_000
  )

  it.live("examines each primary of a Cluster", () =>
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
      assert.sameMembers(
        report.findings.filter(({ check }) => check === "node").map(({ message }) => message),
        nodes.map(({ port }) => `127.0.0.1:${port}`)
      )
      yield* Effect.forEach(nodes, (node) => node.send("CLUSTER", "DELSLOTS", "5", "6"))
      const holey = yield* examined
      assert.isFalse(holey.isUsable)
      assert.deepInclude(find(holey, "coverage"), {
        status: "error",
        message: "no node serves 2 slot(s)"
      })
    }), 60_000)
})

describe("the server check when a layer is built", () => {
  /** Builds a layer and returns the lines that it logs. */
  const linesOf = <A, E>(layer: Layer.Layer<A, E>) => {
    const lines: Array<string> = []
    const capturing = Logger.layer([Logger.make(({ logLevel, message }) => {
      lines.push(`${logLevel} ${[message].flat().join(" ")}`)
    })])
    return Effect.as(Effect.provide(Effect.scoped(Layer.build(Layer.fresh(layer))), capturing), lines)
  }

  it.live("logs one line per finding, once per server and process", () =>
    Effect.gen(function*() {
      const { port, url } = yield* RedisServer.start({
        args: ["--maxmemory-policy volatile-lru", "--replicaof 127.0.0.1 1"]
      })
      const at = `Redis at 127.0.0.1:${port}`
      assert.deepStrictEqual(yield* linesOf(IoRedis.layer({ url })), [
        `Warn ${at}: this server is a replica, which refuses writes (READONLY): connect to its primary, or name the Sentinels in client.sentinels`,
        `Warn ${at}: the eviction policy is volatile-lru, which may evict a lease: set maxmemory-policy noeviction`,
        `Info ${at}: no append-only file: a restart loses at least the newest writes: set appendonly yes`
      ])
      // A second layer of this process does not repeat the findings
      assert.deepStrictEqual(yield* linesOf(IoRedis.layer({ url })), [])
    }))

  it.live("logs nothing if serverChecks is off", () =>
    Effect.gen(function*() {
      const { url } = yield* RedisServer.start({ args: ["--maxmemory-policy volatile-lru"] })
      assert.deepStrictEqual(yield* linesOf(IoRedis.layer({ url, serverChecks: false })), [])
    }))

  it.live("logs nothing for a well-configured server", () =>
    Effect.gen(function*() {
      const { url } = yield* RedisServer.start({ args: ["--appendonly yes"] })
      assert.deepStrictEqual(yield* linesOf(IoRedis.layer({ url })), [])
    }))

  it.live("warns a data-stream client about missing keyspace events", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start({ args: ["--appendonly yes"] })
      const lines = (options: Partial<RedisStreams.Options> = {}) =>
        linesOf(RedisStreams.layer({ service: "s", ...options, redis: { url: server.url, ...options.redis } }))
      assert.deepStrictEqual(yield* lines(), [
        "Warn Redis: expired events are not sent: orphaned data streams wait for a sweep: " +
        "set notify-keyspace-events to Ex, or set enableEvents"
      ])
      assert.deepStrictEqual(yield* lines({ redis: { serverChecks: false } }), [])
      assert.deepStrictEqual(yield* lines({ enableEvents: true }), [])
      // The layer must not change the server's setting
      assert.deepStrictEqual(yield* lines(), [])
    }))

  it.live("refuses a Cluster node, and recommends layerCluster", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start({ args: ["--cluster-enabled yes"] })
      const layer = Layer.fresh(IoRedis.layer({ url: server.url }))
      const error = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
      assert.instanceOf(error, InvalidConfig)
      assert.match(error.message, /IoRedis\.layerCluster/)
    }))
})
