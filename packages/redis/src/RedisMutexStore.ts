/**
 * The mutex store on Redis, over Effect's own `Redis` service.
 *
 * @since 0.1.0
 */
import { MutexName } from "@effect-simba/core/MutexName"
import {
  type Change,
  type GuardRequest,
  type GuardResult,
  MutexStore,
  type ReleaseRequest
} from "@effect-simba/core/MutexStore"
import type { BackendError } from "@effect-simba/core/SimbaError"
import { Subscriber } from "@effect-simba/core/Subscriber"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { Redis } from "effect/persistence/Redis"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { CommandSink, overRedis } from "./internal/client/commandSink.ts"
import { reading, receiving } from "./internal/client/decode.ts"
import { fromRedis } from "./internal/client/errors.ts"
import { evaluate } from "./internal/client/script.ts"
import * as RedisKeys from "./internal/mutex/keys.ts"
import * as RedisWire from "./internal/mutex/messages.ts"
import * as batches from "./internal/mutex/operationBatch.ts"
import * as renewals from "./internal/mutex/renewalBatch.ts"
import * as scripts from "./internal/mutex/scripts.ts"
import * as mailboxes from "./internal/mutex/waiterInbox.ts"
import { RedisTopology } from "./RedisTopology.ts"

const isMutexName = Schema.is(MutexName)
const readInspect = reading("the reply of the inspect script", RedisWire.InspectReply)
const readTick = reading("the reply of the tick script", RedisWire.TickReply)
const readOwnership = reading("the owner of a mutex", RedisWire.OwnershipText)
const readMutexMessage = reading("a message on a mutex channel", RedisWire.MutexMessage)

/** How many ids that could not be given back are remembered. Older ones cost a confirm period each, at their turn. */
const maxOwed = 10_000

const keysOf = (mutex: MutexName) =>
  [RedisKeys.owner(mutex), RedisKeys.queue(mutex), RedisKeys.fence(mutex), RedisKeys.reserved(mutex)] as const

/** All mutexes that one server knows, page by page; a key seen twice is named once. */
const scan = (send: Redis["Service"]["send"]) =>
  Stream.suspend(() => {
    const seen = new Set<string>()
    return Stream.paginate("0", (cursor) =>
      Effect.map(
        Effect.mapError(
          send<[next: string, keys: ReadonlyArray<string>]>(
            "SCAN",
            cursor,
            "MATCH",
            RedisKeys.pattern,
            "COUNT",
            "500"
          ),
          fromRedis("list")
        ),
        ([next, keys]) => {
          const names: Array<MutexName> = []
          for (const key of keys) {
            const name = RedisKeys.mutexOf(key)
            if (name === undefined || seen.has(name) || !isMutexName(name)) continue
            seen.add(name)
            names.push(name)
          }
          return [names, next === "0" ? Option.none() : Option.some(next)] as const
        }
      ))
  })

