/**
 * Receives signals from other members and keyspace events for expired leases, for `store`. Both only save the wait for
 * the next sweep.
 */
import type { Expiry, Service, Signal } from "@effect-simba/core/streams/StreamStore"
import type { Subscription } from "@effect-simba/core/Subscriber"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import { reader, subscribe } from "../../internal/client/decode.ts"
import type { Redis } from "../../internal/client/effectRedis.ts"
import * as log from "../../internal/client/log.ts"
import * as checks from "../../internal/client/serverChecks.ts"
import * as keys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import type { ServiceContext } from "./service.ts"

const readSignal = reader("a signal", StreamWire.SignalMessage)

/**
 * Enables expired events. Adds missing flags, and keeps all others. Consumers that run redis-stream-client-go need
 * keyspace events (`K`) too. If the server refuses, sweeps still find orphans.
 */
export const enable = ({ send }: Redis["Service"]): Effect.Effect<void> =>
  Effect.flatMap(checks.setting(send, checks.eventsSetting), (found) => {
    const current = found ?? ""
    const more = [...current.includes("A") ? "KE" : "KEx"].filter((flag) => !current.includes(flag)).join("")
    return more === ""
      ? Effect.void
      : Effect.asVoid(send("CONFIG", "SET", checks.eventsSetting, current + more)).pipe(
        Effect.catch((error) =>
          log.warning("Keyspace events cannot be enabled: only sweeps find orphaned data streams", error.cause)
        )
      )
  })

const readSetting = ({ send }: Redis["Service"]) =>
  Effect.map(checks.setting(send, checks.eventsSetting), checks.keyspaceEvents)

/** Connections for which a warning has already been logged. */
const warned = new WeakSet<Redis["Service"]>()

/** Logs a warning, once per connection, if the server is known not to publish expired events. */
export const check = (redis: Redis["Service"]): Effect.Effect<void> =>
  Effect.flatMap(readSetting(redis), (finding) => {
    if (finding.status !== "warning" || warned.has(redis)) return Effect.void
    warned.add(redis)
    return log.warning(`Redis: ${checks.textOf(finding)}`)
  })

/** Reads the connection's database number, which is part of the event channel's name. */
const database = (redis: Redis["Service"]) =>
  Effect.map(
    Effect.option(redis.send("CLIENT", "INFO")),
    (info) => Number(/(?:^|\s)db=(\d+)/.exec(Option.isSome(info) ? String(info.value) : "")?.[1] ?? 0)
  )

const expiriesOf = (context: ServiceContext, db: number) =>
  Effect.map(context.subscriber.subscribe(keys.expiredChannel(db)), (notices): Subscription<Expiry> => ({
    bound: context.subscriber.bound,
    next: Effect.flatMap(Queue.take(notices), (notice) => {
      if (notice._tag === "Gap") return Effect.succeed<Expiry>({ _tag: "Gap" })
      // The channel carries all expired keys in the database
      const found = keys.ofEntryLease(notice.text)
      return found === undefined ? Effect.fail(undefined) : Effect.succeed<Expiry>({ _tag: "Expired", ...found })
    }).pipe(Effect.eventually)
  }))

export const make = (context: ServiceContext): Pick<Service, "expiries" | "signals"> => {
  const { isCluster, redis, service, subscriber } = context
  return {
    signals: subscribe<Signal, Signal>(subscriber, keys.signalChannel(service), readSignal, {
      gap: { _tag: "Gap" },
      message: identity
    }),
    expiries: Effect.gen(function*() {
      // A Cluster node publishes events only for its own keys
      if (isCluster || (yield* readSetting(redis)).status === "warning") return Option.none()
      return Option.some(yield* expiriesOf(context, yield* database(redis)))
    })
  }
}
