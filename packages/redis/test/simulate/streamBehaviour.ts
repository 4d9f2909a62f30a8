/** What the processes of a simulated fleet do with data streams: they produce, consume, fail, hang, leave and come back. */
import type { SimbaError } from "@effect-simba/core"
import { StreamClient, type StreamLease, StreamMessages } from "@effect-simba/core/streams"
import type { EntryId } from "@effect-simba/core/streams/StreamName"
import type { StreamStore } from "@effect-simba/core/streams/StreamStore"
import type { Subscriber } from "@effect-simba/core/Subscriber"
import type { Simulation } from "@effect-simba/testkit"
import * as StockStreamConsumer from "@effect-simba/testkit/streams/StockStreamConsumer"
import { Cause, Duration, Effect, Exit, Option, Schedule, Schema } from "effect"
import { Redis } from "effect/persistence/Redis"

export const service = "orders"

export const maxFailures = 6

/** Times of our consumers, in milliseconds. */
export interface Pace {
  readonly leaseDuration: number
  readonly heartbeatInterval: number
  readonly sweepInterval: number
  readonly confirmTimeout: number
}

/** What is wrong with the handler of a data stream: nothing, or one of these. */
export type Ailment = "none" | "fails" | "hangs" | "slow" | "poison"

/**
 * - `streams`: their ailments, by name. `messages`: how many each has in a round. `rounds`: how often each comes to its
 *   end and is announced anew.
 * - `consumers`: how many of the clients, the last ones, are ours; the others are stock.
 * - `stays`: the longest session of a consumer, in milliseconds. `freshIds`: each session has an id of its own.
 * - `late`: how long a consumer may be missing at first, in milliseconds.
 * - `rest`: the longest pause of a producer between two messages. `work`: the longest time for one message.
 * - `computes`: the longest computation for one message, in milliseconds; it takes time where processors do.
 * - `service`: its name. Default: `orders`.
 * - `unrenewed`: how many claims of stock consumers are never renewed, between 0 and 1.
 * - `duplicates`: how often a producer announces again, between 0 and 1. `malformed`: whether there is rubbish too.
 * - `hasty`: whether the next round follows while the end of the last is in hand. `repeats`: whether all is written and
 *   announced again once faults are over, for it may be lost.
 * - `ownOffsets`: whether handlers commit nothing, and keep their offsets in a system outside, which checks tokens.
 * - `stockWork`: the longest time for one data stream of a stock consumer.
 */
export interface Settings {
  readonly service?: string
  readonly streams: ReadonlyMap<string, Ailment>
  readonly messages: number
  readonly rounds: number
  readonly stock: number
  readonly consumers: number
  readonly capacity: number
  readonly pace: Pace
  readonly late: number
  readonly balance: boolean
  readonly enableEvents: boolean
  readonly grace: number
  readonly commitEvery: number
  readonly stays: number
  readonly freshIds: boolean
  readonly reapAfter: number
  readonly rest: number
  readonly work: number
  readonly duplicates: number
  readonly malformed: boolean
  readonly hasty: boolean
  readonly repeats: boolean
  readonly ownOffsets: boolean
  readonly stockWork: number
  readonly fenced: boolean
  readonly deadLetterAfter: number
  /** The key of the checkpoint of a data stream. */
  readonly checkpoint: (stream: string) => string
  readonly unrenewed: number
  readonly computes: number
}

const Order = Schema.Struct({ n: Schema.FiniteFromString, end: Schema.optionalKey(Schema.Literal("true")) })

const decodeOrder = Schema.decodeUnknownOption(Order)

/** Soon again, so that poison is found out while it is watched. */
const retry = Schedule.spaced("300 millis")

const tools = ({ phase, random }: Simulation.Client) => {
  const between = (low: number, high: number) => low + (high - low) * random()
  return {
    between,
    pause: (low: number, high: number) => Effect.suspend(() => Effect.sleep(Duration.millis(between(low, high)))),
    chance: (probability: number) => random() < probability,
    calm: Effect.suspend(() => Effect.sleep("500 millis")).pipe(Effect.repeat({ until: () => phase() === "liveness" }))
  }
}

