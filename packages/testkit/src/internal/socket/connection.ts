/** Serves one socket. Stops reading while the client must wait, and respects backpressure when writing. */
import { SocketSession } from "@effect-simba/fake-redis/Engine"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Socket from "effect/socket/Socket"
import type { FakeServer } from "../client/server.ts"

const encoder = new TextEncoder()

const open = (server: FakeServer, client: string) => {
  const work = Latch.makeUnsafe(false)
  const room = Latch.makeUnsafe(true)
  const set = (latch: Latch.Latch, isOpen: boolean) => isOpen ? latch.openUnsafe() : latch.closeUnsafe()
  const session: SocketSession = new SocketSession(
    ({ ended, pushed }) =>
      server.link(client).connect<string, string>((end) => server.acceptSocket(client, end), {
        opened: () => undefined,
        pushed,
        broken: ended
      }, true),
    () => {
      set(work, session.hasWork)
      set(room, session.hasRoom)
    }
  )
  return { session, work, room }
}

type Connection = ReturnType<typeof open>

const receive = Effect.fnUntraced(function*({ room, session }: Connection, reader: Socket.Reader) {
  while (!session.isOver) {
    for (const chunk of yield* reader.pull) session.receive(typeof chunk === "string" ? encoder.encode(chunk) : chunk)
    yield* room.await
  }
  return yield* Effect.never
})

const send = Effect.fnUntraced(function*({ session, work }: Connection, writer: Socket.Writer) {
  for (;;) {
    const bytes = session.take()
    if (bytes !== undefined) yield* writer.write(bytes)
    else if (session.isOver) return
    else yield* work.await
  }
})

const flush = ({ session }: Connection, writer: Socket.Writer) =>
  Effect.suspend(() => {
    const bytes = session.take()
    return bytes === undefined ? Effect.void : writer.write(bytes)
  })

/** Serves a connection until either side closes it. */
export const serve = (server: FakeServer, client: string) =>
  Effect.fnUntraced(
    function*(socket: Socket.Socket) {
      const reader = yield* socket.reader
      const writer = yield* socket.writer
      // If the server stops, close the connection immediately, even if the client does not read its replies
      yield* Effect.addFinalizer((exit) =>
        Exit.hasInterrupts(exit) ? Effect.ignore(writer.write(new Socket.CloseEvent())) : Effect.void
      )
      const connection = yield* Effect.acquireRelease(
        Effect.sync(() => open(server, client)),
        ({ session }) => Effect.sync(() => session.close())
      )
      yield* Effect.raceFirst(send(connection, writer), receive(connection, reader)).pipe(
        // The client's last commands may have arrived together with the end of input
        Effect.catch(() => flush(connection, writer))
      )
    },
    Effect.scoped,
    // A broken connection is not a server error
    Effect.catchTag("SocketError", () => Effect.void)
  )
