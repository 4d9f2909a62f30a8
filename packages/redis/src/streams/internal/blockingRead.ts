/** Waits for messages: all handlers of a service share one connection and one blocking read of all their streams. */
import type { StoreError } from "@effect-simba/core/SimbaError"
import type { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import { compareEntryIds } from "@effect-simba/core/streams/StreamName"
import type { RawMessage, Service } from "@effect-simba/core/streams/StreamStore"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { reader } from "../../internal/client/decode.ts"
import type { Connection } from "../../internal/client/effectRedis.ts"
import { fromRedis } from "../../internal/client/errors.ts"
import { replyMargin } from "./announcements.ts"
import { toMessages } from "./checkpoints.ts"
import * as StreamWire from "./messages.ts"
import { type ServiceContext, withTimeout } from "./service.ts"

interface Waiter {
  readonly stream: StreamName
  readonly after: EntryId
  readonly count: number
  readonly resume: (exit: Exit.Exit<ReadonlyArray<RawMessage>, StoreError>) => void
}

/** Messages of one data stream in one read. */
const maxCount = 100

const readMessages = reader("a read of data streams", StreamWire.ReadReply)

const isRetryable = (error: StoreError) => error._tag === "BackendError" && error.retryable

export const make = Effect.fnUntraced(function*(
  context: ServiceContext,
  messages: Service["messages"]
): Effect.fn.Return<Service["awaitMessages"], never, Scope.Scope> {
  const { isCluster, redis } = context
  const waiters = new Set<Waiter>()
  const wanted = Latch.makeUnsafe(false)
  const joined = Latch.makeUnsafe(false)
  // On a Cluster no command ends a blocking read early: a new waiter waits for its end
  const block = isCluster ? Duration.millis(250) : Duration.seconds(5)

  const settle = (waiter: Waiter, exit: Exit.Exit<ReadonlyArray<RawMessage>, StoreError>) => {
    waiters.delete(waiter)
    waiter.resume(exit)
  }

  /** The smallest position of each data stream. */
  const positions = () => {
    const found = new Map<StreamName, EntryId>()
    for (const { after, stream } of waiters) {
      const other = found.get(stream)
      if (other === undefined || compareEntryIds(after, other) < 0) found.set(stream, after)
    }
    return found
  }

  /** Skips waiters that joined during the read with a smaller position. */
  const give = (reply: typeof StreamWire.ReadReply.Type, asked: ReadonlyMap<StreamName, EntryId>) => {
    for (const [stream, rows] of reply ?? []) {
      const all = toMessages(rows)
      for (const waiter of waiters) {
        if (waiter.stream !== stream || compareEntryIds(waiter.after, asked.get(waiter.stream)!) < 0) continue
        const mine = all.filter(({ id }) => compareEntryIds(id, waiter.after) > 0).slice(0, waiter.count)
        if (mine.length > 0) settle(waiter, Exit.succeed(mine))
      }
    }
  }

  /** Ends the blocking read when waiters join. Repeats, since the read may not have begun to block. */
  const unblock = (client: string) =>
    Effect.gen(function*() {
      yield* joined.await
      for (;;) {
        // Many handlers join at once: one new read serves them all
        yield* Effect.sleep(Duration.millis(waiters.size > 100 ? 10 : 1))
        yield* redis.send("CLIENT", "UNBLOCK", client)
      }
    }).pipe(
      Effect.catch((error) =>
        Effect.andThen(Effect.logDebug("Cannot end a blocking read early", error.cause), Effect.never)
      )
    )

  const read = (connection: Connection, client: string | undefined) =>
    Effect.suspend(() => {
      joined.closeUnsafe()
      const asked = positions()
      let count = 1
      for (const waiter of waiters) count = Math.max(count, Math.min(waiter.count, maxCount))
      const reply = connection.send(
        "XREAD",
        "COUNT",
        String(count),
        "BLOCK",
        String(Duration.toMillis(block)),
        "STREAMS",
        ...asked.keys(),
        ...asked.values()
      ).pipe(
        Effect.mapError(fromRedis("read messages")),
        withTimeout("read messages", Duration.sum(block, replyMargin))
      )
      return Effect.map(
        Effect.flatMap(client === undefined ? reply : Effect.raceFirst(reply, unblock(client)), readMessages),
        (reply) => give(reply, asked)
      )
    })

  const serve = Effect.scoped(Effect.gen(function*() {
    const connection = yield* Effect.mapError(redis.reserve, fromRedis("read messages"))
    const client = isCluster ? undefined : yield* Effect.match(
      withTimeout("read messages", replyMargin)(connection.send<number>("CLIENT", "ID")),
      { onSuccess: String, onFailure: () => undefined }
    )
    while (waiters.size > 0) yield* read(connection, client)
  }))

  /** A key of another type fails the shared read, so that each stream is read by itself. */
  const readEach = Effect.suspend(() =>
    Effect.forEach(
      [...waiters],
      (waiter) =>
        Effect.map(Effect.exit(messages(waiter.stream, waiter.after, waiter.count)), (exit) => {
          if (Exit.isFailure(exit) || exit.value.length > 0) settle(waiter, exit)
        }),
      { discard: true }
    )
  )

  const loop = Effect.gen(function*() {
    let failures = 0
    for (;;) {
      wanted.closeUnsafe()
      if (waiters.size === 0) yield* wanted.await
      const exit = yield* Effect.exit(serve)
      if (Exit.isSuccess(exit)) {
        failures = 0
        continue
      }
      const error = exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error
      if (error === undefined) {
        if (Cause.hasInterruptsOnly(exit.cause)) return yield* Effect.failCause(exit.cause)
        yield* Effect.logError("The reader of messages crashed; restarting", exit.cause)
        for (const waiter of [...waiters]) settle(waiter, Exit.failCause(exit.cause))
        continue
      }
      yield* Effect.logDebug("Reading messages failed; retrying", error)
      if (!isRetryable(error)) yield* readEach
      yield* Effect.sleep(Duration.millis(Math.min(50 * 2 ** Math.min(failures++, 5), 1000)))
    }
  })

  yield* loop.pipe(
    Effect.onExit((exit) =>
      Effect.sync(() => {
        for (const waiter of [...waiters]) {
          settle(waiter, exit)
        }
      })
    ),
    Effect.forkScoped
  )

  const wait = (stream: StreamName, after: EntryId, count: number) =>
    Effect.callback<ReadonlyArray<RawMessage>, StoreError>((resume) => {
      const waiter: Waiter = { stream, after, count, resume }
      waiters.add(waiter)
      wanted.openUnsafe()
      joined.openUnsafe()
      return Effect.sync(() => waiters.delete(waiter))
    })

  return (stream, after, count) =>
    messages(stream, after, count).pipe(
      // An outage is treated like a stream without messages
      Effect.catchIf(isRetryable, () => Effect.succeed([])),
      Effect.filterOrElse((found) => found.length > 0, () => wait(stream, after, count))
    )
})
