/** One service on Redis, as its parts see it: keys, scripts, and what goes wrong. */
import { BackendError, type ProtocolError } from "@effect-simba/core/SimbaError"
import type { ServiceName, StreamName } from "@effect-simba/core/streams/StreamName"
import type { Subscriber } from "@effect-simba/core/Subscriber"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Redis } from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import { hashTag, slot } from "../../internal/client/clusterSlot.ts"
import { type Reader, reader } from "../../internal/client/decode.ts"
import { backendError, fromRedis } from "../../internal/client/errors.ts"
import { evaluate, type Script } from "../../internal/client/script.ts"
import * as StreamKeys from "./keys.ts"
import { createGroup } from "./scripts.ts"

export type StoreError = BackendError | ProtocolError

export interface Backend {
  readonly redis: Redis["Service"]
  readonly subscriber: Subscriber["Service"]
  readonly service: ServiceName
  readonly isCluster: boolean
  readonly input: string
  readonly group: string
  /** A script whose reply is read. */
  readonly run: <Keys extends ReadonlyArray<string>, Args extends ReadonlyArray<string | number>, Reply, T>(
    operation: string,
    script: Script<Keys, Args, Reply>,
    read: Reader<T>
  ) => (keys: Keys, args: Args) => Effect.Effect<T, StoreError>
  readonly send: <T>(
    operation: string,
    read: Reader<T>,
    command: string,
    ...args: ReadonlyArray<string>
  ) => Effect.Effect<T, StoreError>
  /** Why this data stream cannot be handled here, if so. */
  readonly refuse: (stream: string) => string | undefined
  /** Fails where `refuse` has a reason, before anything is sent. */
  readonly admit: (operation: string, stream: StreamName) => Effect.Effect<void, BackendError>
  readonly prepare: Effect.Effect<boolean, StoreError>
  /** Makes a group that is gone, and tries once more. */
  readonly withGroup: <A>(effect: Effect.Effect<A, StoreError>) => Effect.Effect<A, StoreError>
}

const readPrepared = reader("the reply of the prepare script", Schema.Literals(["0", "1"]))

const lacksGroup = (error: StoreError): boolean =>
  error._tag === "BackendError" && String(error.cause).includes("NOGROUP")

/** Redis counts in whole milliseconds, and refuses none at all. */
export const millis = (duration: Duration.Duration): number => Math.max(1, Math.round(Duration.toMillis(duration)))

export const make = (
  redis: Redis["Service"],
  subscriber: Subscriber["Service"],
  service: ServiceName,
  isCluster: boolean
): Backend => {
  const input = StreamKeys.input(service)
  const group = StreamKeys.group(service)
  const own = slot(input)

  const run: Backend["run"] = (operation, script, read) => {
    const call = evaluate(redis, script)
    return (keys, args) => Effect.flatMap(Effect.mapError(call(keys, args), fromRedis(operation)), read)
  }

  const refuse = (stream: string) =>
    isCluster && (hashTag(stream) === undefined || slot(stream) !== own)
      ? `on a Cluster the names of data stream "${stream}" and service "${service}" must carry the same hash tag`
      : undefined

  const prepared = run("prepare", createGroup, readPrepared)
  const prepare = Effect.map(prepared([input, StreamKeys.start(service)], [group]), (made) => made === "1")

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
    refuse,
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

/** On a connection that has no limit of its own: a reply that is overdue is a failure. */
export const within =
  (operation: string, limit: Duration.Duration) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | BackendError, R> =>
    Effect.timeoutOrElse(effect, {
      duration: limit,
      orElse: () => Effect.fail(backendError(operation, new Error(`no answer within ${Duration.format(limit)}`)))
    })
