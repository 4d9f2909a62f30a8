/** A `redis-server` of the demo's own, on a free port of the loopback interface, gone with the scope. */
import { IoRedis } from "@effect-simba/redis"
import { Effect, Layer, Option, Schedule, Schema, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { createServer } from "node:net"

export class ServerDidNotStart extends Schema.TaggedError<ServerDidNotStart>()("ServerDidNotStart", {
  problem: Schema.String
}) {
  override get message() {
    return `redis-server did not start: ${this.problem}`
  }
}

/** The version of the `redis-server` on the PATH, if there is one. */
export const installed = Effect.gen(function*() {
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

/** Answers the URL once the server accepts connections. */
export const start = Effect.gen(function*() {
  const port = yield* freePort
  const url = `redis://127.0.0.1:${port}`
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
  const server = yield* ChildProcess.make("redis-server", args, { stdin: "ignore", forceKillAfter: "3 seconds" })
  yield* Effect.forkScoped(Effect.ignore(Stream.runDrain(server.all)))
  const connects = Effect.scoped(Effect.suspend(() => Layer.build(IoRedis.layer({ url }))))
  yield* connects.pipe(
    Effect.retry(Schedule.spaced("50 millis").pipe(Schedule.upTo({ times: 100 }))),
    Effect.mapError((error) => new ServerDidNotStart({ problem: error.message }))
  )
  return { url, port }
})
