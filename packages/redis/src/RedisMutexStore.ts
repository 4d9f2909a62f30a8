/**
 * The mutex store on Redis, over Effect's own `Redis` service.
 *
 * @since 0.1.0
 */
import { type BackendError, ProtocolError } from "@effect-simba/core/Errors"
import {
  type AcquireResult,
  type GuardRequest,
  type GuardResult,
  MutexStore,
  type WakeUp
} from "@effect-simba/core/MutexStore"
import type { MutexName } from "@effect-simba/core/Names"
import { Subscriber } from "@effect-simba/core/Subscriber"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Redis, type RedisError, type Script } from "effect/persistence/Redis"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as scripts from "./internal/mutexScripts.ts"
import { fromRedis, fromReply } from "./internal/redisFailure.ts"
import * as RedisKeys from "./RedisKeys.ts"
import * as RedisWire from "./RedisWire.ts"
import { Topology } from "./Topology.ts"

/** Decodes what came from Redis, or fails with what was read. */
const reading = <T, E>(where: string, codec: Schema.Codec<T, E>) => {
  const decode = Schema.decodeUnknownResult(codec)
  return (read: unknown): Effect.Effect<T, ProtocolError> => {
    const result = decode(read)
    return Result.isSuccess(result)
      ? Effect.succeed(result.success)
      : Effect.fail(
        new ProtocolError({
          where,
          read: typeof read === "string" ? read : JSON.stringify(read) ?? String(read),
          problem: result.failure.message
        })
      )
  }
}

const readAcquire = reading("the reply of the acquire script", RedisWire.AcquireReply)
const readGuard = reading("the reply of the guard script", RedisWire.GuardReply)
const readOwnership = reading("the owner of a mutex", RedisWire.OwnershipText)
const readMessage = reading("a message on a contender channel", RedisWire.ContenderMessage)

const renewed: GuardResult = { _tag: "Renewed" }

const isForgotten = (error: RedisError) => String(error.cause).includes("NOSCRIPT")

/**
 * Effect loads a script that the server forgot, and tries once more. If it was forgotten again meanwhile, or loaded on
 * another node, the text itself goes along.
 */
const evaluate = <Config extends { readonly params: ReadonlyArray<unknown>; readonly result: unknown }>(
  redis: Redis["Service"],
  script: Script<Config>
) => {
  const run = redis.eval(script)
  return (...params: Config["params"]): Effect.Effect<Config["result"], RedisError> =>
    Effect.catchIf(run(...params), isForgotten, () =>
      redis.send<Config["result"]>(
        "EVAL",
        script.lua,
        String(script.numberOfKeys(...params)),
        ...script.params(...params).map(String)
      ))
}

const make = Effect.gen(function*() {
  const redis = yield* Redis
  const subscriber = yield* Subscriber
  const topology = yield* Topology
  const acquire = evaluate(redis, scripts.acquire)
  const release = evaluate(redis, scripts.release)
  const guard = evaluate(redis, scripts.guard)
  const look = evaluate(redis, scripts.look)

  const skipDead = subscriber.countable && (yield* seesSubscribers(redis, subscriber)) ? "1" : "0"

  const renew = (requests: ReadonlyArray<GuardRequest>) =>
    guard(
      requests.map((request) => RedisKeys.owner(request.mutex)),
      requests.flatMap((request) => [request.id, Duration.toMillis(request.lease)])
    ).pipe(
      Effect.mapError(fromRedis("guard")),
      Effect.flatMap(readGuard),
      Effect.map((missed) => {
        const results: Array<GuardResult> = requests.map(() => renewed)
        for (const [index, kind, what] of missed) {
          results[index - 1] = kind === "owner"
            ? { _tag: "Lost", ownership: what }
            : { _tag: "Failed", error: fromReply("guard", what) }
        }
        return results
      })
    )

  return MutexStore.of({
    acquire: (request) =>
      acquire(
        RedisKeys.owner(request.mutex),
        RedisKeys.queue(request.mutex),
        RedisKeys.fence(request.mutex),
        RedisKeys.reserved(request.mutex),
        request.id,
        request.mode,
        Duration.toMillis(request.lease),
        Duration.toMillis(request.confirm),
        request.ticket ?? "",
        skipDead
      ).pipe(
        Effect.mapError(fromRedis("acquire")),
        Effect.flatMap(readAcquire),
        Effect.map(([ownership, token, ticket, position, foreign]): AcquireResult =>
          token !== ""
            ? { _tag: "Granted", token }
            : {
              _tag: "Refused",
              ownership,
              ticket: ticket === "" ? undefined : ticket,
              position,
              foreign: foreign === "1"
            }
        )
      ),
    guard: (requests) =>
      topology === "single" ? renew(requests) : Effect.map(
        Effect.forEach(requests, (request) => Effect.result(renew([request])), { concurrency: "unbounded" }),
        (results) =>
          results.map((result): GuardResult =>
            Result.isSuccess(result) ? result.success[0]! : { _tag: "Failed", error: result.failure }
          )
      ),
    release: (request) =>
      release(
        RedisKeys.owner(request.mutex),
        RedisKeys.queue(request.mutex),
        RedisKeys.fence(request.mutex),
        RedisKeys.reserved(request.mutex),
        request.id,
        Duration.toMillis(request.confirm),
        skipDead
      ).pipe(Effect.mapError(fromRedis("release")), Effect.flatMap(readOwnership)),
    owner: (mutex: MutexName) =>
      look(RedisKeys.owner(mutex)).pipe(Effect.mapError(fromRedis("owner")), Effect.flatMap(readOwnership)),
    wakeUps: (mutex, id) =>
      Effect.map(subscriber.subscribe(RedisKeys.contenderChannel(mutex, id)), (notices) => ({
        bound: subscriber.bound,
        next: Effect.flatMap(Queue.take(notices), (notice) =>
          notice._tag === "Gap" ? Effect.succeed<WakeUp>({ _tag: "Gap" }) : Effect.map(
            readMessage(notice.text),
            (message): WakeUp =>
              message._tag === "Released"
                ? { _tag: "YourTurn", from: message.owner }
                : { _tag: "LookIn", delay: Duration.millis(message.millis) }
          )).pipe(
            Effect.tapError((error) =>
              Effect.logWarning(error.message).pipe(Effect.annotateLogs({ mutex, contender: id }))
            ),
            Effect.eventually
          )
      }))
  })
})

/**
 * Whether a script here can count the subscribers of a waiter's channel: asked once, for a channel of our own. Behind a
 * proxy, or on a replica, it cannot.
 */
const seesSubscribers = Effect.fnUntraced(function*(redis: Redis["Service"], subscriber: Subscriber["Service"]) {
  const channel = `simba:probe:${yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)}`
  yield* subscriber.subscribe(channel)
  const counts = yield* redis.send<ReadonlyArray<string | number>>("PUBSUB", "NUMSUB", channel).pipe(
    Effect.mapError(fromRedis("count subscribers"))
  )
  return Number(counts[1]) > 0
}, Effect.scoped)

/**
 * Mutexes shared by all processes that use the same Redis. Fails to build with `BackendError` when Redis is out of reach.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<MutexStore, BackendError, Redis | Subscriber> = Layer.effect(MutexStore, make)
