/** Sends and receives raw bytes, without a client library. */
import { connect, type Socket } from "node:net"

export interface RawSocket {
  readonly socket: Socket
  readonly write: (text: string) => void
  /**
   * Waits until the received bytes meet the condition or the server disconnects. Returns the bytes, one character per
   * byte.
   */
  readonly until: (condition: (text: string) => boolean) => Promise<string>
  /** Waits until the server closes the connection. Returns all bytes received so far. */
  readonly rest: () => Promise<string>
}

export const openRaw = (where: { readonly port: number } | { readonly path: string }): Promise<RawSocket> =>
  new Promise((resolve, reject) => {
    const socket = connect("path" in where ? { path: where.path } : { port: where.port, host: "127.0.0.1" })
    let text = ""
    let isOver = false
    const watchers = new Set<() => void>()
    const changed = () => watchers.forEach((watch) => watch())
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
      changed()
    })
    const over = () => {
      isOver = true
      changed()
    }
    socket.on("close", over)
    socket.on("end", over)
    socket.on("error", (error) => {
      reject(error)
      over()
    })
    const until = (condition: (text: string) => boolean): Promise<string> =>
      new Promise((finish) => {
        const watch = () => {
          if (!isOver && !condition(text)) return
          watchers.delete(watch)
          finish(text)
        }
        watchers.add(watch)
        watch()
      })
    socket.on("connect", () =>
      resolve({
        socket,
        until,
        rest: () => until(() => false),
        write: (bytes) => void socket.write(bytes, "latin1")
      }))
  })