const optionsOf = (client: Simulation.Client, settings: Settings, session: number) => ({
  service: settings.service ?? service,
  processName: settings.freshIds ? `${client.name}.${client.generation}.${session}` : client.name,
  capacity: settings.capacity,
  ...settings.pace,
  gracePeriod: settings.grace,
  maxFailures,
  deadLetterAfter: settings.deadLetterAfter,
  rebalance: settings.balance,
  enableEvents: settings.enableEvents,
  reapAfter: settings.reapAfter,
  progressTimeout: [...settings.streams.values()].includes("hangs") ? "3 seconds" as const : undefined
})

/** Its data streams, each from the first message to the last, again from the start in each process: the ids are fixed. */
export const produce = (client: Simulation.Client, settings: Settings) => {
  const { note } = client
  const { between, calm, chance, pause } = tools(client)
  const send = (...args: readonly [command: string, ...args: ReadonlyArray<string>]) =>
    Redis.use((redis) => redis.send(...args))

  const insist = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, never, R> =>
    Effect.catch(effect, () => Effect.andThen(pause(100, 400), insist(effect)))

  const append = (stream: string, n: number) => {
    const fields = n % settings.messages === 0
      ? ["n", String(n), "end", "true"]
      : settings.malformed && n % 5 === 3
      ? ["rubbish", String(n)]
      : ["n", String(n)]
    return insist(Effect.catchIf(
      send("XADD", stream, `${n}-0`, ...fields),
      // It is there already, or was overtaken by what survived a loss
      (error) => String(error.cause).includes("equal or smaller"),
      () => Effect.void
    ))
  }

  const announce = (stream: string) =>
    Effect.andThen(
      insist(StreamClient.announce(stream, { by: client.name })),
      Effect.sync(() => note("announced", { resource: stream }))
    )

  const position = (stream: string) =>
    settings.ownOffsets ? offsets(client).read(stream) : insist(send("GET", settings.checkpoint(stream)))

  /** Removes what was read to its end: an announcement that came too often ends with it. */
  const remove = (stream: string) =>
    position(stream).pipe(
      Effect.repeat({
        schedule: Schedule.spaced("1 second"),
        until: (id) => String(id).startsWith(`${settings.rounds * settings.messages}-0`)
      }),
      Effect.andThen(insist(send("DEL", stream)))
    )

  const announceRaw = (text: string) =>
    Effect.ignore(send("XADD", `${settings.service ?? service}-input`, "*", "lbs-input", text))

  const one = (stream: string) =>
    Effect.gen(function*() {
      const { messages, rounds } = settings
      for (let round = 1; round <= rounds; round++) {
        note("expects", { resource: stream, message: `${round * messages}-0` })
        const early = chance(0.7)
        yield* pause(0, settings.hasty && round > 1 ? 50 : 3000)
        if (early && round === 1) yield* announce(stream)
        for (let n = 1; n <= messages; n++) {
          yield* append(stream, (round - 1) * messages + n)
          // An announcement with nothing written since the last one is the same again
          if (early && round > 1 && n === 1) yield* announce(stream)
          yield* pause(0, settings.rest)
          if (chance(settings.duplicates / messages)) yield* announce(stream)
          if (chance(settings.duplicates / messages)) {
            yield* announceRaw(JSON.stringify({ DataStreamName: stream, Info: {} }))
          }
          if (settings.malformed && chance(0.2 / messages)) yield* announceRaw("{")
        }
        if (!early) yield* announce(stream)
      }
      yield* calm
      yield* Effect.sleep(Duration.millis(4000 + between(0, 500)))
      for (let n = 1; settings.repeats && n <= rounds * messages; n++) {
        yield* append(stream, n)
        if (n % messages === 0) yield* announce(stream)
      }
      // What was written again is read from its beginning: the checkpoint of before is no sign of its end
      if (settings.repeats) yield* Effect.sleep("5 seconds")
      yield* remove(stream)
    })

  const mine = [...settings.streams.keys()].filter((_, index) =>
    index % settings.consumers === client.index - settings.stock
  )
  return Effect.forEach(mine, one, { concurrency: "unbounded", discard: true }).pipe(
    Effect.provide(StreamClient.layer({ ...optionsOf(client, settings, 0), processName: `${client.name}-producer` }))
  )
}

