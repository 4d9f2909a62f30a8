/**
 * A model of a consumer that runs redis-stream-client-go, for testing mixed fleets.
 *
 * It follows the original's wire protocol, including its weaknesses. It overwrites the server's setting for keyspace
 * events. It reads all entries at once, and locks entries instead of data streams. If a lock has vanished, renewing it
 * creates it again. If the reader fails to get a lock within 32 attempts, it stops permanently. The consumer takes over
 * entries only when it starts or is notified of an expiry. On shutdown it marks unfinished streams as done.
 *
 * @since 0.1.0
 */
import { type Notice, Subscriber } from "@effect-simba/core/Subscriber"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Redis from "../internal/client/effectRedis.ts"

const separator = "<MUTEX_KEY_SEP>"
const leaseMillis = "2000"
const claimIdleMillis = "2000"
const recoveryIdleMillis = "40000"
const recoveryCount = "1000"
const setting = "notify-keyspace-events"

/** The maximum number of attempts to lock an entry, the timeout for each, and the pause between them. */
const lockTries = 32
const lockTimeout = "100 millis"
const lockPause = "10 millis"

/** The maximum number of retries of a failed read. */
const readRetries = 5

const extendScript = Redis.script((key: string, value: string) => [key, value, leaseMillis], {
  numberOfKeys: 1,
  lua: `
local key, value, lease = KEYS[1], ARGV[1], ARGV[2]
if redis.call('GET', key) == value then
  return redis.call('PEXPIRE', key, lease)
end
return redis.call('SET', key, value, 'NX', 'PX', lease) and 1 or 0
`
}).withReturnType<number>()

