/**
 * A TCP relay between clients and a server. It can lose a reply, delay the first reply or hang after it, and redirect
 * or refuse new connections.
 */
import { Effect } from "effect"
import { connect, createServer, type Socket } from "node:net"

export interface Relay {
  readonly port: number
  /** The next command that contains this text reaches the server, but the connection is closed before the reply. */
  cut: string | undefined
  /** The server's port for new connections. */
  target: number
  /** The delay of a connection's first reply, in milliseconds. */
  greeting: number
  /** The next connection stays open but receives nothing after its first reply. */
  isHanging: boolean
  /** Setting it closes all connections. New connections are closed while it is set. */
  isDown: boolean
}

export const relayTo = (target: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly relay: Relay; readonly close: () => void }>((resume) => {
        const sockets = new Set<Socket>()
        let isDown = false
        const listener = createServer((client) => {
          if (isDown) return void client.destroy()
          const server = connect(relay.target, "127.0.0.1")
          let isCut = false
          const { isHanging } = relay
          relay.isHanging = false
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
          const forward = (data: Buffer) => isCut ? client.destroy() : client.write(data)
          server.once("data", (data) => {
            if (isHanging) return void client.write(data)
            const early: Array<Buffer> = [data]
            const keep = (data: Buffer) => early.push(data)
            server.on("data", keep)
            setTimeout(() => {
              server.off("data", keep).on("data", forward)
              early.forEach(forward)
            }, relay.greeting)
          })
        })
        const destroyAll = () => sockets.forEach((socket) => socket.destroy())
        const relay = {
          port: 0,
          cut: undefined as string | undefined,
          target,
          greeting: 0,
          isHanging: false,
          get isDown() {
            return isDown
          },
          set isDown(down) {
            isDown = down
            if (down) destroyAll()
          }
        }
        const close = () => {
          listener.close()
          destroyAll()
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
