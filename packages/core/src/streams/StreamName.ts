/**
 * Names and ids of stream ownership: what is allowed, and how they look.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { InvalidName } from "../SimbaError.ts"

/**
 * Stands between the name of a data stream and the id of its entry in the key of an entry lease. No name of a data
 * stream contains it.
 *
 * **Example** (The parts of the key of an entry lease)
 *
 * ```ts
 * import { StreamName } from "@effect-simba/core/streams"
 *
 * const partsOf = (key: string) => {
 *   const [stream, entry] = key.split(StreamName.leaseSeparator)
 *   return { stream, entry }
 * }
 * ```
 *
 * @category constants
 * @since 0.1.0
 */
export const leaseSeparator = "<MUTEX_KEY_SEP>"

const blank = (name: string) => name.trim() === "" ? "it is blank" : undefined

const streamProblem = (name: string): string | undefined =>
  blank(name) ??
    (name.includes(leaseSeparator) ? `it contains "${leaseSeparator}", which separates fields of a key` : undefined)

const consumerProblem = (name: string): string | undefined =>
  blank(name) ??
    (name.includes("@@")
      ? "it contains \"@@\", which separates fields on the wire"
      : name.endsWith("@")
      ? "it ends with \"@\", which runs into a separator on the wire"
      : undefined)

const entryPattern = /^\d+-\d+$/

const entryProblem = (id: string): string | undefined =>
  entryPattern.test(id) ? undefined : "it is not <milliseconds>-<sequence>"

const named = (expected: string, problem: (name: string) => string | undefined) =>
  Schema.String.check(
    Schema.makeFilter((name: string) => problem(name), { expected }),
    // Said again for generators of examples, which do not look into filters
    Schema.isMinLength(1)
  )

/**
 * A service: the consumers that share one load-balancer stream. Not blank. On Redis Cluster it carries the hash tag that
 * the names of its data streams carry too, such as `{orders}`.
 *
 * **Example** (A name from the environment)
 *
 * ```ts
 * import { StreamName } from "@effect-simba/core/streams"
 * import { Config } from "effect"
 *
 * const service = Config.schema(StreamName.ServiceName, "STREAM_SERVICE")
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const ServiceName = named("a service name", blank).pipe(Schema.brand("@effect-simba/ServiceName"))

/**
 * @category models
 * @since 0.1.0
 */
export type ServiceName = typeof ServiceName.Type

/**
 * A data stream: the key of the Redis stream with the real messages. Not blank, without `<MUTEX_KEY_SEP>`.
 *
 * **Example** (A request that names a data stream)
 *
 * ```ts
 * import { StreamName } from "@effect-simba/core/streams"
 * import { Schema } from "effect"
 *
 * const Request = Schema.Struct({ stream: StreamName.StreamName, amount: Schema.Int })
 *
 * const decode = Schema.decodeUnknownEffect(Request)
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const StreamName = named("the name of a data stream", streamProblem).pipe(
  Schema.brand("@effect-simba/StreamName")
)

/**
 * @category models
 * @since 0.1.0
 */
export type StreamName = typeof StreamName.Type

/**
 * A consumer as the consumer group knows it: `redis-consumer-<id>`. Without `@@`, and without `@` at its end.
 *
 * **Example** (Whether a consumer of the group can be one of the fleet)
 *
 * ```ts
 * import { StreamName } from "@effect-simba/core/streams"
 * import { Schema } from "effect"
 *
 * const isConsumer = Schema.is(StreamName.ConsumerName)
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const ConsumerName = named("a consumer name", consumerProblem).pipe(Schema.brand("@effect-simba/ConsumerName"))

/**
 * @category models
 * @since 0.1.0
 */
export type ConsumerName = typeof ConsumerName.Type

/**
 * The id of an entry of a Redis stream, `<milliseconds>-<sequence>`: of an announcement in the load-balancer stream, or
 * of a message in a data stream.
 *
 * @see {@link compareEntryIds}
 * @category schemas
 * @since 0.1.0
 */
export const EntryId = Schema.String.check(Schema.isPattern(entryPattern)).pipe(Schema.brand("@effect-simba/EntryId"))