/** A system outside that keeps the last processed message of each data stream, and refuses smaller tokens. */
const offsets = (client: Simulation.Client) => {
  const delay = () => tools(client).between(0.1, 10)
  const tokenOf = (state: Map<string, unknown>, stream: string) => Number(state.get(`${stream} token`) ?? 0)
  const read = (stream: string) =>
    Effect.suspend(() => client.outside(delay(), ({ state }) => String(state.get(`${stream} offset`) ?? "0-0")))
  return {
    read,
    /** From now on writes with a smaller token are refused. */
    claim: (stream: string, token: number) =>
      Effect.suspend(() =>
        client.outside(delay(), ({ state }) => {
          if (token >= tokenOf(state, stream)) state.set(`${stream} token`, token)
          return String(state.get(`${stream} offset`) ?? "0-0") as EntryId
        })
      ),
    write: (stream: string, token: number, message: string) =>
      Effect.suspend(() =>
        client.outside(delay(), ({ note, state }) => {
          if (token < tokenOf(state, stream)) return
          state.set(`${stream} offset`, message)
          note("kept", { resource: stream, message })
        })
      )
  }
}

const handler = (client: Simulation.Client, settings: Settings) => {
  const { note } = client
  const { between, chance, pause } = tools(client)
  let writes = 0

  const write = (stream: string, id: string, token: number) =>
    Effect.suspend(() => {
      const fields = { resource: stream, id, write: `${client.name}.${client.generation}.${++writes}` }
      note("writing", fields)
      return client.outside(between(0.1, 10), ({ note, state }) => {
        const accepted = token >= (state.get(stream) as number ?? 0)
        if (accepted) state.set(stream, token)
        note("written", { ...fields, token, accepted: accepted ? 1 : 0 })
      })
    })

  /** As `StreamMessages.process` does, with the offset elsewhere. */
  const processByOwnOffset = <E, R>(
    lease: StreamLease.StreamLease,
    handle: (message: { readonly id: EntryId; readonly value: typeof Order.Type }) => Effect.Effect<void, E, R>
  ) =>
    Effect.gen(function*() {
      const { claim, write } = offsets(client)
      const { stream, token } = lease
      let after = yield* claim(stream, token)
      while (after !== `${settings.rounds * settings.messages}-0`) {
        const found = yield* Effect.retry(lease.messagesAfter(after, 7), {
          while: (error) => error._tag !== "LeaseLost",
          schedule: Schedule.spaced("300 millis")
        })
        for (const { fields, id } of found) {
          if (yield* lease.isRevoked) return yield* lease.yield
          const value = Option.getOrUndefined(decodeOrder(Object.fromEntries(fields)))
          if (value !== undefined) yield* handle({ id, value })
          else note("processed", { resource: stream, id: `${stream}#${token}`, message: id })
          yield* write(stream, token, id)
          yield* lease.progress
          after = id
        }
      }
    })

  return (lease: StreamLease.StreamLease) => {
    const { entry, stream, token } = lease
    const ailment = settings.streams.get(stream) ?? "none"
    const id = `${stream}#${token}`
    const fields = { resource: stream, id, entry }

    // Reads what is left before it asks: a yield in between may take time
    const ensured = Effect.gen(function*() {
      const left = yield* lease.timeLeft
      yield* lease.ensure
      note("ensured", { resource: stream, id, left: Duration.toMillis(left) })
    })
    const message = (
      { id: messageId, value }: { readonly id: EntryId; readonly value: typeof Order.Type }
    ) =>
      Effect.gen(function*() {
        note("step", fields)
        yield* pause(1, settings.work)
        yield* client.compute([0, settings.computes])
        if (chance(0.3)) yield* ensured
        if (ailment === "slow") yield* Effect.andThen(lease.progress, pause(200, 1500))
        if (settings.fenced && chance(0.3)) yield* write(stream, id, token)
        if (ailment === "fails" && chance(0.1)) return yield* Effect.fail("the work failed" as const)
        if (ailment === "poison" && value.n === 2) return yield* Effect.fail("poison" as const)
        if (ailment === "hangs" && client.phase() === "safety" && chance(0.1)) return yield* Effect.never
        note("step", fields)
        note("processed", { resource: stream, id, message: messageId })
      })

    const work = settings.ownOffsets
      ? processByOwnOffset(lease, message)
      : StreamMessages.process(Order, message, {
        until: ({ value }) => value.end === "true",
        commitEvery: settings.commitEvery,
        batch: 7,
        attempts: Infinity
      })
    const reported = Effect.onExit(work, (exit) =>
      Effect.sync(() => {
        if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return
        const handedBack = exit.cause.reasons.some((reason) =>
          Cause.isFailReason(reason) && typeof reason.error === "object" && reason.error._tag === "StreamYielded"
        )
        if (!handedBack) note("failed", { resource: stream, entry })
      }))
    // An interruption between the first note and the last would leave work without an end
    return Effect.acquireUseRelease(
      Effect.sync(() => {
        note("granted", { resource: stream, id, token })
        note("begin", fields)
      }),
      () => reported,
      () => {
        note("stopped", fields)
        // Finalizers belong to the work
        return Effect.andThen(
          chance(0.2) ? Effect.sleep("5 millis") : Effect.void,
          Effect.sync(() => note("end", fields))
        )
      }
    )
  }
}

