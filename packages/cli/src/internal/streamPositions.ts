/** `streams seek`, `rewind` and `trim`: move a data stream's checkpoint, and remove processed messages. */
import * as StreamClient from "@effect-simba/core/streams/StreamClient"
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import type { ServiceName } from "@effect-simba/core/streams/StreamStore"
import { fromRedis, Redis } from "@effect-simba/redis/RedisInternals"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { stop } from "./exitCodes.ts"
import { inTurn, plural, print, printable } from "./output.ts"
import { durationFlag, switchFlag } from "./settings.ts"
import { known, onStore, serviceArgument } from "./streamServices.ts"

type Position = Parameters<typeof StreamClient.seek>[1]

export const streamArgument = Argument.String("stream").pipe(
  Argument.withDescription("The name of the data stream"),
  Argument.withSchema(StreamName)
)

const parsePosition = (text: string): Option.Option<Position> =>
  text === "beginning" || text === "now" || Schema.is(EntryId)(text) ? Option.some(text) : DateTime.make(text)

const flags = {
  service: serviceArgument,
  stream: streamArgument,
  force: switchFlag("force", "Move even if the data stream has an owner, which then loses it"),
  announce: switchFlag("announce", "Afterwards, announce the data stream if it is finished")
}

/** Describes where reading continues. If `to` is later than the last message, reading continues after that message. */
const placeOf = (to: Position, after: EntryId): string =>
  DateTime.isDateTime(to) && after.startsWith(`${DateTime.toEpochMillis(to) - 1}-`)
    ? `with the first message since ${DateTime.formatIso(to)}`
    : after === "0-0"
    ? "with the first message"
    : `after ${after}`

const move = Effect.fnUntraced(function*(
  name: ServiceName,
  stream: StreamName,
  to: Position,
  { announce, force }: { readonly announce: boolean; readonly force: boolean }
) {
  const { service } = yield* known(name)
  const after = yield* Effect.catchTag(
    StreamClient.seek(stream, to, { force }),
    "AlreadyOwned",
    () => stop("negative", `"${printable(stream)}" has an owner. Use --force to take it from its handler.`)
  )
  if (announce) yield* StreamClient.announce(stream)
  const isAnnounced = Option.isSome(yield* service.find(stream))
  yield* print({ stream, after, announced: isAnnounced }, (paint) => [
    paint("green", `"${printable(stream)}" continues ${placeOf(to, after)}`),
    ...isAnnounced ? [] : [paint("yellow", "It is not announced, so nobody reads it. See --announce.")]
  ])
})

const onService = <A, E, R>(service: ServiceName, effect: Effect.Effect<A, E, R>) =>
  Effect.provide(effect, StreamClient.layer({ service }))

export const seek = Command.make(
  "seek",
  {
    ...flags,
    position: Argument.String("position").pipe(
      Argument.withDescription("beginning, now, the id of a message, or a time such as 2026-01-31T08:00Z"),
      Argument.filterMap(parsePosition, () => "beginning, now, an id such as 1795416201845-0, or a time")
    )
  },
  ({ position, service, stream, ...options }) => onStore(onService(service, move(service, stream, position, options)))
).pipe(Command.withDescription("Move a data stream's checkpoint to a message or a time"))

const serverTime = Effect.mapBoth(Redis.use(({ send }) => send<readonly [string, string]>("TIME")), {
  onFailure: fromRedis("read the time"),
  onSuccess: ([seconds]) => DateTime.makeUnsafe(Number(seconds) * 1000)
})

const millisOf = (id: EntryId): number => Number(id.slice(0, id.indexOf("-")))

/**
 * The time to go back to. Stops if that time is after the checkpoint, because moving there would skip unread messages.
 */
const timeBefore = Effect.fnUntraced(function*(name: ServiceName, stream: StreamName, by: Duration.Duration) {
  const { service } = yield* known(name)
  const to = DateTime.subtractDuration(yield* serverTime, by)
  const checkpoint = yield* service.checkpoint(stream)
  const nothing = `Nothing was changed: "${printable(stream)}" has`
  if (Option.isNone(checkpoint)) return yield* stop("negative", `${nothing} no checkpoint. Use streams seek.`)
  return millisOf(checkpoint.value.id) < DateTime.toEpochMillis(to)
    ? yield* stop("negative", `${nothing} not processed any messages since ${DateTime.formatIso(to)}.`)
    : to
})

export const rewind = Command.make(
  "rewind",
  { ...flags, by: durationFlag("by", "How far to go back (default: to the first remaining message)") },
  ({ by, service, stream, ...options }) =>
    onStore(Effect.gen(function*() {
      const to = by === undefined ? "beginning" : yield* timeBefore(service, stream, by)
      yield* onService(service, move(service, stream, to, options))
    }))
).pipe(Command.withDescription("Move a data stream's checkpoint back, to read messages again"))

export const trim = Command.make(
  "trim",
  {
    service: serviceArgument,
    streams: streamArgument.pipe(Argument.atLeast(1)),
    keep: durationFlag("keep", "Keep messages younger than this (default: remove all processed messages)")
  },
  ({ keep = Duration.zero, service: name, streams }) =>
    onStore(Effect.gen(function*() {
      const { service } = yield* known(name)
      const show = (results: ReadonlyArray<{ readonly stream: StreamName; readonly removed: number }>) =>
        print(results, () =>
          results.map(({ removed, stream }) => `${printable(stream)}: removed ${plural(removed, "message")}`))
      const trimmed = (stream: StreamName) =>
        Effect.map(service.trim(stream, keep), (removed) => ({ stream, removed }))
      yield* show(yield* inTurn(streams, trimmed, show))
    }))
).pipe(Command.withDescription("Remove processed messages from data streams"))
