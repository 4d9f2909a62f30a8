/** The programs of data streams: two consumers, and a producer beside the first. They are over when all is processed. */
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

/** A round of messages: the first begins with `n`. */
const produce = (client: Client, { messages }: Settings, stream: string, n: number) =>
  Effect.gen(function*() {
    const last = n + messages - 1
    client.note("expects", { resource: stream, message: `${last}-0` })
    for (let i = n; i <= last; i++) {
      const fields = i === last ? ["n", String(i), "end", "true"] : ["n", String(i)]
      yield* insist(Effect.catchIf(
        send("XADD", stream, `${i}-0`, ...fields),
        // A former process, or a request whose reply was lost, has written it
        (error) => String(error.cause).includes("equal or smaller"),
        () => Effect.void
      ))
      if (i > n) continue
      yield* insist(StreamClient.announce(stream, {}))
      client.note("announced", { resource: stream })
    }
  })

/** What is announced once more after its end, by a producer that was killed, is over when its data stream is deleted. */
const remove = ({ phase }: Client, streams: ReadonlyArray<string>, last: string) =>
  Effect.gen(function*() {
    yield* Effect.repeat(Effect.sleep("500 millis"), { until: () => phase() === "liveness" })
    for (const stream of streams) {
      yield* insist(checkpointOf(stream)).pipe(
        Effect.repeat({ until: (checkpoint) => checkpoint.startsWith(last), schedule: Schedule.spaced("500 millis") })
      )
      yield* insist(send("DEL", stream))
    }
  })

const consume = (client: Client, settings: Settings, stays: number) => {
  const { capacity } = settings
  client.note("joined", { consumer: `simba-consumer-${client.name}.1`, capacity })
  const retry = Schedule.spaced("100 millis")
  return Effect.raceFirst(
    StreamClient.run(handler(client, settings), { retry, onError: () => Effect.void }),
    Effect.andThen(Effect.sleep(Duration.millis(stays)), Effect.sync(() => client.note("left")))
  )
}

interface Part {
  readonly streams: ReadonlyArray<readonly [name: string, ailment: Ailment]>
  readonly settings?: Partial<Settings>
  /** What the producer does. */
  readonly produce: (
    client: Client,
    settings: Settings
  ) => Effect.Effect<void, never, StreamClient.StreamClient | Redis>
  /** When the second consumer comes, and how long it stays. Milliseconds. */
  readonly second: readonly [comes: number, stays: number]
  /** The last message of each data stream. */
  readonly last: string
  readonly vary: Simulation.Plan<never>["vary"]
}

const plan = ({ last, produce, second: [comes, stays], streams, vary, ...part }: Part): Simulation.Plan<never> => {
  const own: Settings = { ...settings, ...part.settings, streams: new Map(streams) }
  const { faults: _faults, program: _program, seed: _seed, ...rest } = planOf("explored", {
    losses: false,
    mild: false,
    settings: own
  })
  return {
    ...rest,
    clients: 2,
    program: (client) => {
      const consumer = Effect.sleep(Duration.millis(client.index === 0 ? 0 : comes)).pipe(
        Effect.andThen(consume(client, own, client.index === 0 ? Infinity : stays))
      )
      const producer = Effect.andThen(produce(client, own), remove(client, streams.map(([stream]) => stream), last))
      return Effect.andThen(
        client.ready,
        client.index === 0
          ? Effect.all([producer, consumer], { concurrency: "unbounded", discard: true })
          : Effect.asVoid(consumer)
      ).pipe(
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
      streams.every(([stream]) => view.read(StreamKeys.checkpoint(stream as never))?.startsWith(last) === true) &&
      view.stream(StreamKeys.input(service as never))?.entries.length === 0,
    vary
  }
}

const vary = { delays: [], losses: false, cuts: false, interruptions: false, setAside: [] } as const

export const streamScopes: Readonly<Record<string, Scope>> = {
  stream: {
    what: "two consumers of a data stream with three messages, one of which leaves, and an announcement after its end",
    plan: plan({
      streams: [["s1", "none"]],
      produce: (client, settings) =>
        Effect.gen(function*() {
          yield* produce(client, settings, "s1", 1)
          yield* Effect.sleep("100 millis")
          yield* produce(client, settings, "s1", 4)
        }),
      second: [0, 20],
      last: "6-0@",
      vary
    })
  },
  buried: {
    what: "two consumers of a data stream that is buried, and revived when its handlers are cured",
    plan: plan({
      streams: [["s1", "curable"]],
      produce: (client, settings) =>
        Effect.gen(function*() {
          yield* produce(client, settings, "s1", 1)
          // A former process of the producer that was killed may have revived it
          const letters = yield* insist(Effect.all([StreamClient.deadLetters(), checkpointOf("s1")])).pipe(
            Effect.repeat({
              until: ([letters, checkpoint]) => letters.length > 0 || checkpoint.startsWith("3-0@"),
              schedule: Schedule.spaced("200 millis")
            }),
            Effect.map(([letters]) => letters)
          )
          yield* cure(client)
          for (const { id } of letters.slice(0, 1)) yield* insist(StreamClient.redrive(id))
        }),
      second: [0, Infinity],
      last: "3-0@",
      vary
    })
  },
  rebalance: {
    what: "a consumer of two data streams, and one that comes later and is handed one",
    plan: plan({
      streams: [["s1", "slow"], ["s2", "slow"]],
      settings: { balance: true },
      produce: (client, settings) =>
        Effect.all([produce(client, settings, "s1", 1), produce(client, settings, "s2", 1)], { discard: true }),
      second: [50, Infinity],
      last: "3-0@",
      vary
    })
  }
}
