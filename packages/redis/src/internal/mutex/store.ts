/** The mutex store on Effect's `Redis` service. Provided by `RedisMutex`. */
import { MutexName } from "@effect-simba/core/MutexName"
import { type Change, MutexStore } from "@effect-simba/core/MutexStore"
import type { BackendError } from "@effect-simba/core/SimbaError"
import type { Subscriber } from "@effect-simba/core/Subscriber"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { RedisTopology } from "../../RedisTopology.ts"
import { withBuildTimeout } from "../client/buildTimeout.ts"
import { currentSink } from "../client/commandSink.ts"
import { reader, subscribe } from "../client/decode.ts"
import { Redis } from "../client/effectRedis.ts"
import { fromRedis } from "../client/errors.ts"
import { currentSubscriber } from "../client/fallbackSubscriber.ts"
import { scan } from "../client/scan.ts"
import { call, load } from "../client/script.ts"
import * as jobStore from "./jobStore.ts"
import * as mutexKeys from "./keys.ts"
import { MutexMessage } from "./messages.ts"
import * as operationBatch from "./operationBatch.ts"
import { PendingReleases } from "./pendingReleases.ts"
import * as renewalBatch from "./renewalBatch.ts"
import * as scripts from "./scripts.generated.ts"
import * as waiterInbox from "./waiterInbox.ts"

const isMutexName = Schema.is(MutexName)
const readMutexMessage = reader("a message on a mutex channel", MutexMessage)

const known = (keys: Stream.Stream<string, BackendError>) =>
  Stream.suspend(() => {
    const known = new Set<string>()
    return keys.pipe(
      Stream.map(mutexKeys.mutexOf),
      Stream.filter((name): name is MutexName => {
        if (name === undefined || known.has(name) || !isMutexName(name)) return false
        known.add(name)
        return true
      })
    )
  })

const make = Effect.gen(function*() {
  const redis = yield* Redis
  const subscriber = yield* currentSubscriber(redis)
  const topology = yield* RedisTopology
  const readOwner = call(redis, "owner", scripts.readOwner)
  const forceRelease = call(redis, "force release", scripts.forceRelease)

  const pending = new PendingReleases()
  const inbox = yield* waiterInbox.make(subscriber, (attempt) => {
    const request = pending.find(attempt)
    if (request !== undefined) release(request, () => undefined)
  })
  const isCluster = topology._tag === "Cluster"
  const servers = isCluster ? yield* topology.primaries : [redis.send]
  const countable = subscriber.countable && (yield* seesSubscribers(servers, subscriber))
  // Which waiters without a subscriber the scripts remove: all (`1`), only those from effect-simba (`own`), or none
  // (`0`). A Cluster node does not count subscribers on other nodes, where Simba waiters may be subscribed
  const skipDead = !countable ? "0" : isCluster ? "own" : "1"
  const sink = yield* currentSink(redis)
  const { acquire, confirm, flush, inspect, release: sendRelease } = operationBatch.make(
    sink,
    yield* load(redis, scripts.acquireAndRelease),
    { perSlot: isCluster, skipDead }
  )

  const release: MutexStore["Service"]["release"] = (request, done) => {
    if (request.requeue !== undefined) pending.noteQueued(request.requeue.id)
    sendRelease(request, (exit) => {
      pending.settle(request, Exit.isFailure(exit))
      done(exit)
    }, pending.mayBeQueued(request.id))
  }

  /** Sends the waiting batch before running an effect, to keep commands in order. */
  const behind = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      flush()
      return effect
    })

  const renew = renewalBatch.make(sink, yield* load(redis, scripts.renewLeases), { perLease: isCluster })

  return MutexStore.of({
    acquire: (request, done) => {
      if (request.mode === "wait") pending.noteQueued(request.id)
      return acquire(request, (exit) => {
        // Simba contenders take part. They notify a waiter only on its own channel
        if (Exit.isSuccess(exit) && exit.value._tag === "Refused" && exit.value.foreign) {
          inbox.noteForeign(request.mutex, request.id)
        }
        done(exit)
      })
    },
    confirm,
    guard: (...request) => {
      flush()
      return renew(...request)
    },
    release,
    isReady: sink.isReady,
    owner: (mutex) => behind(readOwner({ owner: mutexKeys.owner(mutex) })),
    changes: (mutex) =>
      subscribe(subscriber, mutexKeys.mutexChannel(mutex), readMutexMessage, {
        gap: { _tag: "Gap" },
        message: (message): Change => message
      }),
    inbox: (key, forced) => withBuildTimeout(inbox.open(key, forced)),
    inspect: (mutex, limit) => Effect.callback((resume) => inspect(mutex, limit, resume)),
    list: known(scan("list", redis, topology, "MATCH", mutexKeys.pattern)),
    forceRelease: (mutex, confirm) => {
      const [owner, queue, fence, reserved] = mutexKeys.operands(mutex)
      const from = (id: string) =>
        forceRelease({ owner, queue, fence, reserved, confirm: Duration.toMillis(confirm), skipDead, id })
      // Name the owner in the request: a late copy must not take the mutex away from a later owner
      return Effect.flatMap(
        behind(readOwner({ owner })),
        (before) => Effect.as(behind(from(before._tag === "Held" ? before.owner : "")), before)
      )
    },
    jobs: jobStore.make(redis)
  })
})

/** Returns whether a `PUBSUB NUMSUB` reply reports a subscriber. */
const isCounted = (reply: unknown): boolean => {
  const count: unknown = Array.isArray(reply) ? reply[1] : undefined
  return (typeof count === "number" || typeof count === "string") && Number(count) > 0
}

/**
 * Subscribes to a test channel, to check whether scripts on all servers can count a waiter channel's subscribers. They
 * cannot if the subscriber is connected through a proxy or to a replica.
 */
const seesSubscribers = Effect.fnUntraced(function*(
  servers: ReadonlyArray<Redis["Service"]["send"]>,
  subscriber: Subscriber["Service"]
) {
  const channel = `simba:probe:${yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)}`
  yield* subscriber.subscribe(channel)
  const [replies, failures] = yield* Effect.partition(
    servers,
    (send) => send<unknown>("PUBSUB", "NUMSUB", channel),
    { concurrency: "unbounded" }
  )
  // Ignore Cluster nodes that are down
  if (replies.length === 0 && failures[0] !== undefined) return yield* fromRedis("count subscribers")(failures[0])
  return replies.every(isCounted)
}, Effect.scoped)

export const layer: Layer.Layer<MutexStore, BackendError, Redis> = Layer.effect(MutexStore, withBuildTimeout(make))
