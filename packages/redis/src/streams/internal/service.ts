/**
 * The context that all of a service's operations share: keys, scripts, timeouts, and the name check for a Cluster.
 * `store` creates it and passes it to each operation.
 */
import { BackendError, type StoreError } from "@effect-simba/core/SimbaError"
import type { StreamName } from "@effect-simba/core/streams/StreamName"
import type { ServiceName } from "@effect-simba/core/streams/StreamStore"
import type { Subscriber } from "@effect-simba/core/Subscriber"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { hashTag, slot } from "../../internal/client/clusterSlot.ts"
import type { Reader } from "../../internal/client/decode.ts"
import type { Redis } from "../../internal/client/effectRedis.ts"
import { backendError, fromRedis } from "../../internal/client/errors.ts"
import { call, type Script } from "../../internal/client/script.ts"
import { toEntry } from "./announcementEntry.ts"
import * as keys from "./keys.ts"
import { createGroup } from "./scripts.generated.ts"

const lacksGroup = (error: StoreError): boolean =>
  error._tag === "BackendError" && String(error.cause).includes("NOGROUP")

/** Converts a duration to whole milliseconds, at least one, as Redis requires. */
export const millis = (duration: Duration.Duration): number => Math.max(1, Math.round(Duration.toMillis(duration)))

export type ServiceContext = ReturnType<typeof make>

export const make = (
  redis: Redis["Service"],
  subscriber: Subscriber["Service"],
  service: ServiceName,
  isCluster: boolean,
  checkpointRetention: Duration.Duration
) => {
  const input = keys.input(service)
  const group = keys.group(service)
  const own = slot(input)

  const run = <Params, Reply>(operation: string, script: Script<Params, Reply>) => {
    const [request, limit] = [call(redis, operation, script), withTimeout(operation, longest)]
    return (params: Params) => limit(request(params))
  }

  const send = <T>(
    operation: string,
    read: Reader<T>,
    command: string,
    ...args: ReadonlyArray<string>
  ): Effect.Effect<T, StoreError> =>
    Effect.mapError(redis.send(command, ...args), fromRedis(operation)).pipe(
      withTimeout(operation, longest),
      Effect.flatMap(read)
    )

  /** Returns why a data stream cannot be owned in this service; undefined if it can. */
  const problemWith = (stream: string) =>
    stream === input
      ? `"${stream}" is the load-balancer stream of service "${service}": a data stream needs another name`
      : isCluster && (hashTag(stream) === undefined || slot(stream) !== own)
      ? `on a Cluster, the names of data stream "${stream}" and service "${service}" must have the same hash tag`
      : undefined

  /** Fails if the name has a problem, before a command is sent. */
  const admit = (operation: string, stream: StreamName): Effect.Effect<void, BackendError> => {
    const problem = problemWith(stream)
    return problem === undefined
      ? Effect.void
      : Effect.fail(new BackendError({ operation, isRetryable: false, cause: new Error(problem) }))
  }

  /** Creates the group if it does not exist. Returns whether it was created. */
  const prepare = run("prepare", createGroup)({ input, group })

  /** If the group is missing, creates it and repeats the effect once. */
  const withGroup = <A>(effect: Effect.Effect<A, StoreError>) =>
    Effect.catchIf(effect, lacksGroup, () => Effect.andThen(prepare, effect))

  return {
    redis,
    subscriber,
    service,
    isCluster,
    /** How long a checkpoint is kept after a commit, in milliseconds. */
    retention: millis(checkpointRetention),
    input,
    group,
    announced: keys.announced(service),
    deadLetters: keys.deadLetters(service),
    failures: keys.failures(service),
    run,
    send,
    parse: toEntry(problemWith),
    admit,
    prepare,
    withGroup
  }
}

/**
 * How late a reply may be. The request then fails, because not every `Redis` provider has timeouts, and a handler would
 * wait forever while its lease is renewed.
 */
const replyMargin = Duration.seconds(2)

/** The maximum time that the server needs for a command that does not block. */
const longest = Duration.seconds(8)

/** `block` is how long the server may wait before it replies. */
export const withTimeout = (operation: string, block = Duration.zero) => {
  const limit = Duration.sum(block, replyMargin)
  return Effect.timeoutOrElse({
    duration: limit,
    orElse: () => Effect.fail(backendError(operation, new Error(`no reply within ${Duration.format(limit)}`)))
  })
}
