/**
 * The names of keys and channels, built here and nowhere else.
 *
 * All keys of one mutex share the hash tag `{<mutex>}`, so that they live in one slot of a Cluster and ACLs can name
 * them by prefix. The owner key, the wait queue and the channels of a mutex and of a contender are those of Simba.
 *
 * @since 0.1.0
 */
import type { MutexName } from "@effect-simba/core/Names"

/**
 * String: the owner's wire id. Expires with the lease.
 *
 * **Example** (The lease that is left, as Redis counts it)
 *
 * ```ts
 * import { Names } from "@effect-simba/core"
 * import { RedisKeys } from "@effect-simba/redis"
 * import { Effect } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 *
 * const left = Effect.gen(function*() {
 *   const redis = yield* Redis
 *   const mutex = yield* Names.mutexName("invoices")
 *   return yield* redis.send<number>("PTTL", RedisKeys.owner(mutex))
 * })
 * ```
 *
 * @category keys
 * @since 0.1.0
 */
export const owner = (mutex: MutexName): string => `simba:{${mutex}}`

/**
 * Sorted set of wire ids by ticket.
 *
 * **Example** (How many wait)
 *
 * ```ts
 * import type { Names } from "@effect-simba/core"
 * import { RedisKeys } from "@effect-simba/redis"
 * import { Effect } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 *
 * const waiting = (mutex: Names.MutexName) =>
 *   Effect.flatMap(Redis, (redis) => redis.send<number>("ZCARD", RedisKeys.queue(mutex)))
 * ```
 *
 * @category keys
 * @since 0.1.0
 */
export const queue = (mutex: MutexName): string => `simba:{${mutex}}:contender`

/**
 * String: the last fencing token.
 *
 * **Example** (The commands of a user who may only look)
 *
 * ```ts
 * import type { Names } from "@effect-simba/core"
 * import { RedisKeys } from "@effect-simba/redis"
 *
 * const rules = (mutex: Names.MutexName) => [`%R~${RedisKeys.owner(mutex)}`, `%R~${RedisKeys.fence(mutex)}`, "+get"]
 * ```
 *
 * @category keys
 * @since 0.1.0
 */
export const fence = (mutex: MutexName): string => `simba:{${mutex}}:fence`

/**
 * String: the stock Simba contender that was told to come, while ours hold back for it.
 *
 * **Example** (Whether ours hold back)
 *
 * ```ts
 * import type { Names } from "@effect-simba/core"
 * import { RedisKeys } from "@effect-simba/redis"
 * import { Effect } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 *
 * const isHeldBack = (mutex: Names.MutexName) =>
 *   Effect.gen(function*() {
 *     const redis = yield* Redis
 *     return (yield* redis.send<number>("EXISTS", RedisKeys.reserved(mutex))) === 1
 *   })
 * ```
 *
 * @category keys
 * @since 0.1.0
 */
export const reserved = (mutex: MutexName): string => `simba:{${mutex}}:reserved`

/**
 * The channel on which every acquisition is announced.
 *
 * **Example** (Announcements, as another program hears them)
 *
 * ```ts
 * import { Names, Subscriber } from "@effect-simba/core"
 * import { RedisKeys } from "@effect-simba/redis"
 * import { Effect } from "effect"
 *
 * const announcements = Effect.gen(function*() {
 *   const subscriber = yield* Subscriber.Subscriber
 *   const mutex = yield* Names.mutexName("invoices")
 *   return yield* subscriber.subscribe(RedisKeys.mutexChannel(mutex))
 * })
 * ```
 *
 * @category channels
 * @since 0.1.0
 */
export const mutexChannel = (mutex: MutexName): string => `simba:{${mutex}}`