const sessionLength = (client: Simulation.Client, settings: Settings) =>
  Effect.suspend(() => client.phase() === "safety" ? tools(client).pause(500, settings.stays) : Effect.never)

export const consume = (client: Simulation.Client, settings: Settings) => {
  const { note } = client
  const { pause } = tools(client)
  let sessions = 0
  return Effect.andThen(
    pause(0, settings.late),
    Effect.forever(Effect.suspend(() => {
      const options = optionsOf(client, settings, ++sessions)
      const leave = Effect.andThen(sessionLength(client, settings), Effect.sync(() => note("left")))
      const session = Effect.suspend(() => {
        note("joined", { consumer: `simba-consumer-${options.processName}`, capacity: options.capacity })
        const handled = StreamClient.run(handler(client, settings), { retry, onError: () => Effect.void })
        return Effect.andThen(client.ready, Effect.raceFirst(handled, leave))
      })
      return Effect.andThen(Effect.provide(session, StreamClient.layer(options)), pause(0, 2000))
    }))
  )
}

const stock = (client: Simulation.Client, settings: Settings) => {
  const { chance, pause } = tools(client)
  let sessions = 0
  const session = Effect.suspend(() =>
    Effect.scoped(Effect.gen(function*() {
      const redis = yield* Redis
      // It would make the group without what was announced before
      yield* Effect.ignore(redis.send("XGROUP", "CREATE", `${service}-input`, `${service}-group`, "0", "MKSTREAM"))
      const id = `stock-${client.name}.${client.generation}.${++sessions}`
      const { unrenewed } = settings
      const consumer = yield* StockStreamConsumer.join({
        service,
        id,
        unrenewed,
        work: () => pause(100, settings.stockWork)
      })
      yield* sessionLength(client, settings)
      if (chance(0.4)) yield* consumer.done
    }))
  )
  return Effect.forever(Effect.andThen(Effect.ignore(session), pause(200, 2000)))
}

/** All that one process does. */
export const busy = (
  client: Simulation.Client,
  settings: Settings
): Effect.Effect<void, SimbaError.InvalidConfig | SimbaError.StoreError, Redis | StreamStore | Subscriber> =>
  client.index < settings.stock
    ? stock(client, settings)
    : Effect.all([produce(client, settings), consume(client, settings)], { concurrency: "unbounded", discard: true })
