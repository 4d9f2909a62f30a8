/** `streams`: the services of a server, their consumers, data streams and dead letters. */
import { EntryId, ServiceName } from "@effect-simba/core/streams/StreamName"
import type { Pending, Service, ServiceState } from "@effect-simba/core/streams/StreamStore"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { exitCodes, Stop } from "./exitCodes.ts"
import { formatDuration, plural, print, printable, table } from "./output.ts"
import { durationFlag } from "./settings.ts"
import { lagOf, mostLag, open, pendingOf, services, store } from "./streamServices.ts"

const serviceArgument = Argument.String("service").pipe(
  Argument.withDescription("The name of the service"),
  Argument.withSchema(ServiceName)
)

const ls = Command.make(
  "ls",
  {},
  Effect.fnUntraced(function*() {
    const names = yield* services
    const rows = yield* Effect.forEach(names, (name) =>
      Effect.scoped(Effect.gen(function*() {
        const { announced, consumers, deadLetters, oldest, pending } = yield* (yield* open(name)).inspect
        return { name, announced, pending, consumers: consumers.length, oldest: Duration.toMillis(oldest), deadLetters }
      })), { concurrency: 4 })
    yield* print(rows, (paint) => [
      ...table(
        ["SERVICE", "CONSUMERS", "ANNOUNCED", "GIVEN OUT", "LONGEST IDLE", "DEAD LETTERS"],
        rows.map((row) => [
          row.name,
          String(row.consumers),
          String(row.announced),
          String(row.pending),
          formatDuration(Duration.millis(row.oldest)),
          String(row.deadLetters)
        ]),
        paint
      ),
      paint("dim", plural(rows.length, "service"))
    ])
  }, Effect.provide(store))
).pipe(Command.withDescription("List the services that share data streams"))

/** Those that were there at the beginning: one that fails again comes back with a new id. */
const allDeadLetters = Effect.fnUntraced(function*(service: Service) {
  const pages = yield* Stream.paginate(
    undefined as EntryId | undefined,
    (after) =>
      Effect.map(service.deadLetters(after, 500), (letters) => {
        const last = letters.at(-1)
        return [
          letters.map(({ id }) => id),
          last === undefined ? Option.none() : Option.some<EntryId | undefined>(last.id)
        ] as const
      })
  ).pipe(Stream.runCollect)
  return [...pages]
})

interface DataStream {
  readonly stream: string
  readonly entry: string
  readonly consumer: string
  readonly idle: number
  readonly isOrphan: boolean
  /** Messages behind the checkpoint, null where there is none. */
  readonly lag: number | null
}

const dataStreamOf = (
  { consumer, content, idle }: Pending,
  lag: number | undefined,
  lease: Duration.Duration
): DataStream => ({
  stream: content._tag === "Announced" ? content.stream : "(unreadable)",
  entry: content.entry,
  consumer,
  idle: Duration.toMillis(idle),
  isOrphan: Duration.isGreaterThan(idle, lease),
  lag: lag ?? null
})

const consumersOf = ({ consumers, members }: ServiceState) =>
  consumers.map(({ idle, name, pending }) => {
    const member = members.find(({ consumer }) => consumer === name)
    return { name, owned: pending, idle: Duration.toMillis(idle), capacity: member?.capacity ?? null }
  })

