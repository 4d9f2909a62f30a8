/**
 * Builds the programs in `streamScopes.ts`: two consumers, and a producer in the first consumer's process. The
 * exploration begins after one data stream has been processed and ends when all have been.
 */
import { StreamClient, type StreamLease } from "@effect-simba/core/streams"
import type { EntryId } from "@effect-simba/core/streams/StreamName"
import * as RedisTopology from "@effect-simba/redis/RedisTopology"
import { RedisStreams } from "@effect-simba/redis/streams"
import type { Simulation } from "@effect-simba/testkit"
import * as GoConsumer from "@effect-simba/testkit/streams/GoConsumer"
import { Duration, Effect, Layer, Predicate, Schedule } from "effect"
import { Redis } from "effect/persistence/Redis"
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import { handler } from "../simulate/streamHandler.ts"
import { plainLoadOf, planOf } from "../simulate/streamPlan.ts"
import { type Ailment, optionsOf, service, type Settings } from "../simulate/streamSettings.ts"

export type Client = Simulation.Client

const settings: Settings = {
  ...plainLoadOf("explored").settings,
  streams: new Map(),
  pace: { leaseDuration: 1500, heartbeatInterval: 400, sweepInterval: 1000, confirmTimeout: 700 },
  go: 0,
  consumers: 2,
  capacity: 8,
  messages: 3,
  rounds: 1,
  late: 0,
  grace: 500,
  balance: false,
  enableEvents: false,
  commitEvery: 1,
  stays: 1e9,
  freshIds: false,
  repeats: false,
  ownOffsets: false,
  malformed: false,
  duplicates: 0,
  computes: 0,
  work: 5,
  fenced: false,
  deadLetterAfter: 0,
  maxFailures: 2
}

export const send = (...args: readonly [command: string, ...args: ReadonlyArray<string>]) =>
  Redis.use((redis) => redis.send(...args))

export const insist = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.retry(effect, Schedule.spaced("100 millis")).pipe(Effect.orDie)

export const checkpointOf = (stream: string) => Effect.map(send("GET", StreamKeys.checkpoint(stream as never)), String)

export const write = (stream: string, n: number, last: number) =>
  insist(Effect.catchIf(
    send("XADD", stream, `${n}-0`, "n", String(n), ...(n === last ? ["end", "true"] : [])),
    // The message was already written by an earlier process, or by a request whose reply was lost
    (error) => String(error.cause).includes("equal or smaller"),
    () => Effect.void
  ))

/** Writes the messages from `first` to `last`, which marks the end of the data stream. */
export const writeAll = (client: Client, stream: string, first: number, last: number) =>
  Effect.suspend(() => {
    client.note("expects", { resource: stream, message: `${last}-0` })
    const numbers = Array.from({ length: last - first + 1 }, (_, i) => first + i)
    return Effect.forEach(numbers, (n) => write(stream, n, last), { discard: true })
  })

export const announce = (client: Client, stream: string) =>
  Effect.andThen(
    insist(StreamClient.announce(stream, {})),
    Effect.sync(() => client.note("announced", { resource: stream }))
  )

export const until = (stream: string, id: string) =>
  insist(checkpointOf(stream)).pipe(
    Effect.repeat({
      until: (checkpoint) => checkpoint === id || checkpoint.startsWith(`${id}@`),
      schedule: Schedule.spaced("200 millis")
    })
  )

/** Processes a data stream before the exploration, so that all scripts are loaded. */
const warmUp = (client: Client) =>
  client.generation > 1
    ? Effect.void
    : Effect.andThen(writeAll(client, "s0", 1, 1), Effect.andThen(announce(client, "s0"), until("s0", "1-0")))

/** Deletes finished data streams, which also ends announcements that a restarted producer repeats. */
const remove = ({ phase }: Client, streams: ReadonlyArray<string>, last: string) =>
  Effect.gen(function*() {
    yield* Effect.repeat(Effect.sleep("500 millis"), { until: () => phase() === "liveness" })
    for (const stream of streams) {
      yield* until(stream, last)
      yield* insist(send("DEL", stream))
    }
  })

type Handle = (
  lease: StreamLease.StreamLease,
  client: Client,
  settings: Settings
) => Effect.Effect<unknown, unknown, StreamLease.StreamLease>

const isYielded = (error: unknown) => Predicate.isTagged(error, "StreamYielded")

/** Runs a handler's work, and notes it for the checkers. */
export const noted = <A, E>(
  { entry, stream, token }: StreamLease.StreamLease,
  client: Client,
  work: Effect.Effect<A, E>
) => {
  const fields = { resource: stream, id: `${stream}#${token}`, entry }
  return Effect.acquireUseRelease(
    Effect.sync(() => {
      client.note("granted", { ...fields, token })
      client.note("begin", fields)
    }),
    () =>
      Effect.tapError(
        work,
        (error) => isYielded(error) ? Effect.void : Effect.sync(() => client.note("failed", fields))
      ),
    () =>
      Effect.sync(() => {
        client.note("stopped", fields)
        client.note("end", fields)
      })
  )
}

/** Writes a data stream's only message. */
export const writeOne = (client: Client, stream: string, field = "n") =>
  Effect.suspend(() => {
    client.note("expects", { resource: stream, message: "1-0" })
    return insist(Effect.ignore(send("XADD", stream, "1-0", field, "1")))
  })

