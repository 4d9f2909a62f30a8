/** A server that replies to one command with an error, and to others as an idle Redis does. */
import { Effect, type Scope } from "effect"
import { createServer, type Socket } from "node:net"

export interface RefusingServer {
  readonly url: string
  /** The error reply, such as `LOADING the dataset`, to commands of this name. */
  refuse: { readonly command: string; readonly reply: string } | undefined
}

const replyTo = (command: string): string => {
  switch (command) {
    case "HELLO":
      return "-ERR unknown command 'HELLO'"
    case "INFO":
      return "$23\r\nredis_version:7.0.0\r\n\r\n"
    case "EVALSHA":
    case "EVAL":
      return "$2\r\n{}"
    case "SUBSCRIBE":
      return "*3\r\n$9\r\nsubscribe\r\n$7\r\nchannel\r\n:1"
    case "UNSUBSCRIBE":
      return "*3\r\n$11\r\nunsubscribe\r\n$7\r\nchannel\r\n:0"
    case "XREAD":
      return "*-1"
    default:
      return "+OK"
  }
}

export const refusingServer: Effect.Effect<RefusingServer, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.callback<{ readonly server: RefusingServer; readonly close: () => void }>((resume) => {
      const sockets = new Set<Socket>()
      const listener = createServer((socket) => {
        sockets.add(socket)
        socket.on("error", () => undefined).on("data", (data) => {
          // Every request of a client is an array. Its first bulk string is the command
          for (const [, command] of String(data).matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
            const name = command!.toUpperCase()
            const { refuse } = server
            socket.write(`${refuse?.command === name ? `-${refuse.reply}` : replyTo(name)}\r\n`)
          }
        })
      })
      const server = { url: "", refuse: undefined as RefusingServer["refuse"] }
      listener.listen(0, "127.0.0.1", () => {
        server.url = `redis://127.0.0.1:${(listener.address() as { readonly port: number }).port}`
        resume(Effect.succeed({
          server,
          close: () => {
            listener.close()
            sockets.forEach((socket) => socket.destroy())
          }
        }))
      })
    }),
    ({ close }) => Effect.sync(close)
  ),
  ({ server }) => server
)