const make = Effect.gen(function*() {
  const redis = yield* Redis
  const subscriber = yield* Subscriber
  const topology = yield* RedisTopology
  const look = evaluate(redis, scripts.readOwner)
  const inspect = evaluate(redis, scripts.inspectMutex)
  const force = evaluate(redis, scripts.forceRelease)
  const tick = evaluate(redis, scripts.claimPeriod)

  // Released ids that queue all the same, because the release failed or a late request queued them again. They are released
  // at their turn, which is safe at any time: ids are never used again
  const owed = new Map<string, ReleaseRequest>()
  const queued = new Set<string>()
  const wasQueued = (id: string) => {
    queued.add(id)
    if (queued.size > maxOwed) queued.delete(queued.keys().next().value!)
  }
  const letters = yield* mailboxes.make(subscriber, (id) => {
    const request = owed.get(id)
    if (request !== undefined) release(request, () => undefined)
  })
  const countable = subscriber.countable && (yield* seesSubscribers(redis, subscriber))
  const skipDead = countable ? "1" : "0"
  const direct = (yield* CommandSink) ?? (yield* overRedis(redis, { coalescing: false }))
  const load = (script: string) =>
    Effect.mapError(redis.send<string>("SCRIPT", "LOAD", script), fromRedis("load a script"))
  const { acquire, flush, release: sendRelease } = batches.make(direct, {
    perSlot: topology._tag === "Cluster",
    sha: yield* load(scripts.acquireAndRelease.lua),
    skipDead: countable
  })

  const release: typeof sendRelease = (request, done) => {
    if (request.requeue !== undefined) wasQueued(request.requeue.id)
    sendRelease(request, (exit) => {
      const { confirm, id, mutex, unfair } = request
      if (queued.delete(id) || Exit.isFailure(exit)) {
        owed.set(id, { mutex, id, confirm, unfair })
        if (owed.size > maxOwed) owed.delete(owed.keys().next().value!)
      }
      done(exit)
    })
  }

  /** Nothing overtakes an acquire or a release that was asked for before it. */
  const behind = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      flush()
      return effect
    })

  const sendRenewal = renewals.make(direct, yield* load(scripts.renewLeases.lua))
  const renew = (requests: ReadonlyArray<GuardRequest>) => behind(sendRenewal(requests))

  return MutexStore.of({
    acquire: (request) =>
      Effect.callback((resume) => {
        if (request.mode === "wait") wasQueued(request.id)
        return Effect.sync(acquire(request, (exit) => {
          if (Exit.isSuccess(exit) && exit.value._tag === "Refused" && exit.value.foreign) {
            letters.sawOthers(request.mutex, request.id)
          }
          resume(exit)
        }))
      }),
    guard: (requests, told) =>
      topology._tag === "Single" ?
        renew(requests) :
        Effect.forEach(requests, (request, index) =>
          Effect.map(Effect.result(renew([request])), (answer) => {
            const result: GuardResult = Result.isSuccess(answer)
              ? answer.success[0]!
              : { _tag: "Failed", error: answer.failure }
            // A node that hangs keeps nobody from learning what the others say
            told?.(index, result)
            return result
          }), { concurrency: "unbounded" }),
    release: (request) => Effect.callback((resume) => release(request, resume)),
    sendRelease: (request, done) => {
      if (!direct.isReady()) return false
      release(request, done)
      return true
    },
    owner: (mutex: MutexName) =>
      behind(look([RedisKeys.owner(mutex)], [])).pipe(
        Effect.mapError(fromRedis("owner")),
        Effect.flatMap(readOwnership)
      ),
    wakeUps: letters.wakeUps,
    isListening: true,
    changes: (mutex) =>
      receiving(subscriber, RedisKeys.mutexChannel(mutex), readMutexMessage, {
        gap: { _tag: "Gap" },
        message: (message): Change => message
      }),
    inbox: letters.forced,
    inspect: (mutex, limit) =>
      behind(inspect([RedisKeys.owner(mutex), RedisKeys.queue(mutex), RedisKeys.fence(mutex)], [limit])).pipe(
        Effect.mapError(fromRedis("inspect")),
        Effect.flatMap(readInspect),
        Effect.map(([ownership, token, waiting, waiters]) => ({
          ownership,
          token: token === "" ? undefined : token,
          waiting,
          waiters: waiters.map(([id, waited]) => ({ id, waited: Duration.millis(waited) }))
        }))
      ),
    list: topology._tag === "Single"
      ? scan(redis.send)
      : Stream.flatMap(Stream.fromIterableEffect(topology.primaries), scan),
    forceRelease: (mutex, confirm) =>
      behind(force(keysOf(mutex), [Duration.toMillis(confirm), skipDead])).pipe(
        Effect.mapError(fromRedis("force release")),
        Effect.flatMap(readOwnership)
      ),
    claimPeriod: ({ at, every, job, mutex }) =>
      tick([RedisKeys.tick(mutex, job)], [Duration.toMillis(every), at ?? ""]).pipe(
        Effect.mapError(fromRedis("tick")),
        Effect.flatMap(readTick),
        Effect.map(([first, next]) => ({ first: first === "1", next: Duration.millis(next) }))
      )
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
 * Provides `MutexStore` for all processes that use the same Redis.
 *
 * **Details**
 *
 * Fails to build with `BackendError` when Redis is out of reach. Needs Redis 6.2 or newer.
 *
 * **Example** (Mutexes on ioredis)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { IoRedis, RedisMutexStore } from "@effect-simba/redis"
 * import { Layer } from "effect"
 *
 * const MutexLive = Mutex.layer().pipe(Layer.provide(RedisMutexStore.layer), Layer.provide(IoRedis.layer()))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<MutexStore, BackendError, Redis | Subscriber> = Layer.effect(MutexStore, make)
