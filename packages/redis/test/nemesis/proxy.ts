/** A proxy between clients and one server: it cuts connections, slows them down, and blocks one direction or both. */
import { Effect } from "effect"
import { connect, createServer, type Socket } from "node:net"

export interface Proxy {
  readonly port: number
  /** Whether new connections are refused. */
  refuses: boolean
  /** The delay in both directions, in milliseconds. */
  delay: number
  /** The blocked direction. Data is held back while connections stay open. */
  held: "none" | "requests" | "replies" | "both"
  /** Closes all connections. */
  readonly cut: () => void
}

const holds = ({ held }: Proxy, direction: "requests" | "replies") => held === "both" || held === direction

export const proxyTo = (target: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly proxy: Proxy; readonly close: () => void }>((resume) => {
        const sockets = new Set<Socket>()
        const cut = () => sockets.forEach((socket) => socket.destroy())
        /** Forwards data in order, delayed by `proxy.delay`. */
        const pass = (from: Socket, to: Socket, direction: "requests" | "replies") => {
          const waiting: Array<{ readonly data: Buffer; readonly at: number }> = []
          let timer: NodeJS.Timeout | undefined
          const forward = () => {
            timer = undefined
            while (!holds(proxy, direction) && waiting.length > 0 && waiting[0]!.at <= performance.now()) {
              to.write(waiting.shift()!.data)
            }
            if (waiting.length > 0 && !to.destroyed) timer = setTimeout(forward, 5)
          }
          from.on("data", (data) => {
            if (waiting.length === 0 && proxy.delay === 0 && !holds(proxy, direction)) return void to.write(data)
            waiting.push({ data, at: performance.now() + proxy.delay })
            timer ??= setTimeout(forward, Math.max(1, proxy.delay))
          })
        }
        const listener = createServer((client) => {
          if (proxy.refuses) return void client.destroy()
          const server = connect(target, "127.0.0.1")
          for (const [one, other] of [[client, server], [server, client]] as const) {
            sockets.add(one)
            one.setNoDelay(true)
            one.on("error", () => other.destroy())
            one.on("close", () => {
              sockets.delete(one)
              other.destroy()
            })
          }
          pass(client, server, "requests")
          pass(server, client, "replies")
        })
        const proxy: Proxy & { port: number } = { port: 0, refuses: false, delay: 0, held: "none", cut }
        const close = () => {
          listener.close()
          cut()
        }
        listener.listen(0, "127.0.0.1", () => {
          const address = listener.address()
          proxy.port = typeof address === "object" && address !== null ? address.port : 0
          resume(Effect.succeed({ proxy, close }))
        })
      }),
      ({ close }) => Effect.sync(close)
    ),
    ({ proxy }): Proxy => proxy
  )
