/**
 * The programs of data streams: two consumers, and a producer beside the first. They begin when one data stream was
 * processed, and are over when all is.
 */
import { StreamClient } from "@effect-simba/core/streams"
import * as RedisTopology from "@effect-simba/redis/RedisTopology"
import { RedisStreams } from "@effect-simba/redis/streams"
import type { Simulation } from "@effect-simba/testkit"
import { Duration, Effect, Layer, Schedule } from "effect"
import { Redis } from "effect/persistence/Redis"
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import { cure, handler } from "../simulate/streamHandler.ts"
import { plainLoadOf, planOf } from "../simulate/streamPlan.ts"
import { type Ailment, optionsOf, service, type Settings } from "../simulate/streamSettings.ts"
import type { Scope } from "./scope.ts"

type Client = Simulation.Client

const settings: Settings = {
  ...plainLoadOf("explored").settings,
  streams: new Map(),
  pace: { leaseDuration: 1500, heartbeatInterval: 400, sweepInterval: 1000, confirmTimeout: 700 },
  stock: 0,
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

const send = (...args: readonly [command: string, ...args: ReadonlyArray<string>]) =>
  Redis.use((redis) => redis.send(...args))

const insist = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.retry(effect, Schedule.spaced("100 millis")).pipe(Effect.orDie)

const checkpointOf = (stream: string) => Effect.map(send("GET", StreamKeys.checkpoint(stream as never)), String)

const write = (stream: string, n: number, last: number) =>
  insist(Effect.catchIf(
    send("XADD", stream, `${n}-0`, "n", String(n), ...(n === last ? ["end", "true"] : [])),
    // A former process, or a request whose reply was lost, has written it
    (error) => String(error.cause).includes("equal or smaller"),
    () => Effect.void
  ))

/** Writes the messages from `first` to `last`, which ends the data stream. */
const writeAll = (client: Client, stream: string, first: number, last: number) =>
  Effect.suspend(() => {
    client.note("expects", { resource: stream, message: `${last}-0` })
    const numbers = Array.from({ length: last - first + 1 }, (_, i) => first + i)
    return Effect.forEach(numbers, (n) => write(stream, n, last), { discard: true })
  })

const announce = (client: Client, stream: string) =>
  Effect.andThen(
    insist(StreamClient.announce(stream, {})),
    Effect.sync(() => client.note("announced", { resource: stream }))
  )

const until = (stream: string, id: string) =>
  insist(checkpointOf(stream)).pipe(
    Effect.repeat({ until: (checkpoint) => checkpoint.startsWith(`${id}@`), schedule: Schedule.spaced("200 millis") })
  )

/** A data stream that is processed before the exploration begins, so that all scripts of its way are loaded. */
const warmUp = (client: Client) =>
  client.generation > 1
    ? Effect.void
    : Effect.andThen(writeAll(client, "s0", 1, 1), Effect.andThen(announce(client, "s0"), until("s0", "1-0")))

/** What is announced once more after its end, by a producer that was killed, is over when its data stream is deleted. */
const remove = ({ phase }: Client, streams: ReadonlyArray<string>, last: string) =>
  Effect.gen(function*() {
    yield* Effect.repeat(Effect.sleep("500 millis"), { until: () => phase() === "liveness" })
    for (const stream of streams) {
      yield* until(stream, last)
      yield* insist(send("DEL", stream))
    }
  })

const consume = (client: Client, settings: Settings, stays: Effect.Effect<void>) => {
  const { capacity } = settings
  client.note("joined", { consumer: `simba-consumer-${client.name}.1`, capacity })
  const retry = Schedule.spaced("100 millis")
  return Effect.raceFirst(
    StreamClient.run(handler(client, settings), { retry, onError: () => Effect.void }),
    Effect.andThen(stays, Effect.sync(() => client.note("left")))
  )
}

const vary = { delays: [], losses: false, cuts: false, interruptions: false, setAside: [] } as const

type Work = (client: Client) => Effect.Effect<void, never, StreamClient.StreamClient | Redis>

interface Part {
  readonly streams: ReadonlyArray<readonly [name: string, ailment: Ailment]>
  readonly settings?: Partial<Settings>
  /** What the producer does before the exploration begins, after the warm-up. */
  readonly before: Work
  /** What it does then. */
  readonly produce: Work
  /** When the second consumer comes, and how long it stays in the exploration. Milliseconds. */
  readonly second: readonly [comes: number, stays: number]
  /** The last message of each data stream. */
  readonly last: string
}

const plan = ({ before, last, produce, second: [comes, stays], streams, ...part }: Part): Simulation.Plan<never> => {
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
        consume(client, own, leaves)
      )
      return (client.index === 0
        ? Effect.all([producer, consume(client, own, Effect.never)], { concurrency: "unbounded", discard: true })
        : Effect.asVoid(second)).pipe(
          Effect.provide(Layer.provideMerge(
            StreamClient.layer({ ...optionsOf(client, own, 1), processName: `${client.name}.1` }),
            RedisStreams.layerStore
          )),
          Effect.provideService(RedisTopology.RedisTopology, { _tag: "Single", serverChecks: false }),
          Effect.orDie
        )
    },
    duration: "6 seconds",
    calm: "100 millis",
    closing: "5 seconds",
    isOver: (view) =>
      streams.every(([stream]) => view.read(StreamKeys.checkpoint(stream as never))?.startsWith(`${last}@`) === true) &&
      view.stream(StreamKeys.input(service as never))?.entries.length === 0,
    vary
  }
}

