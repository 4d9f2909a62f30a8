/** Queries for the `streams` commands: the services on a server, and the data streams in a service. */
import type { StoreError } from "@effect-simba/core/SimbaError"
import { type EntryId, type StreamName } from "@effect-simba/core/streams/StreamName"
import type { DeadLetter, DeadMessage, ServiceState } from "@effect-simba/core/streams/StreamState"
import {
  type ConsumerName,
  type Entry,
  type Service,
  ServiceName,
  StreamStore
} from "@effect-simba/core/streams/StreamStore"
import {
  announcementField,
  fromRedis,
  Redis,
  scan,
  streamKeys as keys,
  toEntry
} from "@effect-simba/redis/RedisInternals"
import { RedisTopology } from "@effect-simba/redis/RedisTopology"
import * as RedisStreams from "@effect-simba/redis/streams/RedisStreams"
import * as Arr from "effect/Array"
import * as Argument from "effect/cli/Argument"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { flow } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { stop } from "./exitCodes.ts"
import { printable } from "./output.ts"
import { redis } from "./settings.ts"

const store = RedisStreams.layerStore.pipe(Layer.provideMerge(redis))

/** Runs an effect on the server's stream store, then closes the services that the effect opened. */
export const onStore = flow(Effect.scoped, Effect.provide(store))

export const serviceArgument = Argument.String("service").pipe(
  Argument.withDescription("The name of the service"),
  Argument.withSchema(ServiceName)
)

const isServiceName = Schema.is(ServiceName)
const suffix = keys.input("" as ServiceName)
const ofDeadLetters = keys.deadLetters("" as ServiceName).slice(0, -suffix.length)

/**
 * Whether the first entry is an announcement. This finds services whose producers started before the first consumer
 * created the group.
 */
const isAnnouncedTo = ({ send }: Redis["Service"], name: ServiceName) =>
  Effect.map(
    send<ReadonlyArray<readonly [id: string, fields: ReadonlyArray<string>]>>(
      "XRANGE",
      keys.input(name),
      "-",
      "+",
      "COUNT",
      "1"
    ),
    ([first]) => first?.[1].includes(announcementField) === true
  )

/**
 * The services on the server. A service is a key that is named like a load-balancer stream and contains the service's
 * group or an announcement.
 */
export const services = Effect.gen(function*() {
  const redis = yield* Redis
  const found = scan("list services", redis, yield* RedisTopology, "MATCH", `*${suffix}`, "TYPE", "stream")
  const names = new Set(
    (yield* Stream.runCollect(found))
      .map((key) => key.slice(0, -suffix.length))
      // A dead letter has the same fields as an announcement
      .filter((name): name is ServiceName => isServiceName(name) && !name.startsWith(ofDeadLetters))
  )
  return yield* Effect.filter(
    [...names].sort(),
    (name) =>
      redis.send<ReadonlyArray<ReadonlyArray<unknown>>>("XINFO", "GROUPS", keys.input(name)).pipe(
        Effect.flatMap((groups) =>
          groups.some(([, group]) => group === keys.group(name)) ? Effect.succeed(true) : isAnnouncedTo(redis, name)
        ),
        Effect.mapError(fromRedis("read the groups of a service"))
      ),
    { concurrency: 16 }
  )
})

/** Whether the service has ever been used by a producer or a consumer. */
export const exists = Effect.fnUntraced(function*(service: ServiceName, state: ServiceState) {
  if (state.announced > 0 || state.deadLetters > 0 || state.consumers.length > 0) return true
  const { send } = yield* Redis
  return yield* Effect.mapBoth(send<number>("EXISTS", keys.input(service)), {
    onFailure: fromRedis("find a service"),
    onSuccess: (count) => count > 0
  })
})

/**
 * The group's consumers, and members that have not read an announcement yet: before Redis 7.2, a consumer appears in
 * the group only after reading its first one.
 */
export const consumersOf = ({ consumers, members }: ServiceState) => [
  ...consumers.map(({ idle, name, pending }) => ({
    name,
    owned: pending,
    idle: Duration.toMillis(idle),
    capacity: members.find(({ consumer }) => consumer === name)?.capacity ?? null
  })),
  ...members
    .filter(({ consumer }) => consumers.every(({ name }) => name !== consumer))
    .map(({ capacity, consumer, owned }) => ({ name: consumer, owned, idle: null, capacity }))
]

export const open = (service: ServiceName) => Effect.flatMap(StreamStore, (streams) => streams.open(service))

/** Opens an existing service. Fails if the service has never been used. */
export const known = Effect.fnUntraced(function*(name: ServiceName) {
  const service = yield* open(name)
  const state = yield* service.inspect
  if (!(yield* exists(name, state))) return yield* stop("negative", `There is no service "${printable(name)}".`)
  return { service, state }
})

type Page<A> = { readonly entries: ReadonlyArray<A>; readonly next: EntryId | undefined }

const pages = <A>(read: (after: EntryId | undefined) => Effect.Effect<Page<A>, StoreError>) =>
  Stream.paginate<EntryId | undefined, A, StoreError>(
    undefined,
    (after) => Effect.map(read(after), ({ entries, next }) => [entries, Option.fromUndefinedOr(next)] as const)
  )

