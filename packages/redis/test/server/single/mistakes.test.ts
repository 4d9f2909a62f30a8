/**
 * Makes common mistakes and compares the messages with the table in docs/errors.md. `UPDATE_DOCS=1` updates the table.
 */
import * as Mutex from "@effect-simba/core/Mutex"
import { MutexName } from "@effect-simba/core/MutexName"
import { MutexStore } from "@effect-simba/core/MutexStore"
import type { BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { createSimba, type LockOptions, type Simba } from "@effect-simba/redis/promise"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, type Scope } from "effect"
import { Redis, type RedisError } from "effect/persistence/Redis"
import { Redis as Client } from "ioredis"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { inspect } from "node:util"
import { certificate, privateKey } from "../../support/certificate.ts"
import { RedisServer } from "../../support/harness.ts"
import type { Server } from "../../support/redisServer.ts"

const page = fileURLToPath(new URL("../../../../../docs/errors.md", import.meta.url))

const folder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "effect-simba-tls-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

/** A server with a TLS port and a plain port. */
const tlsServer = Effect.gen(function*() {
  const path = yield* folder
  const cert = join(path, "cert.pem")
  const key = join(path, "key.pem")
  yield* Effect.promise(() => Promise.all([writeFile(cert, certificate), writeFile(key, privateKey)]))
  const port = yield* closedPort
  yield* RedisServer.start({
    args: [
      `--tls-port ${port}`,
      `--tls-cert-file ${cert}`,
      `--tls-key-file ${key}`,
      `--tls-ca-cert-file ${cert}`,
      "--tls-auth-clients no"
    ]
  })
  return port
})

/** A port with no listener. */
const closedPort = Effect.callback<number>((resume) => {
  const probe = createServer()
  probe.listen(0, "127.0.0.1", () => {
    const { port } = probe.address() as { readonly port: number }
    probe.close(() => resume(Effect.succeed(port)))
  })
})

/** Greets every connection with a text, like a server that speaks another protocol. */
const otherServer = Effect.map(
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const listener = createServer((socket) => {
        socket.on("error", () => undefined).end("HTTP/1.1 400 Bad Request\r\n\r\n")
      })
      listener.listen(0, "127.0.0.1", () => resume(Effect.succeed(listener)))
    }),
    (listener) => Effect.sync(() => listener.close())
  ),
  (listener) => (listener.address() as { readonly port: number }).port
)

const m = MutexName.make("m")

type Failure = BackendError | InvalidConfig | RedisError

/** Returns the failure to build a layer. */
const refusal = (layer: ReturnType<typeof IoRedis.layer>) =>
  Effect.map(Effect.flip(Effect.scoped(Layer.build(Layer.fresh(layer)))), (error) => error as Failure)

const at = (port: number) => ({ host: "127.0.0.1", port })

interface Mistake {
  readonly what: string
  readonly make: Effect.Effect<Failure, unknown, Scope.Scope>
}

const toLayer = (what: string, options: Effect.Effect<IoRedis.Options, unknown, Scope.Scope>): Mistake => ({
  what,
  make: Effect.flatMap(options, (passed) => refusal(IoRedis.layer(passed)))
})

/** A mutex and a `Redis` on a separate server. */
const withMutex = <A, R extends Mutex.Mutex | Redis | Scope.Scope>(
  args: ReadonlyArray<string>,
  use: (server: Server) => Effect.Effect<A, unknown, R>
) =>
  Effect.gen(function*() {
    const server = yield* RedisServer.start({ args })
    const live = Mutex.layer().pipe(
      Layer.provide(RedisMutex.layerStore),
      Layer.provideMerge(IoRedis.layer({ url: server.url, serverChecks: false }))
    )
    return (yield* Effect.provide(use(server), yield* Layer.build(Layer.fresh(live)))) as Failure
  })

const rejection = (call: () => Promise<unknown>) =>
  Effect.flip(Effect.tryPromise({ try: call, catch: (error) => error as Failure }))

const inJavaScript = (what: string, call: (simba: Simba) => Promise<unknown>): Mistake => ({
  what,
  make: Effect.gen(function*() {
    const { url } = yield* RedisServer.start()
    const simba = yield* Effect.acquireRelease(
      Effect.promise(() => createSimba({ url })),
      (simba) => Effect.promise(() => simba.close())
    )
    return yield* rejection(() => call(simba))
  })
})