/** Processes the only message, unless an earlier handler already has. */
export const processOne = (lease: StreamLease.StreamLease, client: Client, isLast: boolean) =>
  Effect.flatMap(lease.checkpoint, ({ _tag }) => {
    if (_tag === "Some") return Effect.void
    client.note("processed", { resource: lease.stream, id: `${lease.stream}#${lease.token}`, message: "1-0" })
    return lease.commit("1-0" as EntryId, { isLast })
  })

/**
 * Processes the message for the first announcement. For a repeated announcement, waits until the data stream is deleted
 * or has more messages.
 */
export const processOrAwait = (lease: StreamLease.StreamLease, client: Client, settings: Settings) =>
  "repeated" in lease.info
    ? handler(client, settings)(lease)
    : noted(lease, client, processOne(lease, client, false))

const consume = (client: Client, settings: Settings, stays: Effect.Effect<void>, handle: Handle | undefined) => {
  const { capacity } = settings
  const usual = handler(client, settings)
  const handled = handle === undefined
    ? usual
    : (lease: StreamLease.StreamLease) => lease.stream === "s0" ? usual(lease) : handle(lease, client, settings)
  client.note("joined", { consumer: `simba-consumer-${client.name}.1`, capacity })
  const retry = Schedule.spaced("100 millis")
  return Effect.raceFirst(
    StreamClient.run(handled, { retry, onError: () => Effect.void }),
    Effect.andThen(stays, Effect.sync(() => client.note("left")))
  )
}

const vary = { delays: [], losses: false, cuts: false, interruptions: false, setAside: [] } as const

/** A Go consumer that joins when the exploration begins, and works on each data stream for eight seconds. */
const goConsumer = (client: Client) =>
  Effect.andThen(
    client.ready,
    Effect.andThen(
      GoConsumer.join({ service, id: `${client.name}.${client.generation}`, work: () => Effect.sleep("8 seconds") }),
      Effect.never
    )
  ).pipe(Effect.scoped, Effect.ignore)

type Work = (client: Client) => Effect.Effect<void, never, StreamClient.StreamClient | Redis>

interface Part {
  readonly streams: ReadonlyArray<readonly [name: string, ailment: Ailment]>
  readonly settings?: Partial<Settings>
  /** The producer's work after the warm-up, before the exploration. */
  readonly before: Work
  /** The producer's work during the exploration. */
  readonly produce: Work
  /** When the second consumer joins, and how long it stays after the exploration has begun, both in milliseconds. */
  readonly second: readonly [comes: number, stays: number]
  /** The id of each data stream's last message. */
  readonly last: string
  /** The handler for data streams. Default: the simulator's handler. */
  readonly handle?: Handle
  readonly vary?: Simulation.Plan<never>["vary"]
  readonly duration?: Simulation.Plan<never>["duration"]
  /**
   * Whether the program is over once no announcements are left. By default, all data streams must also have been read
   * to the end.
   */
  readonly finishes?: boolean
}

/** Recognizes scripts that end leases or count failures by their hand-overs key. */
export const isHandOver = (args: ReadonlyArray<string>) => args[7] === StreamKeys.handOvers(service as never)

/**
 * Recognizes all scripts that act for owners: those recognized by `isHandOver`, commits, dead messages, renewals and
 * takes.
 */
export const isOfOwner = (args: ReadonlyArray<string>) =>
  isHandOver(args) || args.some((arg) => arg.startsWith("mutex:"))

export const plan = (
  { before, duration, finishes, handle, last, produce, second: [comes, stays], streams, ...part }: Part
): Simulation.Plan<never> => {
  const own: Settings = { ...settings, ...part.settings, streams: new Map([["s0", "none"], ...streams]) }
  const { faults: _faults, program: _program, seed: _seed, ...rest } = planOf("explored", {
    losses: false,
    mild: false,
    settings: own
  })
  return {
    ...rest,
    clients: 2,
    program: (client) => {
      if (own.go > client.index) return goConsumer(client)
      const producer = Effect.gen(function*() {
        yield* warmUp(client)
        yield* before(client)
        yield* client.ready
        yield* produce(client)
        yield* remove(client, streams.map(([stream]) => stream), last)
      })
      const leaves = Effect.andThen(client.ready, Effect.sleep(Duration.millis(stays)))
      const second = Effect.andThen(
        client.generation > 1 ? Effect.void : Effect.sleep(Duration.millis(comes)),
        consume(client, own, leaves, handle)
      )
      return (client.index === own.go
        ? Effect.all([producer, consume(client, own, Effect.never, handle)], {
          concurrency: "unbounded",
          discard: true
        })
        : Effect.asVoid(second)).pipe(
          Effect.provide(Layer.provideMerge(
            StreamClient.layer({ ...optionsOf(client, own, 1), processName: `${client.name}.1` }),
            RedisStreams.layerStore
          )),
          Effect.provideService(RedisTopology.RedisTopology, { _tag: "Single", serverChecks: false }),
          Effect.orDie
        )
    },
    duration: duration ?? "6 seconds",
    calm: "100 millis",
    closing: "5 seconds",
    isOver: (view) =>
      (finishes === true ||
        streams.every(([stream]) =>
          view.read(StreamKeys.checkpoint(stream as never))?.startsWith(`${last}@`) === true
        )) &&
      view.stream(StreamKeys.input(service as never))?.entries.length === 0,
    vary: { ...vary, ...part.vary }
  }
}