const show = Command.make(
  "show",
  {
    service: serviceArgument,
    limit: Flag.Int("limit").pipe(
      Flag.withDescription("How many data streams and dead letters to show (default: 50)"),
      Flag.withDefault(50)
    ),
    lease: durationFlag(
      "lease",
      "The leaseDuration of the fleet; an owner that is idle for longer is gone (default: 2s)"
    )
      .pipe(Flag.withDefault(Duration.seconds(2)))
  },
  Effect.fnUntraced(
    function*({ lease, limit, service: name }) {
      const service = yield* open(name)
      const state = yield* service.inspect
      const streams = yield* pendingOf(service).pipe(
        Stream.take(limit),
        Stream.mapEffect((pending) =>
          Effect.map(
            pending.content._tag === "Announced" ? lagOf(service, pending.content.stream) : Effect.undefined,
            (lag) => dataStreamOf(pending, lag, lease)
          ), { concurrency: 8 }),
        Stream.runCollect
      )
      const deadLetters = yield* service.deadLetters(undefined, limit)
      const consumers = consumersOf(state)
      const orphans = streams.filter(({ isOrphan }) => isOrphan).length
      const waiting = state.announced - state.pending
      yield* print(
        {
          service: name,
          announced: state.announced,
          givenOut: state.pending,
          orphans,
          oldest: Duration.toMillis(state.oldest),
          consumers,
          streams,
          deadLetters: { count: state.deadLetters, first: deadLetters }
        },
        (paint) => [
          paint("bold", printable(name)),
          `${plural(state.announced, "data stream")}, ${waiting} not given out yet, ${plural(orphans, "orphan")}, ${
            plural(state.deadLetters, "dead letter")
          }`,
          "",
          ...table(
            ["CONSUMER", "OWNED", "CAPACITY", "IDLE"],
            consumers.map(({ capacity, idle, name, owned }) => [
              name,
              String(owned),
              capacity === null ? "-" : String(capacity),
              formatDuration(Duration.millis(idle))
            ]),
            paint
          ),
          "",
          ...table(
            ["DATA STREAM", "CONSUMER", "IDLE", "BEHIND", "STATE"],
            streams.map(({ consumer, idle, isOrphan, lag, stream }) => [
              stream,
              consumer,
              formatDuration(Duration.millis(idle)),
              lag === null ? "-" : lag >= mostLag ? `${mostLag}+` : String(lag),
              isOrphan ? "orphan" : "owned"
            ]),
            paint
          ),
          ...streams.length < state.pending ? [paint("dim", `${streams.length} of ${state.pending}: see --limit`)] : [],
          ...deadLetters.length === 0 ? [] : [
            "",
            ...table(
              ["DEAD LETTER", "ANNOUNCED AS", "REASON"],
              deadLetters.map(({ entry, id, reason }) => [id, entry, reason]),
              paint
            )
          ]
        ]
      )
    },
    Effect.scoped,
    Effect.provide(store)
  )
).pipe(Command.withDescription("Show consumers, data streams, orphans, lag and dead letters of a service"))

const redrive = Command.make(
  "redrive",
  {
    service: serviceArgument,
    ids: Argument.String("id").pipe(
      Argument.withDescription("Ids of dead letters, as `streams show` prints them"),
      Argument.withSchema(EntryId),
      Argument.variadic()
    ),
    all: Flag.Boolean("all").pipe(Flag.withDescription("All dead letters that are there now"), Flag.withDefault(false))
  },
  Effect.fnUntraced(
    function*({ all, ids, service: name }) {
      if (all === ids.length > 0) {
        return yield* new Stop({ code: exitCodes.usage, message: "Give the ids of dead letters, or --all." })
      }
      const service = yield* open(name)
      const letters = all ? yield* allDeadLetters(service) : ids
      const results = yield* Effect.forEach(
        letters,
        (id) => Effect.map(service.redrive(id), (redriven) => ({ id, redriven }))
      )
      yield* print(
        results,
        (paint) =>
          results.map(({ id, redriven }) =>
            redriven ? paint("green", `announced again: ${id}`) : paint("yellow", `not there: ${id}`)
          )
      )
      if (
        results.some(({ redriven }) => !redriven)
      ) {
        return yield* new Stop({ code: exitCodes.negative, message: "" })
      }
    },
    Effect.scoped,
    Effect.provide(store)
  )
).pipe(Command.withDescription("Announce dead letters again"))

export const streams = Command.make("streams").pipe(
  Command.withDescription("Services that share data streams"),
  Command.withSubcommands([ls, show, redrive])
)