/**
 * @category models
 * @since 0.1.0
 */
export type EntryId = typeof EntryId.Type

/**
 * What makes one holding of a data stream different from every other: `<session>.<counter>`, where the session is
 * random and new for each client, and the counter, in base 36, grows: by it a store knows what was asked for earlier.
 * Never used twice.
 *
 * **Example** (Whether a value is that of a lease of ours)
 *
 * ```ts
 * import { StreamName } from "@effect-simba/core/streams"
 * import { Schema } from "effect"
 *
 * const isEpoch = Schema.is(StreamName.Epoch)
 *
 * const isOurs = (lease: string) => isEpoch(lease.slice(lease.lastIndexOf("@@") + 2))
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const Epoch = Schema.String.check(Schema.isPattern(/^[0-9a-z]{12}\.[0-9a-z]+$/)).pipe(
  Schema.brand("@effect-simba/Epoch")
)

/**
 * @category models
 * @since 0.1.0
 */
export type Epoch = typeof Epoch.Type

const checked =
  <A extends string>(kind: InvalidName["kind"], problem: (name: string) => string | undefined) =>
  (name: string): Effect.Effect<A, InvalidName> => {
    const found = typeof name === "string" ? problem(name) : "it is not a string"
    return found === undefined
      ? Effect.succeed(name as A)
      : Effect.fail(new InvalidName({ kind, value: String(name), problem: found }))
  }

/**
 * Checks the name of a service, or fails with `InvalidName`.
 *
 * **Example** (One service per tenant)
 *
 * ```ts
 * import { StreamName } from "@effect-simba/core/streams"
 *
 * const serviceOf = (tenant: string) => StreamName.serviceName(`{${tenant}}:orders`)
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const serviceName = checked<ServiceName>("service", blank)

/**
 * Checks the name of a data stream, or fails with `InvalidName`.
 *
 * **Example** (Refusing what cannot be announced)
 *
 * ```ts
 * import { StreamName } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const validate = (name: string) =>
 *   Effect.mapError(StreamName.streamName(name), ({ problem }) => `not a data stream: ${problem}`)
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const streamName = checked<StreamName>("stream", streamProblem)

/**
 * The name in the consumer group of the consumer with this id, or `InvalidName`.
 *
 * **Example** (What XINFO calls this pod)
 *
 * ```ts
 * import { StreamName } from "@effect-simba/core/streams"
 * import { Config, Effect } from "effect"
 *
 * const name = Effect.gen(function*() {
 *   const pod = yield* Config.String("POD_NAME")
 *   return yield* StreamName.consumerName(pod)
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const consumerName = (id: string): Effect.Effect<ConsumerName, InvalidName> =>
  checked<ConsumerName>("consumer", (name) => blank(id) ?? consumerProblem(name))(`redis-consumer-${id}`)

/**
 * Checks the id of an entry, or fails with `InvalidName`: for ids that operators give, or that were kept elsewhere.
 *
 * **Example** (Reviving what an operator names)
 *
 * ```ts
 * import { StreamClient, StreamName } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const revive = (id: string) => Effect.flatMap(StreamName.entryId(id), StreamClient.redrive)
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const entryId = checked<EntryId>("entry", entryProblem)

/**
 * Compares two ids of entries in the order of their stream.
 *
 * **Example** (What came after a checkpoint, in order)
 *
 * ```ts
 * import { StreamName } from "@effect-simba/core/streams"
 *
 * const after = (ids: ReadonlyArray<StreamName.EntryId>, checkpoint: StreamName.EntryId) =>
 *   ids.filter((id) => StreamName.compareEntryIds(id, checkpoint) > 0).sort(StreamName.compareEntryIds)
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const compareEntryIds = (a: EntryId, b: EntryId): -1 | 0 | 1 => {
  const [aMillis, aSequence] = a.split("-").map(BigInt) as [bigint, bigint]
  const [bMillis, bSequence] = b.split("-").map(BigInt) as [bigint, bigint]
  return aMillis < bMillis
    ? -1
    : aMillis > bMillis
    ? 1
    : aSequence < bSequence
    ? -1
    : aSequence > bSequence
    ? 1
    : 0
}