const mistakes: ReadonlyArray<Mistake> = [
  toLayer("nothing is listening there", Effect.map(closedPort, (port) => ({ url: `redis://127.0.0.1:${port}` }))),
  toLayer("the host name does not resolve", Effect.succeed({ url: "redis://-redis.invalid:6379" })),
  toLayer("a server with another protocol", Effect.map(otherServer, (port) => ({ url: `redis://127.0.0.1:${port}` }))),
  toLayer("`redis://` to a port with TLS", Effect.map(tlsServer, (port) => ({ url: `redis://127.0.0.1:${port}` }))),
  toLayer(
    "`rediss://` to a port without TLS",
    Effect.map(RedisServer.start(), ({ port }) => ({ url: `rediss://127.0.0.1:${port}` }))
  ),
  toLayer(
    "a certificate from an unknown authority",
    Effect.map(tlsServer, (port) => ({ url: `rediss://127.0.0.1:${port}` }))
  ),
  toLayer(
    "no password",
    Effect.map(RedisServer.start({ args: ["--requirepass secret"] }), ({ url }) => ({ url }))
  ),
  toLayer(
    "a wrong password",
    Effect.map(
      RedisServer.start({ args: ["--requirepass secret"] }),
      ({ port }) => ({ url: `redis://:mistyped@127.0.0.1:${port}` })
    )
  ),
  toLayer(
    "Sentinels that do not know the primary",
    Effect.map(RedisServer.sentinel(), ({ sentinels }) => ({
      client: { sentinels: sentinels.slice(0, 1).map(({ port }) => at(port)), name: "other" }
    }))
  ),
  toLayer(
    "no Sentinel is listening there",
    Effect.map(closedPort, (port) => ({ client: { sentinels: [at(port)], name: "mymaster" } }))
  ),
  toLayer(
    "the port of a Sentinel",
    Effect.map(RedisServer.sentinel(), ({ sentinels }) => ({ url: sentinels[0]!.url }))
  ),
  toLayer(
    "`IoRedis.layer` for a Cluster",
    Effect.map(RedisServer.start({ args: ["--cluster-enabled yes"] }), ({ url }) => ({ url }))
  ),
  {
    what: "`IoRedis.layerCluster` for a single server",
    make: Effect.flatMap(
      RedisServer.start(),
      ({ port }) => refusal(IoRedis.layerCluster({ nodes: [at(port)] }))
    )
  },
  {
    what: "a Cluster behind another provider of `Redis`",
    make: Effect.gen(function*() {
      const { nodes } = yield* RedisServer.cluster()
      const plain = IoRedis.layer({ url: nodes[0]!.url, serverChecks: false })
      const context = yield* Layer.build(RedisMutex.layerStore.pipe(Layer.provide(plain)))
      const store = Context.get(context, MutexStore)
      const exits = yield* Effect.forEach(
        ["a", "b", "c", "d", "e", "f"],
        (name) => Effect.exit(Effect.flip(store.owner(MutexName.make(name))))
      )
      return exits.find(Exit.isSuccess)!.value as Failure
    })
  },
  toLayer(
    "Sentinels without a name",
    Effect.map(closedPort, (port) => ({ client: { sentinels: [at(port)] } }))
  ),
  toLayer(
    "a regular server in place of a Sentinel",
    Effect.map(RedisServer.start(), ({ port }) => ({ client: { sentinels: [at(port)], name: "mymaster" } }))
  ),
  toLayer(
    "a `/` in the password of the URL",
    Effect.map(closedPort, (port) => ({ url: `redis://:secret/@127.0.0.1:${port}` }))
  ),
  toLayer(
    "a server at its `maxclients`",
    Effect.gen(function*() {
      const { url } = yield* RedisServer.start({ args: ["--maxclients 1"] })
      yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const client = new Client(url, { lazyConnect: true })
          await client.connect()
          return client
        }),
        (client) => Effect.sync(() => client.disconnect())
      )
      return { url }
    })
  ),
  {
    what: "a replica",
    make: withMutex(
      ["--replicaof 127.0.0.1 1"],
      () => Effect.flip(Effect.scoped(Mutex.acquireIfAvailable("m")))
    )
  },
  {
    what: "a server at its `maxmemory`",
    make: withMutex(
      ["--maxmemory 1", "--maxmemory-policy noeviction"],
      () => Effect.flip(Effect.scoped(Mutex.acquire("m", { timeout: "2 seconds" })))
    )
  },
  {
    what: "a key that belongs to another program",
    make: withMutex([], (server) =>
      Effect.andThen(
        server.send("LPUSH", "simba:{m}", "theirs"),
        Effect.flip(Effect.scoped(Mutex.acquire("m")))
      ))
  },
  {
    what: "`MULTI` through `Redis.send`",
    make: withMutex([], () => Effect.flatMap(Redis, ({ send }) => Effect.flip(send("MULTI"))))
  },
  {
    what: "a client that the application closed",
    make: Effect.gen(function*() {
      const { url } = yield* RedisServer.start()
      const client = new Client(url)
      const simba = yield* Effect.acquireRelease(
        Effect.promise(() => createSimba({ client })),
        (simba) => Effect.promise(() => simba.close())
      )
      yield* Effect.promise(() => client.quit())
      yield* Effect.sleep("100 millis")
      return yield* rejection(() => simba.withLock("m", { timeout: "2 seconds" }, () => Promise.resolve()))
    })
  },
  inJavaScript(
    "an option that does not exist",
    (simba) => simba.withLock("m", { tiemout: 1 } as LockOptions, () => Promise.resolve())
  ),
  inJavaScript(
    "a time zone that does not exist",
    (simba) => simba.lead("m", { cron: "0 3 * * *", timeZone: "Mars" }, () => Promise.resolve())
  ),
  inJavaScript(
    "a cron expression with four fields",
    (simba) => simba.lead("m", { cron: "0 3 * *" }, () => Promise.resolve())
  ),
  {
    what: "a server that hangs",
    make: Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const layer = RedisMutex.layerStore.pipe(Layer.provide(IoRedis.layer({ url: server.url })))
      const store = Context.get(yield* Layer.build(layer), MutexStore)
      yield* server.pause
      return (yield* Effect.flip(store.owner(m))) as Failure
    })
  },
  {
    what: "a server that goes away before replying",
    make: Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const redis = IoRedis.layer({ url: server.url, commandTimeout: "5 seconds" })
      const store = Context.get(yield* Layer.build(RedisMutex.layerStore.pipe(Layer.provide(redis))), MutexStore)
      yield* server.pause
      yield* Effect.forkScoped(Effect.delay(server.kill(), "100 millis"))
      return (yield* Effect.flip(store.owner(m))) as Failure
    })
  },
  {
    what: "a server that has gone away",
    make: Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const layer = RedisMutex.layerStore.pipe(Layer.provide(IoRedis.layer({ url: server.url })))
      const store = Context.get(yield* Layer.build(layer), MutexStore)
      yield* server.kill()
      yield* Effect.sleep("100 millis")
      return (yield* Effect.flip(store.owner(m))) as Failure
    })
  }
]

