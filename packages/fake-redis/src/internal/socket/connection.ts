/** Serves one Node socket. Pauses reading while the client must wait, and respects backpressure when writing. */
import type { Socket } from "node:net"
import type { TimedEngine } from "../timedEngine.ts"
import { writePush, writeReply } from "./replyWriter.ts"
import { type Receiver, SocketSession, type Wire } from "./session.ts"

const connect = (timed: TimedEngine) => ({ ended, pushed }: Receiver): Wire => {
  const session = timed.engine.connectBinary((push) => pushed(writePush(push, session.protocol())), { onClose: ended })
  return {
    send: (args, reply) =>
      timed.run(() => session.execute(args, (value) => reply(writeReply(value, session.protocol())))),
    close: () => timed.run(() => session.close())
  }
}

export const serve = (timed: TimedEngine, socket: Socket): void => {
  let isScheduled = false
  /** Whether Node is buffering output that the client has not read. */
  let isFull = false
  const flush = () => {
    isScheduled = false
    while (!isFull && socket.writable) {
      const bytes = session.take()
      if (bytes === undefined) break
      isFull = !socket.write(bytes)
    }
    if (isFull) return
    if (session.isOver) socket.end()
    else if (session.hasRoom) socket.resume()
  }
  // Send the output of all commands in one turn together
  const schedule = () => {
    if (isScheduled || isFull || !socket.writable || !session.hasWork) return
    isScheduled = true
    // Not `queueMicrotask`, because Jest's fake timers replace it
    Promise.resolve().then(flush)
  }
  const session: SocketSession = new SocketSession(connect(timed), schedule)
  socket.on("data", (chunk) => {
    timed.run(() => timed.engine.turn(() => session.receive(chunk)))
    if (isFull || !session.hasRoom) socket.pause()
  })
  socket.on("drain", () => {
    isFull = false
    flush()
  })
  socket.on("end", () => {
    // The client's last commands may have arrived together with the end of its input
    isFull = false
    while (socket.writable) {
      const bytes = session.take()
      if (bytes === undefined) break
      socket.write(bytes)
    }
    session.close()
    socket.end()
  })
  socket.on("close", () => session.close())
  // A broken connection is not a server error
  socket.on("error", () => socket.destroy())
}
