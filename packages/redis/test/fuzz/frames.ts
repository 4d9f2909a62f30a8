/** The fuzzer's `frames` area: a mutex over real connections to a server that sometimes replies with invalid RESP. */
import { Mutex } from "@effect-simba/core"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import * as FakeRedisServer from "@effect-simba/testkit/FakeRedisServer"
import { Effect, Exit, Layer, Logger } from "effect"
import { connect, createServer, type Socket } from "node:net"
import type { Finding } from "./fuzz.ts"
import { anyText, type Draw, drawOf, pick, show } from "./input.ts"
import { verdict } from "./verdict.ts"

const frames = [
  "+OK\r\n",
  "-ERR no\r\n",
  ":1\r\n",
  "$-1\r\n",
  "$2\r\nOK\r\n",
  "*2\r\n$1\r\na\r\n:7\r\n",
  "%1\r\n+server\r\n+redis\r\n",
  "_\r\n",
  "#t\r\n",
  ",1.5\r\n",
  "(12345678901234567890\r\n",
  "!5\r\nERR a\r\n",
  "=7\r\ntxt:abc\r\n",
  "~1\r\n:1\r\n",
  ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n",
  "*-1\r\n",
  "*1000000000\r\n",
  "$999999999999\r\n",
  "$-7\r\nab\r\n",
  "-MOVED 1 127.0.0.1:1\r\n",
  "-ASK 99999 nowhere\r\n",
  "-NOSCRIPT x\r\n",
  "-LOADING x\r\n",
  "-NOAUTH x\r\n",
  "HTTP/1.1 400 Bad Request\r\n\r\n",
  "*1\r\n".repeat(5000)
]

const anyFrame = (draw: Draw): string => {
  const frame = pick(draw, frames)
  const way = draw()
  if (way < 0.5) return frame
  if (way < 0.7) return frame.slice(0, Math.floor(draw() * frame.length))
  if (way < 0.85) return frame + anyFrame(draw)
  return anyText(draw)
}

/** Maximum number of valid replies on a connection before the first that may be invalid. */
const longest = 24

/** Starts a proxy in front of a working server. After the first replies, it replaces half of them with invalid ones. */
const openProxy = Effect.fnUntraced(function*(draw: Draw, target: number) {
  const sent: Array<string> = []
  const sockets = new Set<Socket>()
  const follow = (socket: Socket) => {
    sockets.add(socket)
    socket.on("error", () => {})
    socket.on("close", () => sockets.delete(socket))
  }
  const proxy = yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const proxy = createServer((client) => {
        const server = connect(target, "127.0.0.1")
        follow(client)
        follow(server)
        client.on("close", () => server.destroy())
        client.on("data", (data) => server.write(data))
        let good = Math.floor(draw() * longest)
        server.on("data", (data) => {
          if (good-- > 0 || draw() < 0.5) return void client.write(data)
          const frame = anyFrame(draw)
          sent.push(frame)
          client.write(frame, "latin1")
          if (draw() < 0.1) client.destroy()
        })
      })
      proxy.listen(0, "127.0.0.1", () => resume(Effect.succeed(proxy)))
    }),
    (proxy) =>
      Effect.sync(() => {
        sockets.forEach((socket) => socket.destroy())
        proxy.close()
      })
  )
  const address = proxy.address()
  return { sent, port: typeof address === "object" && address !== null ? address.port : 0 }
})

/** Many cases run concurrently, because they mostly wait for timeouts in real time. */
const concurrency = 64

export const fuzzFrames = Effect.fnUntraced(function*(seed: number, cases: number) {
  const server = yield* FakeRedisServer.listen()
  const numbers = Array.from({ length: cases }, (_, number) => number)
  const found = yield* Effect.forEach(numbers, (number) =>
    Effect.scoped(Effect.gen(function*() {
      const draw = drawOf(seed, number)
      const { port, sent } = yield* openProxy(draw, server.port)
      const redis = IoRedis.layer({
        url: `redis://127.0.0.1:${port}`,
        connectTimeout: "2 seconds",
        commandTimeout: "500 millis",
        client: { protocol: draw() < 0.5 ? 2 : 3 }
      })
      const exit = yield* Mutex.withLock(`jobs-${number}`, { timeout: "2 seconds" })(Effect.void).pipe(
        Effect.provide(RedisMutex.layerRedis({ commandTimeout: "500 millis" }).pipe(Layer.provide(redis))),
        Effect.timeoutOption("10 seconds"),
        Effect.flatMap((result) => result._tag === "None" ? Effect.die("no result within 10 seconds") : Effect.void),
        Effect.exit,
        Effect.provide(Logger.layer([]))
      )
      const problem = Exit.isSuccess(exit) ? undefined : verdict(exit)
      return problem === undefined ? [] : [{ area: "frames", name: "withLock", number, input: show(sent), problem }]
    })), { concurrency })
  return found.flat() satisfies ReadonlyArray<Finding>
})
