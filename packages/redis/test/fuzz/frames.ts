/** A server that speaks invalid RESP: truncated, with wrong lengths, nested, or no RESP at all. */
import { Mutex } from "@effect-simba/core"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { Effect, Exit, Layer, Logger } from "effect"
import { createServer, type Socket } from "node:net"
import type { Finding } from "./fuzz.ts"
import { anyText, type Draw, makeDraw, pick, show } from "./input.ts"
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

export const fuzzFrames = Effect.fnUntraced(function*(seed: number, cases: number) {
  const findings: Array<Finding> = []
  const draw = makeDraw(seed)
  let sent = ""
  const sockets = new Set<Socket>()
  const server = yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer((socket) => {
        sockets.add(socket)
        socket.on("error", () => {})
        socket.on("close", () => sockets.delete(socket))
        let replies = 0
        socket.on("data", () => {
          // The first few are valid, so that other parsers receive the later ones
          sent = replies++ < Math.floor(draw() * 4) ? "+OK\r\n" : anyFrame(draw)
          socket.write(sent, "latin1")
          if (draw() < 0.1) socket.destroy()
        })
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.sync(() => {
        sockets.forEach((socket) => socket.destroy())
        server.close()
      })
  )
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  for (let number = 0; number < cases; number++) {
    const redis = IoRedis.layer({
      url: `redis://127.0.0.1:${port}`,
      connectTimeout: "60 millis",
      commandTimeout: "40 millis",
      client: { protocol: draw() < 0.5 ? 2 : 3 }
    })
    const exit = yield* Effect.scoped(Mutex.acquire("jobs", { timeout: "100 millis" })).pipe(
      Effect.provide(RedisMutex.layerRedis({ commandTimeout: "40 millis" }).pipe(Layer.provide(redis))),
      Effect.timeoutOption("10 seconds"),
      Effect.flatMap((result) => result._tag === "None" ? Effect.die("it hangs") : Effect.void),
      Effect.exit,
      Effect.provide(Logger.layer([]))
    )
    const problem = Exit.isSuccess(exit) ? undefined : verdict(exit)
    if (problem !== undefined) findings.push({ area: "frames", name: "an acquire", number, input: show(sent), problem })
  }
  return findings
})