/** Masks the parts of a message that differ between runs, and the hyphen that keeps a name from being resolved. */
const stable = (text: string) =>
  text.replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:6379").replaceAll(/\bslot \d+/g, "slot 1")
    .replaceAll("-redis.invalid", "redis.invalid")

const rowOf = Effect.fnUntraced(function*({ make, what }: Mistake) {
  const error = yield* Effect.scoped(make)
  const shown = inspect(error, { depth: 10 })
  assert.notMatch(shown, /mistyped|secret|node_modules\/.*ioredis/, what)
  assert.notMatch(error.message, /\.\.|\n/, what)
  const repeated = error._tag === "BackendError" && error.isRetryable ? "yes" : "no"
  return [what, `\`${stable(error.message)}\``, repeated]
})

const rowsIn = (text: string) =>
  text.split("<!-- mistakes -->")[1]!.trim().split("\n").slice(2).map((line) =>
    line.split("|").slice(1, -1).map((cell) => cell.trim())
  )

it.live(
  "the message for each mistake says how to correct it, as documented",
  () =>
    Effect.gen(function*() {
      const rows: Array<ReadonlyArray<string>> = []
      for (const mistake of mistakes) rows.push(yield* rowOf(mistake))
      const text = yield* Effect.promise(() => readFile(page, "utf8"))
      if (process.env["UPDATE_DOCS"] !== undefined) {
        const table = [
          "| mistake | message | try again |",
          "| - | - | - |",
          ...rows.map((row) => `| ${row.join(" | ")} |`)
        ]
        const parts = text.split("<!-- mistakes -->")
        parts[1] = `\n\n${table.join("\n")}\n\n`
        yield* Effect.promise(() => writeFile(page, parts.join("<!-- mistakes -->")))
      }
      assert.deepStrictEqual(rows, rowsIn(yield* Effect.promise(() => readFile(page, "utf8"))))
    }),
  120_000
)
