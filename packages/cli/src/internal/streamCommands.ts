/**
 * `streams`: shows the services on a server with their consumers and data streams, and shows and redrives dead letters
 * and dead messages.
 */
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import type { DeadLetter, DeadMessage, ServiceState } from "@effect-simba/core/streams/StreamState"
import type { Service, ServiceName } from "@effect-simba/core/streams/StreamStore"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { stop } from "./exitCodes.ts"
import { formatDuration, inTurn, type Paint, plural, print, printable, table } from "./output.ts"
import { countFlag, durationFlag, optional, switchFlag } from "./settings.ts"
import { pause, resume } from "./streamPauses.ts"
import { rewind, seek, trim } from "./streamPositions.ts"
import {
  announcementsOf,
  consumersOf,
  deadOf,
  known,
  lagOf,
  messagesOf,
  onStore,
  open,
  serviceArgument,
  services
} from "./streamServices.ts"

const streamFlag = optional(
  Flag.withSchema(Flag.String("stream"), StreamName),
  "Use this data stream's dead messages, not the service's dead letters"
)

const limitFlag = countFlag("limit", "Maximum number of data streams, dead letters or dead messages", 50)

const idleFor = (millis: number) => formatDuration(Duration.millis(millis))

const behind = ({ isCounted, lag }: { readonly lag: number | null; readonly isCounted: boolean }) =>
  isCounted ? lag : `${lag}+`

const list = Command.make(
  "list",
  {},
  Effect.fnUntraced(function*() {
    const names = yield* services
    const rows = yield* Effect.forEach(names, (name) =>
      Effect.scoped(Effect.gen(function*() {
        const service = yield* open(name)
        const state = yield* service.inspect
        const { announced, deadLetters, oldest, paused, pending } = state
        const lag = yield* lagOf({ name, service, state })
        return {
          name,
          announced,
          pending,
          consumers: consumersOf(state).length,
          oldest: Duration.toMillis(oldest),
          lag: lag.messages,
          isCounted: lag.isCounted,
          waiting: lag.age,
          paused,
          deadLetters
        }
      })), { concurrency: 4 })
    yield* print(rows, (paint) => [
      ...table(rows, {
        SERVICE: ({ name }) => name,
        CONSUMERS: ({ consumers }) => consumers,
        ANNOUNCED: ({ announced }) => announced,
        DELIVERED: ({ pending }) => pending,
        "LONGEST IDLE": ({ oldest }) => idleFor(oldest),
        BEHIND: behind,
        "FOR": ({ waiting }) => idleFor(waiting),
        "DEAD LETTERS": ({ deadLetters }) => deadLetters,
        PAUSED: ({ paused }) => paused.service ? "all" : paused.streams.length === 0 ? null : paused.streams.length
      }, paint),
      paint("dim", plural(rows.length, "service"))
    ])
  }, onStore)
).pipe(Command.withDescription("List the services that share data streams"))

/** Shown if an announcement does not name a data stream. */
const unreadable = "(unreadable)"

/** Describes announced data streams, whether or not they have an owner. */
const announcements = (
  of: { readonly name: ServiceName; readonly service: Service; readonly state: ServiceState },
  lease: Duration.Duration,
  limit: number
) =>
  Effect.flatMap(
    announcementsOf(of, limit),
    Effect.forEach((announced) =>
      Effect.map(
        messagesOf(of.service, announced),
        (messages) => {
          const { content, delivery } = announced
          return {
            stream: content._tag === "Announced" ? content.stream : unreadable,
            entry: content.entry,
            consumer: delivery?.consumer ?? null,
            idle: delivery === undefined ? null : Duration.toMillis(delivery.idle),
            isDelivered: delivery !== undefined,
            isIdle: delivery !== undefined && Duration.isGreaterThan(delivery.idle, lease),
            isPaused: of.state.paused.service ||
              content._tag === "Announced" && of.state.paused.streams.includes(content.stream),
            /** The number of messages after the checkpoint. `waiting` is how long the first one has been waiting. */
            lag: messages?.lag.messages ?? null,
            isCounted: messages?.lag.isCounted ?? true,
            waiting: messages === undefined ? null : Duration.toMillis(messages.lag.age),
            deadMessages: messages?.dead ?? null
          }
        }
      ), { concurrency: 8 })
  )

/**
 * An orphan is an announcement that a consumer should have claimed by now. If the data stream is paused, nobody may
 * claim it. If it has an owner, its other announcements wait until the owner is done.
 */
const dataStreams = (...args: Parameters<typeof announcements>) =>
  Effect.map(announcements(...args), (found) => {
    const owned = new Set(found.flatMap(({ isDelivered, isIdle, stream }) => isDelivered && !isIdle ? [stream] : []))
    owned.delete(unreadable)
    return found.map(({ isIdle, ...announced }) => {
      const isRepeated = isIdle && owned.has(announced.stream)
      return { ...announced, isOrphan: isIdle && !isRepeated && !announced.isPaused, isRepeated }
    })
  })

type DataStream = Effect.Success<ReturnType<typeof dataStreams>>[number]

const stateOf = ({ isDelivered, isOrphan, isPaused, isRepeated }: DataStream): string =>
  isDelivered
    ? isPaused ? "paused" : isRepeated ? "announced again" : isOrphan ? "orphan" : "owned"
    : isPaused
    ? "paused, not delivered"
    : "not delivered"

const letterTable = (letters: ReadonlyArray<DeadLetter>, paint: Paint) =>
  table(letters, {
    "DEAD LETTER": ({ id }) => id,
    WAS: ({ entry }) => entry,
    "DATA STREAM": ({ stream }) => stream,
    REASON: ({ reason }) => reason
  }, paint)

