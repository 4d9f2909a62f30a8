/** Signals of other members, and keyspace events of leases that expired. Both only shorten the wait for a sweep. */
import type { BackendError } from "@effect-simba/core/SimbaError"
import type { Expiry, Service, Signal } from "@effect-simba/core/streams/StreamStore"
import type { Subscription } from "@effect-simba/core/Subscriber"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import { reader, subscribe } from "../../internal/client/decode.ts"
import type { Redis } from "../../internal/client/effectRedis.ts"
import * as log from "../../internal/client/log.ts"
import * as keys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import type { ServiceContext } from "./service.ts"

const setting = "notify-keyspace-events"

const readSignal = reader("a signal", StreamWire.SignalMessage)

/** The setting; none on a managed server that refuses CONFIG. */
const flags = (redis: Redis["Service"]) =>
  Effect.map(
    Effect.option(redis.send("CONFIG", "GET", setting)),
    Option.flatMap((reply) => {
      const value = Array.isArray(reply)
        ? reply[1]
        : typeof reply === "object" && reply !== null
        ? Object.values(reply)[0]
        : undefined
      return typeof value === "string" ? Option.some(value) : Option.none()
    })
  )

/** `A` stands for all kinds of events, `x` among them. */
const missing = (flags: string, wanted: ReadonlyArray<"E" | "K" | "x">): string =>
  wanted.filter((flag) => !flags.includes(flag) && !(flag === "x" && flags.includes("A"))).join("")

/**
 * Adds the missing flags and keeps all others. Consumers of redis-stream-client-go hear the events of `K`. If the server
 * refuses, sweeps find orphans without events.
 */
export const enable = (redis: Redis["Service"]): Effect.Effect<void> =>
  Effect.flatMap(flags(redis), (found) => {
    const current = Option.getOrElse(found, () => "")
    const more = missing(current, ["K", "E", "x"])
    return Option.isSome(found) && more === ""
      ? Effect.void
      : Effect.asVoid(redis.send("CONFIG", "SET", setting, current + more)).pipe(
        Effect.catch((error) =>
          log.warning("Keyspace events cannot be enabled: orphaned data streams are found by sweeps", error.cause)
        )
      )
  })

/** The database of the connection, which is part of the channel name of events. */
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
      // The channel carries every expired key of the database
      const found = keys.ofEntryLease(notice.text)
      return found === undefined ? Effect.fail(undefined) : Effect.succeed<Expiry>({ _tag: "Expired", ...found })
    }).pipe(Effect.eventually)
  }))

export const make = (context: ServiceContext): Pick<Service, "expiries" | "signals"> => {
  const { isCluster, redis, service, subscriber } = context
  return {
    signals: Effect.map(
      subscribe(subscriber, keys.signalChannel(service), readSignal, {
        gap: Option.some<Signal>({ _tag: "Gap" }),
        message: (signal): Option.Option<Signal> => Option.some(signal)
      }),
      ({ bound, next }) => ({ bound, next: Effect.eventually(Effect.flatMap(next, Effect.fromOption)) })
    ),
    expiries: Effect.gen(function*() {
      // A Cluster node publishes the events of its own keys only
      if (isCluster) return Option.none<Subscription<Expiry>>()
      const found = yield* flags(redis)
      if (Option.isSome(found) && missing(found.value, ["E", "x"]) !== "") return Option.none<Subscription<Expiry>>()
      return Option.some(yield* expiriesOf(context, yield* database(redis)))
    }) satisfies Effect.Effect<Option.Option<Subscription<Expiry>>, BackendError, unknown>
  }
}
