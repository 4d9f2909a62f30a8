/**
 * Starts real Redis servers for tests. They listen on the loopback interface, store their data in temporary folders,
 * and run until the scope closes.
 *
 * Everything in this file uses real time, even under a `TestClock`.
 */
import { Context, Deferred, Effect, Layer, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { RedisServerError, type Reply, send } from "./redisProtocol.ts"

export interface StartOptions {
  /** Additional arguments for the server, such as `["--maxmemory 10mb"]`. */
  readonly args?: ReadonlyArray<string>
  /** The port. Default: a free one. Starting fails if the port is taken. */
  readonly port?: number
}

/** A server used by only one test or test file. */
export interface Server {
  readonly port: number
  /** The server's URL, for example for `REDIS_URL`. */
  readonly url: string
  /** The process id, which a restart changes. */
  readonly pid: number
  /** Sends one command over a separate connection. */
  readonly send: (...args: ReadonlyArray<string>) => Effect.Effect<Reply, RedisServerError>
  /** Sends a signal, by default `SIGKILL`. After `SIGKILL` or `SIGTERM`, waits until the process has exited. */
  readonly kill: (signal?: NodeJS.Signals) => Effect.Effect<void>
  /** Suspends the process, which stops replying but keeps its connections open. */
  readonly pause: Effect.Effect<void>
  readonly resume: Effect.Effect<void>
  /** Kills the process if it is running, then starts a new one on the same port with the same arguments. */
  readonly restart: Effect.Effect<void, RedisServerError>
}

/** A primary and its replica, watched by three sentinels. */
export interface SentinelSetup {
  readonly name: string
  readonly primary: Server
  readonly replica: Server
  readonly sentinels: ReadonlyArray<Server>
  /** The port of the current primary, according to the sentinels. */
  readonly primaryPort: Effect.Effect<number, RedisServerError>
}

/** Three primaries without replicas. Each owns a third of the slots. */
export interface ClusterSetup {
  readonly nodes: ReadonlyArray<Server>
}

const fail = (message: string) => new RedisServerError({ message })
const portTaken = (port: number) => fail(`port ${port} is taken`)

/** The server program: `redis-server` unless the variable names another one, such as `valkey-server`. */
const program = process.env["REDIS_SERVER"] ?? "redis-server"

const missing = `${program} was not found on the PATH; the tests start their own servers.  `
  + "Debian, Ubuntu: apt-get install redis-server. Fedora: dnf install redis. macOS: brew install redis."

const realSleep = (millis: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const timer = setTimeout(() => resume(Effect.void), millis)
    return Effect.sync(() => clearTimeout(timer))
  })

const realTimeout = <A>(self: Effect.Effect<A>, millis: number): Effect.Effect<A | void> =>
  Effect.raceFirst(self, realSleep(millis))

/** Polls until the condition holds. Retries failed polls. */
const until = Effect.fnUntraced(function*(what: string, condition: Effect.Effect<boolean, RedisServerError>) {
  const deadline = performance.now() + 20_000
  while (!(yield* Effect.orElseSucceed(condition, () => false))) {
    if (performance.now() > deadline) return yield* fail(`${what}: not within 20 seconds`)
    yield* realSleep(25)
  }
})

/**
 * Each test worker has its own port range. It reuses ports as late as possible, because a new server must not reply in
 * place of one that is temporarily down. All ports, and the cluster bus ports 10000 above them, are below the usual
 * ephemeral port range.
 */
const portsOfWorker = 2000
const firstPort = 11_000 + portsOfWorker * (Number(process.env["VITEST_POOL_ID"] ?? 0) % 5)
let offered = Math.floor(Math.random() * portsOfWorker)
const nextPort = () => firstPort + offered++ % portsOfWorker

const isFree = (port: number): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const probe = createServer()
    probe.on("error", () => resume(Effect.succeed(false)))
    probe.listen(port, "127.0.0.1", () => probe.close(() => resume(Effect.succeed(true))))
  })

const freePort: Effect.Effect<number> = Effect.gen(function*() {
  for (;;) {
    const port = nextPort()
    if ((yield* isFree(port)) && (yield* isFree(port + 10_000))) return port
  }
})

const temporaryFolder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "effect-simba-redis-"))),
  (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
)

/** The running servers, which are killed when the test process exits, even in the middle of a test. */
const children = new Set<ChildProcess>()
process.on("exit", () => children.forEach((child) => child.kill("SIGKILL")))

