/** What the fleet and the server say by themselves: hints, and leases that expired. */
import type { BackendError } from "@effect-simba/core/SimbaError"
import type { Expiry, Service, Signal } from "@effect-simba/core/streams/StreamStore"
import type { Subscription } from "@effect-simba/core/Subscriber"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Redis } from "effect/persistence/Redis"
import * as Queue from "effect/Queue"
import { reading, receiving } from "../../internal/client/decode.ts"
import * as StreamKeys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import type { Backend } from "./service.ts"

const setting = "notify-keyspace-events"

const readHint = reading("a hint", StreamWire.HintMessage)

/** The setting, or nothing where it may not be read: a managed server. */
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

const missing = (flags: string): string =>
  `${flags.includes("E") ? "" : "E"}${flags.includes("x") || flags.includes("A") ? "" : "x"}`

/** Adds what is missing; the flags of others stay. Where that is refused, sweeps do without events. */
export const enable = (redis: Redis["Service"]): Effect.Effect<void> =>
  Effect.flatMap(flags(redis), (found) => {
    const current = Option.getOrElse(found, () => "")
    const more = missing(current)
    return Option.isSome(found) && more === ""
      ? Effect.void
      : Effect.asVoid(redis.send("CONFIG", "SET", setting, current + more)).pipe(
        Effect.catch((error) =>
          Effect.logWarning("Keyspace events cannot be enabled: orphaned data streams are found by sweeps", error.cause)
        )
      )
  })

/** The database of the connection: events name theirs. */
const database = (redis: Redis["Service"]) =>
  Effect.map(
    Effect.option(redis.send("CLIENT", "INFO")),
    (info) => Number(/(?:^|\s)db=(\d+)/.exec(Option.isSome(info) ? String(info.value) : "")?.[1] ?? 0)
  )

const expiriesOf = (backend: Backend, db: number) =>
  Effect.map(backend.subscriber.subscribe(StreamKeys.expiredChannel(db)), (notices): Subscription<Expiry> => ({
    bound: backend.subscriber.bound,
    next: Effect.flatMap(Queue.take(notices), (notice) => {
      if (notice._tag === "Gap") return Effect.succeed<Expiry>({ _tag: "Gap" })
      // Every key of the database that expires comes by here
      const found = StreamKeys.ofEntryLease(notice.text)
      return found === undefined ? Effect.fail(undefined) : Effect.succeed<Expiry>({ _tag: "Expired", ...found })
    }).pipe(Effect.eventually)
  }))

export const make = (backend: Backend): Pick<Service, "expiries" | "signals"> => {
  const { isCluster, redis, service, subscriber } = backend
  return {
    signals: Effect.map(
      receiving(subscriber, StreamKeys.hintChannel(service), readHint, {
        gap: Option.some<Signal>({ _tag: "Gap" }),
        message: (hint): Option.Option<Signal> => Option.some(hint)
      }),
      ({ bound, next }) => ({ bound, next: Effect.eventually(Effect.flatMap(next, Effect.fromOption)) })
    ),
    expiries: Effect.gen(function*() {
      // A node of a Cluster publishes its own only
      if (isCluster) return Option.none<Subscription<Expiry>>()
      const found = yield* flags(redis)
      if (Option.isSome(found) && missing(found.value) !== "") return Option.none<Subscription<Expiry>>()
      return Option.some(yield* expiriesOf(backend, yield* database(redis)))
    }) satisfies Effect.Effect<Option.Option<Subscription<Expiry>>, BackendError, unknown>
  }
}
