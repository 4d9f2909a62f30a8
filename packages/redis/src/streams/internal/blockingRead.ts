/**
 * Waits for messages. All handlers of a service share a few connections, each with a blocking read of a bounded number
 * of data streams, so that the cost of a message does not grow with the number of silent data streams. `store` makes
 * one for each service.
 */
import type { StoreError } from "@effect-simba/core/SimbaError"
import type { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import type { RawMessage } from "@effect-simba/core/streams/StreamState"
import { compareEntryIds, type Service } from "@effect-simba/core/streams/StreamStore"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { reader as decoder } from "../../internal/client/decode.ts"
import type { Connection } from "../../internal/client/effectRedis.ts"
import { fromRedis } from "../../internal/client/errors.ts"
import * as log from "../../internal/client/log.ts"
import { toMessages } from "./checkpoints.ts"
import * as StreamWire from "./messages.ts"
import { type ServiceContext, withTimeout } from "./service.ts"

interface Waiter {
  readonly after: EntryId
  readonly count: number
  readonly resume: (exit: Exit.Exit<ReadonlyArray<RawMessage>, StoreError>) => void
}

/**
 * A data stream that a reader waits for. It is still read for a while without waiters, because its handler usually
 * waits again soon.
 */
interface Watched {
  readonly waiters: Set<Waiter>
  /**
   * The current read, or otherwise the next one, returns all messages after this id; undefined before the first read.
   */
  asked: EntryId | undefined
  /** When its last waiter left. Monotonic milliseconds. */
  leftAt: number
}

/** A connection and its data streams. */
interface Reader {
  readonly watched: Map<StreamName, Watched>
  /** Opens when a waiter joins that the current read does not cover. */
  readonly joined: Latch.Latch
  /** Consecutive failures since its last reply. */
  failures: number
}

/**
 * Maximum data streams per read: after each message, Redis registers all of them again, at about 2 microseconds each.
 */
export const readSize = 128

/** Maximum messages per data stream and per read: few enough not to hold up the event loop. */
const [maxCount, maxMessages] = [100, 2000]

/** How long a data stream is still read without a waiter. */
const patienceMillis = 5000

const readMessages = decoder("a read of data streams", StreamWire.ReadReply)

const isRetryable = (error: StoreError) => error._tag === "BackendError" && error.isRetryable

/** `maxReaders` bounds the connections. Beyond it, each reader takes more data streams. */
export const make = Effect.fnUntraced(function*(
  context: ServiceContext,
  messages: Service["messages"],
  maxReaders: number
): Effect.fn.Return<Service["awaitMessages"], never, Scope.Scope> {
  const { isCluster, redis } = context
  const clock = yield* Clock.Clock
  const monotonic = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const readers: Array<Reader> = []
  /** Replies are delivered one after another, with a turn of the event loop in between. */
  const turn = Semaphore.makeUnsafe(1)
  // On a Cluster no command ends a blocking read early: a new waiter waits for its end
  const block = isCluster ? Duration.millis(250) : Duration.seconds(5)
  const fork = yield* FiberSet.runtime(yield* FiberSet.make<void>())()

  const leave = (watched: Watched, waiter: Waiter) => {
    watched.waiters.delete(waiter)
    watched.leftAt = monotonic()
  }

  const settle = (watched: Watched, waiter: Waiter, exit: Exit.Exit<ReadonlyArray<RawMessage>, StoreError>) => {
    leave(watched, waiter)
    waiter.resume(exit)
  }

  /**
   * A data stream without waiters keeps its position. Returns the number of messages to request from each data stream.
   */
  const begin = ({ joined, watched: streams }: Reader): number => {
    joined.closeUnsafe()
    const now = monotonic()
    let count = 1
    for (const [stream, watched] of streams) {
      if (watched.waiters.size === 0) {
        if (watched.asked === undefined || now - watched.leftAt > patienceMillis) streams.delete(stream)
        continue
      }
      watched.asked = undefined
      for (const waiter of watched.waiters) {
        if (watched.asked === undefined || compareEntryIds(waiter.after, watched.asked) < 0) {
          watched.asked = waiter.after
        }
        count = Math.max(count, waiter.count)
      }
    }
    return Math.min(count, maxCount, Math.ceil(maxMessages / Math.max(1, streams.size)))
  }

  const give = (reader: Reader, reply: typeof StreamWire.ReadReply.Type) => {
    for (const [stream, entries] of reply ?? []) {
      const watched = reader.watched.get(stream as StreamName)
      const asked = watched?.asked
      if (watched === undefined || asked === undefined) continue
      const found = toMessages(entries)
      watched.asked = undefined
      for (const waiter of watched.waiters) {
        // It joined during the read, with a smaller position
        if (compareEntryIds(waiter.after, asked) < 0) continue
        const mine = found.filter(({ id }) => compareEntryIds(id, waiter.after) > 0).slice(0, waiter.count)
        if (mine.length === 0) continue
        watched.asked = mine[mine.length - 1]!.id
        settle(watched, waiter, Exit.succeed(mine))
      }
      // Nobody waited for these messages: the next waiter first reads on its own
      if (watched.asked === undefined && watched.waiters.size === 0) reader.watched.delete(stream as StreamName)
    }
  }

  /** Ends the blocking read when waiters join. Repeats, because the read may not have started to block. */
  const unblock = ({ joined }: Reader, client: string) =>
    Effect.gen(function*() {
      yield* joined.await
      for (;;) {
        // When many handlers join at once, one new read serves them all
        yield* Effect.sleep("1 millis")
        yield* redis.send("CLIENT", "UNBLOCK", client)
      }
    }).pipe(
      Effect.catch((error) => Effect.andThen(log.debug("Cannot end a blocking read early", error.cause), Effect.never))
    )

  const read = (reader: Reader, connection: Connection, client: string | undefined) =>
    Effect.suspend(() => {
      const count = begin(reader)
      if (reader.watched.size === 0) return Effect.void
      const reply = connection.send(
        "XREAD",
        "COUNT",
        String(count),
        "BLOCK",
        String(Duration.toMillis(block)),
        "STREAMS",
        ...reader.watched.keys(),
        ...Array.from(reader.watched.values(), ({ asked }) => asked!)
      ).pipe(
        Effect.mapError(fromRedis("read messages")),
        withTimeout("read messages", block)
      )
      return Effect.flatMap(
        client === undefined ? reply : Effect.raceFirst(reply, unblock(reader, client)),
        (reply) =>
          reply === null ? Effect.void : turn.withPermit(
            Effect.andThen(Effect.map(readMessages(reply), (reply) => give(reader, reply)), Effect.yieldNow)
          )
      )
    })

  const serve = (reader: Reader) =>
    Effect.scoped(Effect.gen(function*() {
      const connection = yield* Effect.mapError(redis.reserve, fromRedis("read messages"))
      const client = isCluster ? undefined : yield* Effect.match(
        withTimeout("read messages")(connection.send<number>("CLIENT", "ID")),
        { onSuccess: String, onFailure: () => undefined }
      )
      while (reader.watched.size > 0) {
        yield* read(reader, connection, client)
        reader.failures = 0
      }
    }))

  const waiting = (reader: Reader) =>
    [...reader.watched].flatMap(([stream, watched]) =>
      Array.from(watched.waiters, (waiter) => ({ stream, watched, waiter }))
    )

  /** A key of another type fails the shared read, so each stream is then read separately. */
  const readEach = (reader: Reader) =>
    Effect.forEach(
      waiting(reader),
      ({ stream, waiter, watched }) =>
        Effect.map(Effect.exit(messages(stream, waiter.after, waiter.count)), (exit) => {
          if (Exit.isFailure(exit) || exit.value.length > 0) settle(watched, waiter, exit)
        }),
      { concurrency: "unbounded", discard: true }
    )

  const settleAll = (reader: Reader, exit: Exit.Exit<never>) => {
    for (const { waiter, watched } of waiting(reader)) settle(watched, waiter, exit)
    reader.watched.clear()
  }

  /** The reader gets no new data streams, because its fiber ends. */
  const retire = (reader: Reader) => {
    if (readers.includes(reader)) readers.splice(readers.indexOf(reader), 1)
  }

  const isWanted = (reader: Reader) => {
    if (reader.watched.size === 0) retire(reader)
    return reader.watched.size > 0
  }

  const run = (reader: Reader) =>
    Effect.gen(function*() {
      while (isWanted(reader)) {
        const exit = yield* Effect.exit(serve(reader))
        if (Exit.isSuccess(exit)) continue
        const error = exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error
        if (error === undefined) {
          if (Cause.hasInterruptsOnly(exit.cause)) return yield* Effect.interrupt
          yield* log.error("The reader of messages crashed; restarting", exit.cause)
          settleAll(reader, Exit.failCause(exit.cause) as Exit.Exit<never>)
          continue
        }
        yield* log.debug("Reading messages failed; retrying", error)
        if (!isRetryable(error)) yield* readEach(reader)
        for (const [stream, { waiters }] of reader.watched) if (waiters.size === 0) reader.watched.delete(stream)
        yield* Effect.sleep(Duration.millis(Math.min(50 * 2 ** Math.min(reader.failures++, 5), 1000)))
      }
    }).pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          if (Exit.isSuccess(exit)) return
          retire(reader)
          settleAll(reader, Exit.failCause(exit.cause))
        })
      )
    )

  const isCovered = (watched: Watched | undefined, after: EntryId) =>
    watched?.asked !== undefined && compareEntryIds(watched.asked, after) <= 0

  const readerOf = (stream: StreamName) => readers.find(({ watched }) => watched.has(stream))

  const readerWithRoom = (): Reader => {
    const found = readers.find(({ watched }) => watched.size < readSize)
    if (found !== undefined) return found
    if (readers.length >= maxReaders) return readers.reduce((a, b) => b.watched.size < a.watched.size ? b : a)
    const reader: Reader = { watched: new Map(), joined: Latch.makeUnsafe(false), failures: 0 }
    readers.push(reader)
    // Waiters that join at the same moment share the first read
    fork(Effect.andThen(Effect.yieldNow, run(reader)))
    return reader
  }

  const join = (stream: StreamName, waiter: Waiter): Watched => {
    const reader = readerOf(stream) ?? readerWithRoom()
    const watched = reader.watched.get(stream) ?? { waiters: new Set(), asked: undefined, leftAt: 0 }
    watched.waiters.add(waiter)
    reader.watched.set(stream, watched)
    if (!isCovered(watched, waiter.after)) reader.joined.openUnsafe()
    return watched
  }

  const wait = (stream: StreamName, after: EntryId, count: number) =>
    Effect.callback<ReadonlyArray<RawMessage>, StoreError>((resume) => {
      const waiter: Waiter = { after, count, resume }
      const watched = join(stream, waiter)
      return Effect.sync(() => leave(watched, waiter))
    })

  return (stream, after, count) =>
    Effect.suspend(() =>
      isCovered(readerOf(stream)?.watched.get(stream), after) ?
        wait(stream, after, count) :
        messages(stream, after, count).pipe(
          // A failed read counts as a stream without messages
          Effect.catchIf(isRetryable, () => Effect.succeed([])),
          Effect.filterOrElse((found) => found.length > 0, () => wait(stream, after, count))
        )
    )
})