/**
 * The channel on which a contender of another implementation is told that it is its turn, and on which it tells one of
 * ours. Ours listen there only while they see such contenders: ours tell ours on `inboxChannel`. The scripts build the
 * same name from the owner key.
 *
 * @see {@link inboxChannel}
 *
 * **Example** (Whether a stock waiter still listens)
 *
 * ```ts
 * import type { Names } from "@effect-simba/core"
 * import { RedisKeys } from "@effect-simba/redis"
 * import { Effect } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 *
 * const listens = (mutex: Names.MutexName, id: string) =>
 *   Effect.gen(function*() {
 *     const redis = yield* Redis
 *     const counts = yield* redis.send<ReadonlyArray<unknown>>("PUBSUB", "NUMSUB", RedisKeys.contenderChannel(mutex, id))
 *     return Number(counts[1]) > 0
 *   })
 * ```
 *
 * @category channels
 * @since 0.1.0
 */
export const contenderChannel = (mutex: MutexName, id: string): string => `simba:{${mutex}}:${id}`

/**
 * String: the last period in which a job of the fleet ran.
 *
 * **Example** (Letting a job run again in its period)
 *
 * ```ts
 * import { Names } from "@effect-simba/core"
 * import { RedisKeys } from "@effect-simba/redis"
 * import { Effect } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 *
 * const again = Effect.gen(function*() {
 *   const redis = yield* Redis
 *   const mutex = yield* Names.mutexName("jobs")
 *   yield* redis.send("DEL", RedisKeys.tick(mutex, "report"))
 * })
 * ```
 *
 * @category keys
 * @since 0.1.0
 */
export const tick = (mutex: MutexName, job: string): string => `simba:{${mutex}}:tick:${job}`

/**
 * Where a layer of ours is told what concerns its waiters and leases, by the part that its wire ids share. It listens
 * there from its beginning to its end; a waiter is dead when nobody does. The scripts build the same name from the ids.
 *
 * **Example** (Where the owner of a mutex can be told something)
 *
 * ```ts
 * import { Mutex, Names } from "@effect-simba/core"
 * import { RedisKeys } from "@effect-simba/redis"
 * import { Effect } from "effect"
 *
 * const channel = Effect.map(
 *   Mutex.owner("invoices"),
 *   (state) => state._tag === "Held" ? RedisKeys.inboxChannel(Names.inboxOf(state.owner)) : undefined
 * )
 * ```
 *
 * @category channels
 * @since 0.1.0
 */
export const inboxChannel = (key: string): string => `simba:inbox:${key}`

/**
 * What `SCAN` matches to find mutexes.
 *
 * @see {@link mutexOf}
 * @category keys
 * @since 0.1.0
 */
export const pattern = "simba:{*"

// Not the tick of a job whose name ends as those keys do
const ofMutex = /^simba:\{((?:(?!\}:tick:)[^])*)\}(?::contender)?$/

/**
 * The mutex whose owner key or wait queue this is, if it is one.
 *
 * **Example** (The mutexes on one page of keys)
 *
 * ```ts
 * import { RedisKeys } from "@effect-simba/redis"
 * import { Effect } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 *
 * const names = Effect.gen(function*() {
 *   const redis = yield* Redis
 *   const [, keys] = yield* redis.send<[string, ReadonlyArray<string>]>("SCAN", "0", "MATCH", RedisKeys.pattern)
 *   return new Set(keys.map(RedisKeys.mutexOf).filter((name) => name !== undefined))
 * })
 * ```
 *
 * @category keys
 * @since 0.1.0
 */
export const mutexOf = (key: string): string | undefined => ofMutex.exec(key)?.[1]

/**
 * String: the largest fencing token that a fenced resource has seen. In the slot of the resource, unless its name has a
 * `}` but no hash tag: on a Cluster such a name cannot be fenced.
 *
 * **Example** (The largest token that a resource has seen)
 *
 * ```ts
 * import { RedisKeys } from "@effect-simba/redis"
 * import { Effect } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 *
 * const seen = Effect.flatMap(Redis, (redis) => redis.send<string | null>("GET", RedisKeys.seenToken("report:latest")))
 * ```
 *
 * @category keys
 * @since 0.1.0
 */
export const seenToken = (resource: string): string =>
  /^[^{]*\{[^}]+\}/.test(resource) ? `${resource}:simba-token` : `{${resource}}:simba-token`