interface Running {
  readonly child: ChildProcess
  /** Completes, with the reason, when the process has exited or could not start. */
  readonly ended: Deferred.Deferred<RedisServerError>
}

const launch = (args: ReadonlyArray<string>, folder: string, port: number): Effect.Effect<Running> =>
  Effect.sync(() => {
    const ended = Deferred.makeUnsafe<RedisServerError>()
    const child = spawn(program, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] })
    children.add(child)
    let log = ""
    const keep = (chunk: Buffer) => {
      log = (log + chunk.toString("utf8")).slice(-4000)
    }
    const end = (error: RedisServerError) => {
      children.delete(child)
      Deferred.doneUnsafe(ended, Effect.succeed(error))
    }
    child.stdout.on("data", keep)
    child.stderr.on("data", keep)
    child.on("error", (error: NodeJS.ErrnoException) => end(fail(error.code === "ENOENT" ? missing : error.message)))
    child.on(
      "close",
      (code, signal) =>
        end(
          /Address already in use/i.test(log)
            ? portTaken(port)
            : fail(`${program} ended (${signal ?? code}):\n${log}`)
        )
    )
    return { child, ended }
  })

const end = Effect.fnUntraced(function*({ child, ended }: Running, signal: "SIGTERM" | "SIGKILL") {
  child.kill(signal)
  child.kill("SIGCONT") // A suspended process handles SIGTERM only after SIGCONT
  yield* realTimeout(Deferred.await(ended), 3000)
  child.kill("SIGKILL")
  yield* Deferred.await(ended)
})

/**
 * Returns whether the server on this port is ready. It must be this process, not another one that took the port first,
 * and must have loaded its data.
 */
const replies = (port: number, child: ChildProcess): Effect.Effect<boolean, RedisServerError> =>
  send(port, "INFO").pipe(
    Effect.map((info) => {
      const text = String(info)
      return text.includes(`process_id:${child.pid}\r\n`) && !text.includes("\r\nloading:1\r\n")
    }),
    // NOAUTH means that the server has a password. The process is still running, so the server is the right one.
    Effect.catch((error) => Effect.succeed(error.message.startsWith("NOAUTH") && children.has(child)))
  )

const startOn = Effect.fnUntraced(function*(port: number, folder: string, args: ReadonlyArray<string>) {
  let running: Running | undefined
  const begin = Effect.gen(function*() {
    const begun = running = yield* launch(args, folder, port)
    yield* Effect.raceFirst(
      until(`${program} on port ${port} replies`, replies(port, begun.child)),
      Effect.flatMap(Deferred.await(begun.ended), Effect.fail)
    )
  })
  const stop = (signal: "SIGTERM" | "SIGKILL") =>
    Effect.suspend(() => running === undefined ? Effect.void : end(running, signal))
  const signalOnly = (signal: NodeJS.Signals) => Effect.sync(() => void running?.child.kill(signal))

  yield* Effect.addFinalizer(() => stop("SIGTERM"))
  yield* begin
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    get pid() {
      return running?.child.pid ?? -1
    },
    send: (...args) => send(port, ...args),
    kill: (signal = "SIGKILL") => signal === "SIGKILL" || signal === "SIGTERM" ? stop(signal) : signalOnly(signal),
    pause: signalOnly("SIGSTOP"),
    resume: signalOnly("SIGCONT"),
    restart: Effect.andThen(stop("SIGKILL"), begin)
  } satisfies Server as Server
})

/** Starts a server on the requested port or on a free one. Retries if another process takes the free port first. */
const startSomewhere = Effect.fnUntraced(function*(
  wished: number | undefined,
  args: (port: number, folder: string) => Effect.Effect<ReadonlyArray<string>>
) {
  const folder = yield* temporaryFolder
  const attempt = Effect.gen(function*() {
    const port = wished ?? (yield* freePort)
    if (wished !== undefined && !(yield* isFree(port))) return yield* portTaken(port)
    return yield* startOn(port, folder, yield* args(port, folder))
  })
  return yield* Effect.retry(attempt, {
    times: 10,
    while: (error) => wished === undefined && error.message.endsWith("is taken")
  })
})

const plainArgs = (port: number): ReadonlyArray<string> => [
  `--port ${port}`,
  "--bind 127.0.0.1",
  "--save",
  "",
  "--appendonly no",
  "--repl-diskless-sync-delay 0"
]