export const streamScopes: Readonly<Record<string, Scope>> = {
  stream: {
    what: "two consumers of a data stream with three messages, one of which leaves, and an announcement after its end",
    plan: plan({
      streams: [["s1", "none"]],
      before: (client) => writeAll(client, "s1", 1, 3),
      produce: (client) =>
        Effect.gen(function*() {
          yield* announce(client, "s1")
          yield* Effect.sleep("100 millis")
          yield* writeAll(client, "s1", 4, 4)
          yield* announce(client, "s1")
        }),
      second: [0, 20],
      last: "4-0"
    })
  },
  buried: {
    what: "two consumers of a data stream that is buried, and revived when its handlers are cured",
    plan: plan({
      streams: [["s1", "curable"]],
      settings: { maxFailures: 1 },
      before: (client) => writeAll(client, "s1", 1, 2),
      produce: (client) =>
        Effect.gen(function*() {
          yield* announce(client, "s1")
          // A former process of the producer that was killed may have revived it
          const letters = yield* insist(Effect.all([StreamClient.deadLetters(), checkpointOf("s1")])).pipe(
            Effect.repeat({
              until: ([letters, checkpoint]) => letters.length > 0 || checkpoint.startsWith("2-0@"),
              schedule: Schedule.spaced("200 millis")
            }),
            Effect.map(([letters]) => letters)
          )
          yield* cure(client)
          for (const { id } of letters.slice(0, 1)) yield* insist(StreamClient.redrive(id))
        }),
      second: [0, Infinity],
      last: "2-0"
    })
  },
  rebalance: {
    what: "a consumer of two data streams hands one to another that has none",
    plan: plan({
      streams: [["s1", "none"], ["s2", "none"]],
      settings: { balance: true },
      // The members have not changed for almost as long as a hand-over waits for
      before: (client) =>
        client.generation > 1 ? Effect.void : Effect.gen(function*() {
          for (const stream of ["s1", "s2"]) {
            yield* write(stream, 1, 2)
            yield* announce(client, stream)
          }
          yield* Effect.sleep("2500 millis")
        }),
      produce: (client) =>
        Effect.gen(function*() {
          yield* Effect.sleep("400 millis")
          for (const stream of ["s1", "s2"]) yield* writeAll(client, stream, 2, 2)
        }),
      second: [300, Infinity],
      last: "2-0"
    })
  }
}
