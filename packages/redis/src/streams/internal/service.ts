/** What all operations of one service share: keys, scripts, timeouts, and the check of names on a Cluster. */
import { BackendError, type StoreError } from "@effect-simba/core/SimbaError"
import type { ServiceName, StreamName } from "@effect-simba/core/streams/StreamName"
import type { Subscriber } from "@effect-simba/core/Subscriber"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { hashTag, slot } from "../../internal/client/clusterSlot.ts"
import { type Reader, reader } from "../../internal/client/decode.ts"
import type { Redis } from "../../internal/client/effectRedis.ts"
import { backendError, fromRedis } from "../../internal/client/errors.ts"
import { evaluate, type Script } from "../../internal/client/script.ts"
import { Flag } from "./codecs.ts"
import * as keys from "./keys.ts"
import { createGroup } from "./scripts.ts"

export interface ServiceContext {
  readonly redis: Redis["Service"]
  readonly subscriber: Subscriber["Service"]
  readonly service: ServiceName
  readonly isCluster: boolean
  readonly input: string
  readonly group: string
  /** Runs a script and decodes its reply. */
  readonly run: <Keys extends ReadonlyArray<string>, Args extends ReadonlyArray<string | number>, T, E>(
    operation: string,
    script: Script<Keys, Args>,
    reply: Schema.Codec<T, E>
  ) => (keys: Keys, args: Args) => Effect.Effect<T, StoreError>
  readonly send: <T>(
    operation: string,
    read: Reader<T>,
    command: string,
    ...args: ReadonlyArray<string>
  ) => Effect.Effect<T, StoreError>
  /** Why this data stream cannot be owned here; undefined if it can. */
  readonly problemWith: (stream: string) => string | undefined
  /** Fails before a command is sent if the name has a problem. */
  readonly admit: (operation: string, stream: StreamName) => Effect.Effect<void, BackendError>
  readonly prepare: Effect.Effect<boolean, StoreError>
  /** Creates a missing group and repeats the effect once. */
  readonly withGroup: <A>(effect: Effect.Effect<A, StoreError>) => Effect.Effect<A, StoreError>
}

const lacksGroup = (error: StoreError): boolean =>
  error._tag === "BackendError" && String(error.cause).includes("NOGROUP")

/** Redis takes whole milliseconds, at least one. */
export const millis = (duration: Duration.Duration): number => Math.max(1, Math.round(Duration.toMillis(duration)))

export const make = (
  redis: Redis["Service"],
  subscriber: Subscriber["Service"],
  service: ServiceName,
  isCluster: boolean
): ServiceContext => {
  const input = keys.input(service)
  const group = keys.group(service)
  const own = slot(input)

  const run: ServiceContext["run"] = (operation, script, reply) => {
    const call = evaluate(redis, script)
    const read = reader(`the reply of the script to ${operation}`, reply)
    return (keys, args) => Effect.flatMap(Effect.mapError(call(keys, args), fromRedis(operation)), read)
  }

  const refuse = (stream: string) =>
    isCluster && (hashTag(stream) === undefined || slot(stream) !== own)
      ? `on a Cluster the names of data stream "${stream}" and service "${service}" must carry the same hash tag`
      : undefined

  const prepare = run("prepare", createGroup, Flag)([input, keys.start(service)], [group])

  return {
    redis,
    subscriber,
    service,
    isCluster,
    input,
    group,
    run,
    send: (operation, read, command, ...args) =>
      Effect.flatMap(Effect.mapError(redis.send(command, ...args), fromRedis(operation)), read),
    problemWith: refuse,
    admit: (operation, stream) => {
      const problem = refuse(stream)
      return problem === undefined
        ? Effect.void
        : Effect.fail(new BackendError({ operation, retryable: false, cause: new Error(problem) }))
    },
    prepare,
    withGroup: (effect) => Effect.catchIf(effect, lacksGroup, () => Effect.andThen(prepare, effect))
  }
}

/** For connections without a command timeout: a late reply is a failure. */
export const withTimeout =
  (operation: string, limit: Duration.Duration) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | BackendError, R> =>
    Effect.timeoutOrElse(effect, {
      duration: limit,
      orElse: () => Effect.fail(backendError(operation, new Error(`no answer within ${Duration.format(limit)}`)))
    })
