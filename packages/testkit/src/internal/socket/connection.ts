/**
 * Serves one connection: reads until the client has to wait, and writes as fast as the client reads.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Socket from "effect/socket/Socket"
import type { FakeServer } from "../client/server.ts"
import { SocketSession } from "./session.ts"

const encoder = new TextEncoder()

const receive = Effect.fnUntraced(function*(session: SocketSession, reader: Socket.Reader) {
  while (!session.isOver) {
    for (const chunk of yield* reader.pull) session.receive(typeof chunk === "string" ? encoder.encode(chunk) : chunk)
    yield* session.room.await
  }
  return yield* Effect.never
})

const send = Effect.fnUntraced(function*(session: SocketSession, writer: Socket.Writer) {
  for (;;) {
    const bytes = session.take()
    if (bytes !== undefined) yield* writer.write(bytes)
    else if (session.isOver) return
    else yield* session.work.await
  }
})

const flush = (session: SocketSession, writer: Socket.Writer) =>
  Effect.suspend(() => {
    const bytes = session.take()
    return bytes === undefined ? Effect.void : writer.write(bytes)
  })

/** Ends when either side closes the connection. */
export const serve = (server: FakeServer, client: string) =>
  Effect.fnUntraced(
    function*(socket: Socket.Socket) {
      const reader = yield* socket.reader
      const writer = yield* socket.writer
      // Who stops the server does not wait for a client that reads nothing
      yield* Effect.addFinalizer((exit) =>
        Exit.hasInterrupts(exit) ? Effect.ignore(writer.write(new Socket.CloseEvent())) : Effect.void
      )
      const session = yield* Effect.acquireRelease(
        Effect.sync(() => new SocketSession(server, client)),
        (session) => Effect.sync(() => session.close())
      )
      yield* Effect.raceFirst(send(session, writer), receive(session, reader)).pipe(
        // The client may have sent its last commands together with its end of file
        Effect.catch(() => flush(session, writer))
      )
    },
    Effect.scoped,
    // A connection that breaks is not an error of the server
    Effect.catchTag("SocketError", () => Effect.void)
  )
