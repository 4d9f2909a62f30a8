/**
 * Names and ids of stream ownership.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as names from "../internal/nameRules.ts"

const named = (expected: string, problem: (name: string) => string | undefined) =>
  Schema.String.check(
    Schema.makeFilter(problem, { expected }),
    // Said again for generators of examples, which do not look into filters
    Schema.isMinLength(1)
  )

/**
 * The name of a service: the consumers that share one load-balancer stream. Not blank.
 *
 * **Gotchas**
 *
 * On Redis Cluster a service carries the hash tag that its data streams carry too, such as `{orders}`.
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
export const ServiceName = named("a service name", names.anyProblem).pipe(Schema.brand("@effect-simba/ServiceName"))

/**
 * The checked name of a service.
 *
 * @category models
 * @since 0.1.0
 */
export type ServiceName = typeof ServiceName.Type

/**
 * The name of a data stream, which is the key of its Redis stream. Not blank, without `<MUTEX_KEY_SEP>`.
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
export const StreamName = named("the name of a data stream", names.streamProblem).pipe(
  Schema.brand("@effect-simba/StreamName")
)

/**
 * The checked name of a data stream.
 *
 * @category models
 * @since 0.1.0
 */
export type StreamName = typeof StreamName.Type

/**
 * The name of a consumer in the consumer group, `simba-consumer-<id>`. Without `@@`, and without `@` at its end.
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
export const ConsumerName = named("a consumer name", names.consumerProblem).pipe(
  Schema.brand("@effect-simba/ConsumerName")
)

/**
 * The checked name of a consumer.
 *
 * @category models
 * @since 0.1.0
 */
export type ConsumerName = typeof ConsumerName.Type

/**
 * The id of an entry of a Redis stream, `<milliseconds>-<sequence>`.
 *
 * **Details**
 *
 * It names an announcement in the load-balancer stream, or a message in a data stream.
 *
 * **Example** (A checkpoint that was kept elsewhere)
 *
 * ```ts
 * import { StreamName } from "@effect-simba/core/streams"
 * import { Schema } from "effect"
 *
 * const decode = Schema.decodeUnknownEffect(Schema.Struct({ checkpoint: StreamName.EntryId }))
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const EntryId = Schema.String.check(Schema.isPattern(names.entryPattern)).pipe(
  Schema.brand("@effect-simba/EntryId")
)

/**
 * The checked id of an entry.
 *
 * @category models
 * @since 0.1.0
 */
export type EntryId = typeof EntryId.Type
