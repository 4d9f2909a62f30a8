/** Something between a client and a server, such as a load balancer, that loses answers and leads elsewhere. */
import { Effect } from "effect"
import { connect, createServer, type Socket } from "node:net"

export interface Relay {
  readonly port: number
  /** The command that contains this arrives, and its answer does not: the connection is closed instead. Once. */
  cut: string | undefined
  /** Where connections lead that are made from now on. */
  target: number
}

export const relayTo = (target: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly relay: Relay; readonly close: () => void }>((resume) => {
        const sockets = new Set<Socket>()
        const listener = createServer((client) => {
          const server = connect(relay.target, "127.0.0.1")
          let isCut = false
          for (const [one, other] of [[client, server], [server, client]] as const) {
            sockets.add(one)
            one.on("error", () => other.destroy()).on("close", () => other.destroy())
          }
          client.on("data", (data) => {
            if (relay.cut !== undefined && data.includes(relay.cut)) {
              isCut = true
              relay.cut = undefined
            }
            server.write(data)
          })
          server.on("data", (data) => isCut ? client.destroy() : client.write(data))
        })
        const relay = { port: 0, cut: undefined as string | undefined, target }
        const close = () => {
          listener.close()
          sockets.forEach((socket) => socket.destroy())
        }
        listener.listen(0, "127.0.0.1", () => {
          const address = listener.address()
          relay.port = typeof address === "object" && address !== null ? address.port : 0
          resume(Effect.succeed({ relay, close }))
        })
      }),
      ({ close }) => Effect.sync(close)
    ),
    ({ relay }): Relay => relay
  )
