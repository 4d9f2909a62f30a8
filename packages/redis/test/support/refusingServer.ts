/** A server that replies to one command with an error, and to others like an idle Redis or Sentinel. */
import { Effect, type Scope } from "effect"
import { createServer, type Socket } from "node:net"

export interface RefusingServer {
  /** If the server is used as a Sentinel, it names a primary on the same port. */
  port: number
  readonly url: string
  /** The names of the commands that have arrived. */
  readonly received: Array<string>
  /** Whether the server never replies. */
  isSilent: boolean
  /** The error reply, such as `LOADING the dataset`, to commands with this name. */
  refuse: { readonly command: string; readonly reply: string } | undefined
  /** Sends a message to all connections, as if they were subscribed. */
  readonly publish: (channel: string, text: string) => void
}

const replyTo = (command: string, port: number): string => {
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
    case "SENTINEL":
      return `*2\r\n$9\r\n127.0.0.1\r\n$${String(port).length}\r\n${port}`
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
          // Every request is an array whose first bulk string is the command
          for (const [, command] of String(data).matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n/g)) {
            const name = command!.toUpperCase()
            server.received.push(name)
            if (server.isSilent) continue
            const { port, refuse } = server
            socket.write(`${refuse?.command === name ? `-${refuse.reply}` : replyTo(name, port)}\r\n`)
          }
        })
      })
      const server = {
        port: 0,
        url: "",
        received: [] as Array<string>,
        isSilent: false,
        refuse: undefined as RefusingServer["refuse"],
        publish: (...message: ReadonlyArray<string>) => {
          const parts = ["message", ...message].map((part) => `$${part.length}\r\n${part}\r\n`)
          sockets.forEach((socket) => socket.write(`*3\r\n${parts.join("")}`))
        }
      }
      listener.listen(0, "127.0.0.1", () => {
        server.port = (listener.address() as { readonly port: number }).port
        server.url = `redis://127.0.0.1:${server.port}`
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
