/**
 * Lets the testkit's simulations check mutexes on Redis. It reads mutexes from the server and from script calls, and
 * defines how long waiters may sleep. Used by `RedisSimulation`.
 */
import type * as Mutex from "@effect-simba/core/Mutex"
import * as MutexConfig from "@effect-simba/core/MutexConfig"
import type { MutexName } from "@effect-simba/core/MutexName"
import { inboxOf, spareTokens } from "@effect-simba/core/MutexStore"
import type { InvalidConfig } from "@effect-simba/core/SimbaError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as RedisKeys from "./keys.ts"
import { type Call, callsOf } from "./scriptCalls.ts"

/** Reads the place in the queue from the reply to a refused acquire, or to a release that queued an attempt. */
const placeOf = ({ kind, reply }: Call): number | undefined => {
  if (!Array.isArray(reply) || reply[0] === "error") return undefined
  // If a release granted the mutex to the queued attempt, the reply has three elements
  const [, ticket] = reply as ReadonlyArray<unknown>
  return ticket === 0 || (kind === "release" && reply.length === 3) ? undefined : Number(ticket)
}

/**
 * All waiters in one `Mutex` layer form one line. `keep` accepts the keys that a run may leave behind: mutex keys and
 * `RedisFence` tokens, all with an expiry.
 */
export const make = (resources: ReadonlyArray<string>) => {
  const name = (resource: string) => resource as MutexName
  const ownerKeys = new Map(resources.map((resource) => [RedisKeys.owner(name(resource)), resource]))
  const keys = new Set(
    resources.flatMap((resource) =>
      [RedisKeys.fence, RedisKeys.queue, RedisKeys.jobs].map((key) => key(name(resource)))
    )
  )

  const callsTo = (kind: Call["kind"], args: ReadonlyArray<string>, reply: unknown) =>
    callsOf(args, reply).flatMap((call) => {
      const resource = ownerKeys.get(call.ownerKey)
      return call.kind === kind && resource !== undefined ? [{ ...call, resource }] : []
    })

  /** Returns the ids that were queued by releases. */
  const requeued = (args: ReadonlyArray<string>, reply: unknown) =>
    callsTo("release", args, reply)
      .filter(({ requeue }) => requeue !== "")
      .map((call) => ({ ...call, id: call.requeue }))

  return {
    resources,
    ownerKey: (resource: string) => RedisKeys.owner(name(resource)),
    tokenKey: (resource: string) => RedisKeys.fence(name(resource)),
    channel: (resource: string, id: string) => {
      const layer = inboxOf(id)
      return layer === "" ? RedisKeys.contenderChannel(name(resource), id) : RedisKeys.inboxChannel(layer)
    },
    asked: (args: ReadonlyArray<string>, reply: unknown) => [
      ...callsTo("acquire", args, reply),
      ...requeued(args, reply)
    ],
    queued: (args: ReadonlyArray<string>, reply: unknown) =>
      [...callsTo("acquire", args, reply), ...requeued(args, reply)].flatMap((call) => {
        const place = placeOf(call)
        return place === undefined ? [] : [{ resource: call.resource, id: call.id, place }]
      }),
    released: (args: ReadonlyArray<string>, reply: unknown) =>
      reply instanceof Error ? undefined : callsTo("release", args, reply),
    /**
     * Recognizes calls to `forceRelease.lua`, which takes the mutex away from the owner named in the call. The reply is
     * the previous ownership.
     */
    forced: (args: ReadonlyArray<string>, reply: unknown) => {
      const resource = args[2] === "4" && args.length === 10 ? ownerKeys.get(args[3]!) : undefined
      if (resource === undefined || typeof reply !== "string") return []
      const [id, end] = [args[9]!, reply.lastIndexOf("@@")]
      return end <= 0 || reply.slice(0, end) !== id ? [] : [{ resource, id }]
    },
    keep: (key: string, expires: boolean) => expires && (keys.has(key) || key.endsWith(":simba-token")),
    line: (id: string) => inboxOf(id) || id,
    spareTokens
  }
}

/**
 * Returns the options for `Checker.all`. A waiter polls within two confirm periods plus the time to retry a command. If
 * the server has lost the mutex's owner or its clock has stepped, a waiter may sleep until the last lease that it knew
 * of would have expired.
 */
export const bounds = (options?: Mutex.Options): Effect.Effect<
  {
    readonly sleepBound: Duration.Duration
    readonly sleepBoundAfterLoss: Duration.Duration
    readonly recovery: Duration.Duration
  },
  InvalidConfig
> =>
  Effect.map(MutexConfig.make(options), ({ commandTimeout, confirmTimeout, transition, ttl }) => {
    // The maximum delay before a failed command is retried
    const pause = Duration.millis(1200)
    const sleepBound = Duration.sum(Duration.times(confirmTimeout, 2), Duration.millis(700))
    return {
      sleepBound,
      sleepBoundAfterLoss: Duration.sum(Duration.sum(ttl, transition), sleepBound),
      recovery: Duration.sum(commandTimeout, pause)
    }
  })
