/**
 * Waits for messages. All handlers in a service share a few connections. Each connection blocks on a limited number of
 * data streams, so the cost of a message does not grow with the number of silent data streams. `store` creates one
 * instance per service.
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
 * A data stream watched by a reader. When its last waiter leaves, it is still read for a while, because the handler
 * usually waits again soon.
 */
interface Watched {
  readonly waiters: Set<Waiter>
  /** The current or next read returns messages after this id; undefined before the first read. */
  asked: EntryId | undefined
  /** The time at which the last waiter left, in monotonic milliseconds. */
  leftAt: number
}

/** A connection and the data streams that it reads. */
interface Reader {
  readonly watched: Map<StreamName, Watched>
  /** Opens when a waiter joins that the current read does not cover. */
  readonly joined: Latch.Latch
  /** The number of consecutive failures since the last reply. */
  failures: number
}

/**
 * The maximum number of data streams per read. After each message, Redis registers all of them again, which takes about
 * 2 µs each.
 */
export const readSize = 128

/** The maximum numbers of messages per data stream and per read. They limit how long a reply blocks the event loop. */
const [maxCount, maxMessages] = [100, 2000]

/** How long to keep reading a data stream after its last waiter has left. */
const patienceMillis = 5000

const readMessages = decoder("a read from data streams", StreamWire.ReadReply)

const isRetryable = (error: StoreError) => error._tag === "BackendError" && error.isRetryable

/** `maxReaders` is the maximum number of connections. Beyond that, each reader takes more data streams. */
export const make = Effect.fnUntraced(function*(
  context: ServiceContext,
  messages: Service["messages"],
  maxReaders: number
): Effect.fn.Return<Service["awaitMessages"], never, Scope.Scope> {
  const { isCluster, redis } = context
  const clock = yield* Clock.Clock
  const monotonic = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const readers: Array<Reader> = []
  /** Serializes the delivery of replies. Each one is followed by a yield to the event loop. */
  const turn = Semaphore.makeUnsafe(1)
  // On a Cluster, no command can end a blocking read early, so a new waiter must wait until the read ends
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
   * Prepares a read, and returns the number of messages to request from each data stream. A data stream without waiters
   * keeps its position.
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
        // This waiter joined during the read, with an earlier position
        if (compareEntryIds(waiter.after, asked) < 0) continue
        const newer = found.filter(({ id }) => compareEntryIds(id, waiter.after) > 0)
        const mine = newer.slice(0, waiter.count)
        if (mine.length === 0) continue
        // The waiter wanted fewer messages than this. It reads the rest separately, because the shared read would
        // return all of them each time
        watched.asked = mine.length < newer.length ? undefined : mine[mine.length - 1]!.id
        settle(watched, waiter, Exit.succeed(mine))
      }
      // Nobody was waiting for these messages. The next waiter first reads them directly
      if (watched.asked === undefined && watched.waiters.size === 0) reader.watched.delete(stream as StreamName)
    }
  }

  /**
   * Ends the blocking read when waiters join. Repeats until it ends, because the read may not have started to block
   * yet.
   */
  const unblock = ({ joined }: Reader, client: string) =>
    Effect.gen(function*() {
      yield* joined.await
      for (;;) {
        // Wait briefly: one new read then serves all handlers that join together
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

  /** Reads each data stream separately, because a single key of the wrong type makes the shared read fail. */
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

  /** Removes a reader whose fiber has ended, so that it does not get new data streams. */
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
          yield* log.error("The message reader crashed; restarting", exit.cause)
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
    // Start after a yield: waiters that join together then share the first read
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
      // A waiter that wants no messages would repeat the read endlessly
      const waiter: Waiter = { after, count: Math.max(1, count), resume }
      const watched = join(stream, waiter)
      return Effect.sync(() => leave(watched, waiter))
    })

  return (stream, after, count) =>
    Effect.suspend(() =>
      isCovered(readerOf(stream)?.watched.get(stream), after) ?
        wait(stream, after, count) :
        messages(stream, after, count).pipe(
          // Treat a failed read as empty
          Effect.catchIf(isRetryable, () => Effect.succeed([])),
          Effect.filterOrElse((found) => found.length > 0, () => wait(stream, after, count))
        )
    )
})