const messageTable = (messages: ReadonlyArray<DeadMessage>, paint: Paint) =>
  table(messages, {
    "DEAD MESSAGE": ({ id }) => id,
    WAS: ({ message }) => message,
    REASON: ({ reason }) => reason
  }, paint)

const inspect = Command.make(
  "inspect",
  {
    service: serviceArgument,
    limit: limitFlag,
    leaseDuration: durationFlag(
      "lease-duration",
      "The fleet's leaseDuration; an owner that is idle for longer counts as dead (default: 2s)"
    )
  },
  Effect.fnUntraced(function*({ leaseDuration = Duration.seconds(2), limit, service: name }) {
    const { service, state } = yield* known(name)
    const streams = yield* dataStreams({ name, service, state }, leaseDuration, limit)
    const deadLetters = yield* service.deadLetters(undefined, limit)
    const consumers = consumersOf(state)
    const orphans = streams.filter(({ isOrphan }) => isOrphan).length
    const waiting = state.announced - state.pending
    yield* print(
      {
        service: name,
        announced: state.announced,
        delivered: state.pending,
        paused: state.paused,
        orphans,
        oldest: Duration.toMillis(state.oldest),
        consumers,
        streams,
        deadLetters: { count: state.deadLetters, first: deadLetters }
      },
      (paint) => [
        paint("bold", `${printable(name)}${state.paused.service ? " (paused)" : ""}`),
        `${plural(state.announced, "data stream")}, ${waiting} not delivered yet, ${plural(orphans, "orphan")}, ${
          plural(state.deadLetters, "dead letter")
        }`,
        "",
        ...table(consumers, {
          CONSUMER: ({ name }) => name,
          OWNED: ({ owned }) => owned,
          CAPACITY: ({ capacity }) => capacity,
          IDLE: ({ idle }) => idle === null ? null : idleFor(idle)
        }, paint),
        "",
        ...table(streams, {
          "DATA STREAM": ({ stream }) => stream,
          CONSUMER: ({ consumer }) => consumer,
          IDLE: ({ idle }) => idle === null ? null : idleFor(idle),
          BEHIND: behind,
          FOR: ({ waiting }) => waiting === null ? null : idleFor(waiting),
          DEAD: ({ deadMessages }) => deadMessages,
          STATE: stateOf
        }, paint),
        ...streams.length === limit && limit < state.announced
          ? [paint("dim", `${limit} of ${state.announced}: see --limit`)]
          : [],
        ...deadLetters.length === 0 ? [] : ["", ...letterTable(deadLetters, paint)]
      ]
    )
  }, onStore)
).pipe(Command.withDescription("Show the consumers, data streams, orphans, lag and dead letters of a service"))

const deadLetters = Command.make(
  "dead-letters",
  { service: serviceArgument, stream: streamFlag, limit: limitFlag },
  Effect.fnUntraced(function*({ limit, service: name, stream }) {
    const { service } = yield* known(name)
    if (stream === undefined) {
      const letters = yield* service.deadLetters(undefined, limit)
      return yield* print(letters, (paint) => letterTable(letters, paint))
    }
    const messages = yield* service.deadMessages(stream, undefined, limit)
    yield* print(messages, (paint) => messageTable(messages, paint))
  }, onStore)
).pipe(Command.withDescription("Show the dead letters of a service, or the dead messages of a data stream"))

const redrive = Command.make(
  "redrive",
  {
    service: serviceArgument,
    ids: Argument.String("id").pipe(
      Argument.withDescription("Ids from the first column of `streams dead-letters`"),
      Argument.filterMap(Schema.decodeUnknownOption(EntryId), () => "an id such as 1795416201845-0"),
      Argument.variadic()
    ),
    stream: streamFlag,
    all: switchFlag("all", "Redrive all that currently exist")
  },
  Effect.fnUntraced(function*({ all, ids, service: name, stream }) {
    if (all === ids.length > 0) return yield* stop("usage", "Pass ids, or --all.")
    const dead = deadOf((yield* known(name)).service, stream)
    // List all of them before redriving any: one that fails again gets a new id, and would be redriven again
    const wanted = all ? (yield* Stream.runCollect(dead.all)).map(({ id }) => id) : ids
    const show = (results: ReadonlyArray<{ readonly id: EntryId; readonly redriven: boolean }>) =>
      Effect.gen(function*() {
        const isMissing = results.some(({ redriven }) => !redriven)
        // The list only improves the advice, so show the results even if reading it fails
        const left = isMissing ? yield* Effect.orElseSucceed(Stream.runCollect(dead.all), () => []) : []
        const problem = (id: EntryId) => {
          const current = left.find((each) => id === ("message" in each ? each.message : each.entry))?.id
          return current === undefined ? id : `${id} is the id under WAS; use the id ${current}`
        }
        yield* print(
          results,
          (paint) =>
            results.length === 0 ?
              [paint("dim", "there are no dead letters")] :
              results.map(({ id, redriven }) =>
                redriven ? paint("green", `redriven: ${id}`) : paint("yellow", `not found: ${problem(id)}`)
              )
        )
      })
    const results = yield* inTurn(
      wanted,
      (id) => Effect.map(dead.redrive(id), (redriven) => ({ id, redriven })),
      show
    )
    yield* show(results)
    if (results.some(({ redriven }) => !redriven)) return yield* stop("negative")
  }, onStore)
).pipe(Command.withDescription("Redrive dead letters or dead messages: put them back in their stream"))

export const streams = Command.make("streams").pipe(
  Command.withDescription("Inspect and manage services and their data streams"),
  Command.withSubcommands([list, inspect, deadLetters, redrive, seek, rewind, trim, pause, resume])
)