const start = (options: StartOptions = {}): Effect.Effect<Server, RedisServerError, Scope.Scope> =>
  startSomewhere(options.port, (port) => Effect.succeed([...plainArgs(port), ...options.args ?? []]))

const startSentinel = (name: string, primary: number, downAfter: number) =>
  startSomewhere(undefined, (port, folder) => {
    const file = join(folder, "sentinel.conf")
    const settings = [
      `port ${port}`,
      "bind 127.0.0.1",
      `sentinel monitor ${name} 127.0.0.1 ${primary} 2`,
      `sentinel down-after-milliseconds ${name} ${downAfter}`,
      `sentinel failover-timeout ${name} 2000`
    ]
    return Effect.as(Effect.promise(() => writeFile(file, `${settings.join("\n")}\n`)), [file, "--sentinel"])
  })

const fieldsOf = (server: Server, ...args: ReadonlyArray<string>) =>
  Effect.map(server.send(...args), (info) => new Set(String(info).split("\r\n")))

/** `downAfter` is how long the primary may be silent before a Sentinel considers it down, in milliseconds. */
const sentinel = Effect.fnUntraced(function*(
  { args = [], downAfter = 500 }: { readonly args?: ReadonlyArray<string>; readonly downAfter?: number } = {}
) {
  const name = "mymaster"
  const primary = yield* start({ args })
  const replica = yield* start({ args: ["--replicaof", "127.0.0.1", String(primary.port), ...args] })
  yield* until(
    "the replica is in sync",
    Effect.map(fieldsOf(replica, "INFO", "replication"), (fields) => fields.has("master_link_status:up"))
  )
  const sentinels = yield* Effect.forEach([1, 2, 3], () => startSentinel(name, primary.port, downAfter), {
    concurrency: "unbounded"
  })
  const knows = (one: Server) =>
    Effect.map(
      fieldsOf(one, "INFO", "sentinel"),
      (fields) =>
        [...fields].some((field) =>
          field.startsWith(`master0:name=${name},status=ok,`) && field.endsWith("slaves=1,sentinels=3")
        )
    )
  for (const one of sentinels) yield* until("the sentinels know each other", knows(one))
  const primaryPort = Effect.map(
    Effect.raceAll(sentinels.map((one) => one.send("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name))),
    (address) => Array.isArray(address) ? Number(address[1]) : -1
  )
  return { name, primary, replica, sentinels, primaryPort } satisfies SentinelSetup as SentinelSetup
})

const cluster = Effect.fnUntraced(function*(options: { readonly args?: ReadonlyArray<string> } = {}) {
  const args = [
    "--cluster-enabled yes",
    "--cluster-node-timeout 1000",
    "--cluster-announce-ip 127.0.0.1",
    ...options.args ?? []
  ]
  const nodes = yield* Effect.forEach([1, 2, 3], () => start({ args }), { concurrency: "unbounded" })
  const slots = Array.from({ length: 16_384 }, (_, slot) => slot)
  const ownerOf = (slot: number) => Math.floor((slot * nodes.length) / slots.length)
  for (const [index, node] of nodes.entries()) {
    yield* node.send("CLUSTER", "ADDSLOTS", ...slots.filter((slot) => ownerOf(slot) === index).map(String))
    yield* node.send("CLUSTER", "SET-CONFIG-EPOCH", String(index + 1))
  }
  for (const node of nodes) yield* node.send("CLUSTER", "MEET", "127.0.0.1", String(nodes[0]!.port))
  for (const node of nodes) {
    yield* until(
      "the cluster is formed",
      Effect.map(
        fieldsOf(node, "CLUSTER", "INFO"),
        (fields) => ["cluster_state:ok", "cluster_known_nodes:3", "cluster_size:3"].every((field) => fields.has(field))
      )
    )
  }
  return { nodes } satisfies ClusterSetup as ClusterSetup
})

/**
 * `RedisServer.layer` provides one server to all tests in a file. `start`, `sentinel` and `cluster` start servers in a
 * scope.
 */
export class RedisServer extends Context.Service<RedisServer, Server>()("@effect-simba/redis/test/RedisServer") {
  static readonly start = start
  static readonly sentinel = sentinel
  static readonly cluster = cluster
  static readonly layer: Layer.Layer<RedisServer, RedisServerError> = Layer.effect(this, start())
}

export { RedisServerError, type Reply, send }