/** All unfinished announcements that were delivered to a consumer. */
const pendingOf = (service: Service) => pages((after) => service.pending({ minIdle: Duration.zero, count: 500, after }))

type Entries = ReadonlyArray<readonly [id: EntryId, fields: ReadonlyArray<string>]>

/** The first announcements after the last entry delivered to the group. */
const undeliveredOf = Effect.fnUntraced(function*(name: ServiceName, count: number) {
  const { send } = yield* Redis
  const input = keys.input(name)
  const parse = toEntry((stream) => stream === input ? "a data stream needs another name" : undefined)
  const groups = yield* send<ReadonlyArray<ReadonlyArray<unknown>>>("XINFO", "GROUPS", input)
  const group = groups.find(([, group]) => group === keys.group(name))
  // The first consumer will create the group at the beginning of the stream
  const last = group === undefined ? "0-0" : String(group[group.indexOf("last-delivered-id") + 1])
  const entries = yield* send<Entries>("XRANGE", input, `(${last}`, "+", "COUNT", String(count))
  return entries.map(([entry, fields]) =>
    parse(entry, Arr.chunksOf(fields, 2).map(([field = "", value = ""]) => [field, value] as const))
  )
}, Effect.mapError(fromRedis("read undelivered announcements")))

/** An unfinished announcement, and the consumer that it was delivered to, if any. */
interface Announced {
  readonly content: Entry
  readonly delivery: { readonly consumer: ConsumerName; readonly idle: Duration.Duration } | undefined
}

/** At most `limit` unfinished announcements, delivered ones first. */
export const announcementsOf = Effect.fnUntraced(function*(
  { name, service, state }: { readonly name: ServiceName; readonly service: Service; readonly state: ServiceState },
  limit: number
) {
  // Read the undelivered announcements first. If one is delivered before the second query, it is then read twice rather
  // than missed.
  const undelivered = state.announced === 0 ? [] : yield* undeliveredOf(name, limit)
  // Only if there are any: listing pending announcements creates the group if it is missing
  const delivered = state.pending === 0
    ? []
    : yield* Stream.runCollect(Stream.take(pendingOf(service), limit))
  const isDelivered = new Set(delivered.map(({ content }) => content.entry))
  return [
    ...delivered.map(({ consumer, content, idle }): Announced => ({ content, delivery: { consumer, idle } })),
    ...undelivered
      .filter(({ entry }) => !isDelivered.has(entry))
      .map((content): Announced => ({ content, delivery: undefined }))
  ].slice(0, limit)
})

type Dead = DeadLetter | DeadMessage

/** Lists and redrives a service's dead letters, or a data stream's dead messages. */
export const deadOf = (service: Service, stream: StreamName | undefined) => {
  const list = (after: EntryId | undefined): Effect.Effect<ReadonlyArray<Dead>, StoreError> =>
    stream === undefined ? service.deadLetters(after, 500) : service.deadMessages(stream, after, 500)
  return {
    all: pages((after) => Effect.map(list(after), (entries) => ({ entries, next: entries.at(-1)?.id }))),
    redrive: (id: EntryId) => stream === undefined ? service.redrive(id) : service.redriveMessage(stream, id)
  }
}

/**
 * Whether an undelivered announcement names a key that is not a readable data stream. Consumers validate an
 * announcement only when they receive it.
 */
const isRefused = ({ delivery }: Announced) => (error: StoreError): boolean =>
  delivery === undefined && error._tag === "BackendError" && !error.isRetryable

const uncountable = { messages: 0, isCounted: false, age: Duration.zero }

/**
 * Counts the messages after the checkpoint, or all messages if there is no checkpoint, and the dead messages. Undefined
 * if the announcement is malformed or its key is not a data stream.
 */
export const messagesOf = Effect.fnUntraced(function*(service: Service, announced: Announced) {
  const { content } = announced
  if (content._tag === "Malformed") return undefined
  const { stream } = content
  const { send } = yield* Redis
  return yield* Effect.all({
    lag: service.lag(stream),
    dead: Effect.mapError(send<number>("XLEN", keys.deadMessages(stream)), fromRedis("count dead messages"))
  }).pipe(Effect.catchIf(isRefused(announced), () => Effect.undefined))
})

/** The maximum number of data streams that count towards a service's lag. */
const mostStreams = 1000

/** A service's lag: the unprocessed messages in its announced data streams, whether or not they have an owner. */
export const lagOf = (of: Parameters<typeof announcementsOf>[0]) =>
  announcementsOf(of, mostStreams + 1).pipe(
    Effect.flatMap(Effect.forEach(
      (announced) =>
        announced.content._tag === "Announced"
          ? Effect.catchIf(
            of.service.lag(announced.content.stream),
            isRefused(announced),
            () => Effect.succeed(uncountable)
          )
          : Effect.undefined,
      { concurrency: 32 }
    )),
    Effect.map((lags) => ({
      messages: lags.slice(0, mostStreams).reduce((sum, lag) => sum + (lag?.messages ?? 0), 0),
      isCounted: lags.length <= mostStreams && lags.every((lag) => lag?.isCounted !== false),
      age: lags.reduce((age, lag) => Math.max(age, lag === undefined ? 0 : Duration.toMillis(lag.age)), 0)
    }))
  )