const unlockScript = Redis.script((key: string, value: string) => [key, value], {
  numberOfKeys: 1,
  lua: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
`
}).withReturnType<number>()

const Announcement = Schema.fromJsonString(Schema.Struct({
  DataStreamName: Schema.String,
  Info: Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown)))
}))

const decode = Schema.decodeUnknownEffect(Announcement)

type Options<E, R> = {
  /** The service whose load-balancer stream the consumer reads. */
  readonly service: string
  /** The consumer's `POD_NAME`. Its name in the group, and the value of its locks, is `redis-consumer-<id>`. */
  readonly id: string
  /** The database from which the consumer receives expired events. The original always uses 0. Default: 0. */
  readonly db?: number | undefined
  /**
   * Whether the consumer replaces an existing setting for keyspace events with `KEx`. Otherwise it refuses to start,
   * even if the existing setting is its own, like the original when it is not forced. Default: true.
   */
  readonly force?: boolean | undefined
  /**
   * The probability that the consumer never renews an entry that it has claimed. The original starts renewing before it
   * records the claim, so a fast renewal finds nothing to renew. This happened in 3 out of 483 claims. Default: 0.
   */
  readonly unrenewed?: number | undefined
  /**
   * The work on a data stream. When it succeeds, the data stream is done. Losing a lock does not interrupt the work.
   */
  readonly work: (stream: string) => Effect.Effect<unknown, E, R>
}

type Consumer = {
  readonly name: string
  /**
   * All events so far. `Added`: the consumer has locked the entry. `Disowned`: it could not renew the lock. `Expired`:
   * it was notified that a lock has expired. `Claimed`: it has tried to claim the expired entry, and `isMine` is the
   * result. `Done`: it has finished the stream. `Terminated`: its reader has stopped permanently.
   */
  readonly events: ReadonlyArray<Event>
  /** The data streams that the consumer believes it owns. */
  readonly owned: Effect.Effect<ReadonlyArray<string>>
  /**
   * Shuts the consumer down. Acknowledges and deletes the entries that it owns, finished or not, but stops if a request
   * fails.
   */
  readonly done: Effect.Effect<void, Redis.RedisError>
}

type Event =
  | { readonly _tag: "Added" | "Disowned" | "Expired" | "Done"; readonly stream: string; readonly entry: string }
  | { readonly _tag: "Claimed"; readonly stream: string; readonly entry: string; readonly isMine: boolean }
  | { readonly _tag: "Terminated" }

type Rows = ReadonlyArray<readonly [id: string, fields: ReadonlyArray<string> | null]>

/** Pairs of a stream and its entries. Over RESP3, streams and entries alternate, because clients flatten maps. */
type ReadReply = ReadonlyArray<readonly [stream: string, rows: Rows]> | readonly [stream: string, rows: Rows] | null

const rowsOf = (reply: ReadReply): Rows => {
  const [first, second] = reply ?? []
  return typeof first === "string" ? second as Rows : first?.[1] ?? []
}

interface Entry {
  readonly stream: string
  readonly entry: string
}

const read = (rows: Rows): Effect.Effect<ReadonlyArray<Entry>, Schema.SchemaError> =>
  Effect.forEach(rows, ([entry, fields]) =>
    Effect.map(
      decode(fields?.[fields.indexOf("lbs-input") + 1]),
      ({ DataStreamName }) => ({ stream: DataStreamName, entry })
    ))

/**
 * Joins the service. Recovers, reads, renews and claims entries until the scope closes.
 *
 * **Details**
 *
 * When the scope closes, the consumer ends as if killed, without releasing anything. For a graceful shutdown, run
 * `done` first.
 *
 * **Gotchas**
 *
 * The original subscribes to keyspace events (`K`) with a pattern. This model receives the same expiries through
 * keyevent channels (`E`), because `Subscriber` does not support patterns.
 *
 * **Example** (Killing a consumer after a minute)
 *
 * ```ts
 * import * as GoConsumer from "@effect-simba/testkit/streams/GoConsumer"
 * import { TestRedis } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const { events, owned } = yield* GoConsumer.join({
 *     service: "orders",
 *     id: "pod-7",
 *     work: (stream) => Effect.delay(Effect.log(`finished ${stream}`), "5 seconds")
 *   })
 *   yield* Effect.sleep("1 minute")
 *   const finished = events.filter((event) => event._tag === "Done")
 *   yield* Effect.log(`${finished.length} finished, ${(yield* owned).length} left behind`)
 * })).pipe(Effect.provide(TestRedis.layer()))
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const join = Effect.fnUntraced(function*<E, R>(options: Options<E, R>) {
  const redis = yield* Redis.Redis
  const subscriber = yield* Subscriber
  const scope = yield* Effect.scope
  const name = `redis-consumer-${options.id}`
  const input = `${options.service}-input`
  const group = `${options.service}-group`
  const events: Array<Event> = []
  /** Entries by stream name. As in the original, a second entry for the same stream replaces the first. */
  const owned = new Map<string, string>()

  const keyOf = ({ entry, stream }: Entry) => `${stream}${separator}${entry}`
  const unlock = (entry: Entry) => redis.eval(unlockScript)(keyOf(entry), name)

  const lock = Effect.fnUntraced(function*(entry: Entry) {
    const attempt = Effect.timeoutOption(
      redis.send("SET", keyOf(entry), name, "NX", "PX", leaseMillis),
      lockTimeout
    )
    for (let tries = 1;; tries++) {
      const reply = yield* Effect.option(attempt)
      if (Option.getOrUndefined(Option.flatten(reply)) === "OK") return true
      // The original also releases locks that it failed to acquire, so it may delete the lock of another consumer with
      // the same name
      yield* Effect.ignore(Effect.timeout(unlock(entry), lockTimeout))
      if (tries === lockTries) return false
      yield* Effect.sleep(lockPause)
    }
  })

  const finish = Effect.fnUntraced(function*(stream: string) {
    const entry = owned.get(stream)
    if (entry === undefined) return
    owned.delete(stream)
    yield* unlock({ stream, entry })
    yield* redis.send("XACK", input, group, entry)
    yield* redis.send("XDEL", input, entry)
    events.push({ _tag: "Done", stream, entry })
  })

  const renewing = Effect.fnUntraced(function*(entry: Entry) {
    // As in the original, check only the stream name, although it may belong to another entry by now
    while (owned.has(entry.stream)) {
      const extended = yield* Effect.option(redis.eval(extendScript)(keyOf(entry), name))
      if (Option.isNone(extended) || extended.value !== 1) {
        owned.delete(entry.stream)
        events.push({ _tag: "Disowned", ...entry })
        return
      }
      yield* Effect.sleep("1 second")
    }
  })

  const working = (entry: Entry) =>
    Effect.catchCauseIf(
      Effect.andThen(options.work(entry.stream), finish(entry.stream)),
      (cause) => !Cause.hasInterruptsOnly(cause),
      // oxlint-disable-next-line no-restricted-properties -- uses the test's loggers
      (cause) => Effect.logDebug("The work on a data stream failed, so the stream stays unfinished", cause)
    )

  /** Processes a locked entry: renews the lock, and runs the work. */
  const own = Effect.fnUntraced(function*(entry: Entry, isRenewed = true) {
    owned.set(entry.stream, entry.entry)
    events.push({ _tag: "Added", ...entry })
    if (isRenewed) yield* Effect.forkIn(renewing(entry), scope)
    yield* Effect.forkIn(working(entry), scope)
  })

  /**
   * Locks entries one after another. If it does not get a lock, the reader stops and the remaining entries are dropped.
   */
  const takeAll = Effect.fnUntraced(function*(rows: Rows) {
    for (const entry of yield* read(rows)) {
      if (!(yield* lock(entry))) return false
      yield* own(entry)
    }
    return true
  })

  const recovering = Effect.gen(function*() {
    const all: Array<Rows[number]> = []
    for (;;) {
      // Start from the beginning each time, because claimed entries are no longer idle
      const [next, rows] = (yield* redis.send(
        "XAUTOCLAIM",
        input,
        group,
        name,
        recoveryIdleMillis,
        "0-0",
        "COUNT",
        recoveryCount
      )) as readonly [string, Rows]
      all.push(...rows)
      if (next === "0-0") break
    }
    yield* takeAll(all)
  })

  const readOnce = Effect.scoped(
    Effect.flatMap(
      redis.reserve,
      (connection) =>
        connection.send<ReadReply>("XREADGROUP", "GROUP", group, name, "BLOCK", "0", "STREAMS", input, ">")
    )
  )

  const reading = Effect.gen(function*() {
    for (;;) {
      const reply = yield* Effect.retry(readOnce, { schedule: Schedule.exponential("100 millis"), times: readRetries })
      if (!(yield* takeAll(rowsOf(reply)))) return
    }
  })

  const claim = Effect.fnUntraced(function*(entry: Entry) {
    const rows = (yield* redis.send("XCLAIM", input, group, name, claimIdleMillis, entry.entry)) as Rows
    // Claim the entry before locking it. The entry belongs to this consumer even if it does not get the lock
    const isMine = rows.length > 0 && (yield* lock(entry))
    events.push({ _tag: "Claimed", ...entry, isMine })
    if (isMine) yield* own(entry, (yield* Random.next) >= (options.unrenewed ?? 0))
  })

  /** Configures keyspace events, as the original's `Init` does. */
  const setEvents = Effect.gen(function*() {
    const reply = yield* redis.send<ReadonlyArray<string> | Record<string, string>>("CONFIG", "GET", setting)
    const found = Array.isArray(reply) ? reply[1] : Object.values(reply)[0]
    if (found !== "" && options.force === false) {
      return yield* new Redis.RedisError({
        cause: new Error(`${setting} is already "${found}"; set force to replace it`)
      })
    }
    yield* redis.send("CONFIG", "SET", setting, "KEx")
  })

  const hearing = Effect.fnUntraced(function*(expiries: Queue.Dequeue<Notice>) {
    for (;;) {
      const notice = yield* Queue.take(expiries)
      if (notice._tag !== "Message") continue
      // This channel carries the expired keys of all services
      const [stream, entry, ...rest] = notice.text.split(separator)
      if (stream === undefined || entry === undefined || rest.length > 0) continue
      events.push({ _tag: "Expired", stream, entry })
      yield* Effect.forkIn(Effect.ignore(claim({ stream, entry }), { log: "Debug" }), scope)
    }
  })

  yield* setEvents
  const expiries = yield* subscriber.subscribe(`__keyevent@${options.db ?? 0}__:expired`)
  yield* Effect.ignore(redis.send("XGROUP", "CREATE", input, group, "$", "MKSTREAM"))
  yield* Effect.forkIn(
    Effect.ignore(recovering, { log: "Debug" }).pipe(
      Effect.andThen(Effect.forkIn(hearing(expiries), scope)),
      Effect.andThen(Effect.ignore(reading, { log: "Debug" })),
      Effect.andThen(Effect.sync(() => events.push({ _tag: "Terminated" })))
    ),
    scope,
    { startImmediately: true }
  )

  return {
    name,
    events,
    owned: Effect.sync(() => [...owned.keys()]),
    done: Effect.suspend(() => Effect.forEach([...owned.keys()], finish, { discard: true }))
  } satisfies Consumer as Consumer
})
