/** Reads for the `streams` commands: the services of a server, and the data streams of one. */
import type { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import { ServiceName } from "@effect-simba/core/streams/StreamName"
import type { Service } from "@effect-simba/core/streams/StreamStore"
import { StreamStore } from "@effect-simba/core/streams/StreamStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { RedisTopology } from "../../RedisTopology.ts"
import * as keys from "../../streams/internal/keys.ts"
import * as RedisStreamStore from "../../streams/RedisStreamStore.ts"
import { Redis } from "../client/effectRedis.ts"
import { fromRedis } from "../client/errors.ts"
import { redis } from "./settings.ts"

export const store = RedisStreamStore.layer.pipe(Layer.provideMerge(redis))

const isServiceName = Schema.is(ServiceName)
const suffix = keys.input("" as ServiceName)

const scan = (send: Redis["Service"]["send"]) =>
  Stream.paginate("0", (cursor) =>
    Effect.map(
      Effect.mapError(
        send<[next: string, keys: ReadonlyArray<string>]>(
          "SCAN",
          cursor,
          "MATCH",
          `*${suffix}`,
          "COUNT",
          "500",
          "TYPE",
          "stream"
        ),
        fromRedis("list services")
      ),
      ([next, found]) => [found, next === "0" ? Option.none() : Option.some(next)] as const
    ))

const groupNames = (reply: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  reply.map((group) => Array.isArray(group) ? group[1] : (group as { readonly name?: unknown }).name)

/** Streams whose names end like a load-balancer stream, and that have its group. */
export const services = Effect.gen(function*() {
  const { send } = yield* Redis
  const topology = yield* RedisTopology
  const found = topology._tag === "Single"
    ? scan(send)
    : Stream.flatMap(Stream.fromIterableEffect(topology.primaries), scan)
  const names = new Set(
    (yield* Stream.runCollect(found)).map((key) => key.slice(0, -suffix.length)).filter(isServiceName)
  )
  const known = yield* Effect.filter(
    [...names].sort(),
    (name) =>
      send<ReadonlyArray<unknown>>("XINFO", "GROUPS", keys.input(name)).pipe(
        Effect.map((groups) => groupNames(groups).includes(keys.group(name))),
        Effect.mapError(fromRedis("read the groups of a service"))
      ),
    { concurrency: 16 }
  )
  return known
})

export const open = (service: ServiceName) => Effect.flatMap(StreamStore, (streams) => streams.open(service))

/** All announcements that a consumer was given and that are unfinished. */
export const pendingOf = (service: Service) =>
  Stream.paginate(undefined as EntryId | undefined, (after) =>
    Effect.map(
      service.pending({ minIdle: Duration.zero, count: 500, after }),
      ({ entries, next }) =>
        [entries, Option.fromUndefinedOr(next).pipe(Option.map((id): EntryId | undefined => id))] as const
    ))

/** So many messages behind the checkpoint are counted at most, since Redis has to read each. */
export const mostLag = 1000

const countBehind = `return #redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])`

/** How many messages come after the checkpoint, none where no handler commits. */
export const lagOf = Effect.fnUntraced(function*(service: Service, stream: StreamName) {
  const checkpoint = yield* service.checkpoint(stream)
  if (Option.isNone(checkpoint)) return undefined
  const { send } = yield* Redis
  return yield* Effect.mapError(
    send<number>("EVAL", countBehind, "1", stream, checkpoint.value, String(mostLag)),
    fromRedis("count messages")
  )
})
