/** Finds a Redis for the demos: the server at `REDIS_URL`, or a new server that stops when the scope closes. */
import { Config, Deferred, Effect, FileSystem, Option, Schema, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { createServer } from "node:net"
import { embedded } from "./redisUrl.ts"

class ServerDidNotStart extends Schema.TaggedError<ServerDidNotStart>()("ServerDidNotStart", {
  problem: Schema.String
}) {
  override get message() {
    return `redis-server did not start: ${this.problem}`
  }
}

/** The version of the `redis-server` on the PATH, if there is one. */
const installed = Effect.gen(function*() {
  const child = yield* ChildProcess.make("redis-server", ["--version"], { stderr: "ignore" })
  const text = yield* Stream.mkString(Stream.decodeText(child.stdout))
  return Option.fromNullishOr(/v=(\S+)/.exec(text)?.[1])
}).pipe(Effect.scoped, Effect.catch(() => Effect.succeedNone))

const freePort = Effect.callback<number, ServerDidNotStart>((resume) => {
  const probe = createServer()
  probe.on("error", (error) => resume(Effect.fail(new ServerDidNotStart({ problem: error.message }))))
  probe.listen(0, "127.0.0.1", () => {
    const address = probe.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    probe.close(() => resume(Effect.succeed(port)))
  })
})

/** Starts a server and waits until it accepts connections. Returns its port. */
const start = Effect.gen(function*() {
  const port = yield* freePort
  const directory = yield* Effect.flatMap(FileSystem.FileSystem, (files) => files.makeTempDirectoryScoped())
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--dir", directory]
  // The configuration that leases and data streams need
  args.push("--save", "", "--appendonly", "yes", "--notify-keyspace-events", "Ex")
  const server = yield* ChildProcess.make("redis-server", args, { stdin: "ignore", forceKillAfter: "3 seconds" })
  const ready = yield* Deferred.make<number, ServerDidNotStart>()
  let last = "it printed nothing"
  yield* server.all.pipe(
    Stream.decodeText,
    Stream.splitLines,
    Stream.runForEach((line) => {
      if (line.trim() !== "") last = line
      return line.includes("Ready to accept connections") ? Deferred.succeed(ready, port) : Effect.void
    }),
    Effect.ignore,
    Effect.andThen(Effect.suspend(() => Deferred.fail(ready, new ServerDidNotStart({ problem: last })))),
    Effect.forkScoped
  )
  return yield* Deferred.await(ready)
})

/** Uses the server at `REDIS_URL`, else a `redis-server` from the PATH, else an in-memory server. */
export const find = Effect.gen(function*() {
  const url = yield* Config.option(Config.String("REDIS_URL"))
  if (Option.isSome(url)) return { url: url.value, name: "the Redis at REDIS_URL" }
  const version = yield* installed
  if (Option.isNone(version)) {
    const url = yield* embedded
    return { url, name: `an in-memory Redis inside this process, at ${url}` }
  }
  // Retry because another process may take the port before the server does
  const port = yield* Effect.retry(start, { times: 3 })
  return {
    url: `redis://127.0.0.1:${port}`,
    name: `a Redis ${version.value} that the demo started at 127.0.0.1:${port}`
  }
})
