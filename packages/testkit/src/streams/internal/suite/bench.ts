/** The fixture for the contract suite: one service under test, and the consumers that share it. */
import { type EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import type { RawMessage } from "@effect-simba/core/streams/StreamState"
import {
  ConsumerName,
  type Entry,
  Epoch,
  type Ownership,
  type RenewResult,
  type Service,
  ServiceName,
  StreamStore,
  type TakeResult
} from "@effect-simba/core/streams/StreamStore"
import { assert, type Vitest } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import * as suiteTime from "../../../internal/suite/time.ts"

export type Taken = Extract<TakeResult, { readonly _tag: "Taken" }>

export const taken = (result: TakeResult): Taken => {
  assert.strictEqual(result._tag, "Taken", `expected to take the data stream: ${JSON.stringify(result)}`)
  return result as Taken
}

export const announcedOf = (entry: Entry) => {
  assert.strictEqual(entry._tag, "Announced", `expected an announcement: ${JSON.stringify(entry)}`)
  return entry as Extract<Entry, { readonly _tag: "Announced" }>
}

export const only = <A>(items: ReadonlyArray<A>): A => {
  assert.strictEqual(items.length, 1, `expected exactly one item: ${JSON.stringify(items)}`)
  return items[0]!
}

/** Records a failure. Returns the number of consecutive failures. */
export const failed = (service: Service, ownership: Ownership, options?: Parameters<Service["fail"]>[1]) =>
  Effect.map(service.fail(ownership, options), (reply) => reply === "NotOwner" ? reply : reply.count)

/** Reads the id of the last committed message. */
export const committed = (service: Service, stream: StreamName) =>
  Effect.map(service.checkpoint(stream), Option.map(({ id }) => id))

export interface TakeOptions {
  readonly lease?: Duration.Duration
  readonly minIdle?: Duration.Duration
  readonly maxFailures?: number
  readonly deadLetterAfter?: Duration.Duration
  readonly epoch?: Epoch
}

/** One session of a consumer. */
export class Party {
  readonly consumer: ConsumerName
  readonly session: string
  private count = 0
  private readonly bench: Bench

  constructor(bench: Bench, consumer: ConsumerName, session: string) {
    this.bench = bench
    this.consumer = consumer
    this.session = session
  }

  readonly epoch = (): Epoch => Epoch.make(`${this.session}.${(++this.count).toString(36)}`)

  read(count = 10, block: Duration.Duration = Duration.millis(10)) {
    return this.bench.service.read({ consumer: this.consumer, count, block })
  }

  ask(stream: StreamName, entry: EntryId, options: TakeOptions = {}) {
    const epoch = options.epoch ?? this.epoch()
    return Effect.map(
      this.bench.service.take([{
        stream,
        entry,
        consumer: this.consumer,
        epoch,
        lease: options.lease ?? this.bench.lease,
        minIdle: options.minIdle ?? Duration.zero,
        maxFailures: options.maxFailures ?? 10,
        deadLetterAfter: options.deadLetterAfter
      }]),
      (results) => ({ result: only(results), epoch })
    )
  }

  /** Takes a data stream. Fails the test if the request is refused. */
  take(stream: StreamName, entry: EntryId, options: TakeOptions = {}) {
    return Effect.map(
      this.ask(stream, entry, options),
      ({ epoch, result }): Ownership & { readonly failures: number } => {
        const { failures, token } = taken(result)
        return { stream, entry, consumer: this.consumer, epoch, token, failures }
      }
    )
  }

  /** Tries to take a data stream, and returns the refusal. Fails the test if the request succeeds. */
  refused(stream: StreamName, entry: EntryId, options: TakeOptions = {}) {
    return Effect.map(this.ask(stream, entry, options), ({ result }) => {
      assert.notStrictEqual(result._tag, "Taken")
      return result
    })
  }

  /** Announces a data stream, reads it, and takes it. */
  own(label: string, options: TakeOptions = {}) {
    const { bench } = this
    return Effect.gen({ self: this }, function*() {
      const stream = bench.stream(label)
      const entry = yield* bench.announce(label)
      const entries = yield* this.read(1)
      assert.strictEqual(only(entries).entry, entry)
      return yield* this.take(stream, entry, options)
    })
  }
}

export interface Bench extends suiteTime.SuiteTime {
  readonly store: StreamStore["Service"]
  readonly service: Service
  readonly name: ServiceName
  readonly lease: Duration.Duration
  readonly stream: (label: string) => StreamName
  readonly party: (name?: string) => Party
  /** A party with a Go consumer's name. */
  readonly goConsumer: () => Party
  readonly announce: (label: string, info?: Record<string, unknown>) => Effect.Effect<EntryId, unknown>
  readonly renew: (ownership: Ownership, lease?: Duration.Duration) => Effect.Effect<RenewResult, unknown>
  /**
   * Shortens the lease to a moment, and waits until it has expired. Before this call, the lease is too long to expire.
   */
  readonly lapse: (ownership: Ownership) => Effect.Effect<void, unknown>
  readonly pending: (
    options?: { readonly consumer?: ConsumerName; readonly minIdle?: Duration.Duration }
  ) => Effect.Effect<Effect.Success<ReturnType<Service["pending"]>>["entries"], unknown>
  /** Runs an effect that waits, and advances the clock by this duration meanwhile. */
  readonly during: <A, E, R>(
    effect: Effect.Effect<A, E, R>,
    duration: Duration.Duration
  ) => Effect.Effect<A, E, R>
}

/** A lease longer than any test. */
export const long = Duration.minutes(2)

/** A lease that is short enough to wait for, but longer than the steps that must happen within it. */
export const short = Duration.seconds(2)

let count = 0

export const makeBench = Effect.fnUntraced(function*(
  options: { readonly live: boolean },
  label: string,
  lease: Duration.Duration = long
) {
  const store = yield* StreamStore
  const unique = (yield* Random.nextIntBetween(0, 36 ** 8)).toString(36).padStart(8, "0")
  // Use the same hash tag for all names: the suite must run on a Cluster too
  const tag = `{${label} ${unique}}`
  const name = ServiceName.make(tag)
  const service = yield* store.open(name)
  yield* service.prepare
  const stream = (label: string) => StreamName.make(`${tag}:${label}`)
  const bench: Bench = {
    ...suiteTime.make(options),
    store,
    service,
    name,
    lease,
    stream,
    party: (name = `${++count}`) =>
      new Party(bench, ConsumerName.make(`simba-consumer-${name}`), `s${(++count).toString(36).padStart(11, "0")}`),
    goConsumer: () => new Party(bench, ConsumerName.make(`redis-consumer-${++count}`), ""),
    announce: (label, info = {}) =>
      Effect.map(service.announce([{ stream: stream(label), info }]), (replies) => only(replies).entry),
    renew: (ownership, lease = bench.lease) => Effect.map(service.renew([ownership], lease), only),
    lapse: (ownership) =>
      Effect.gen(function*() {
        const instant = Duration.millis(50)
        assert.strictEqual((yield* bench.renew(ownership, instant))._tag, "Renewed")
        yield* bench.pass(instant)
      }),
    pending: (options = {}) =>
      Effect.map(
        service.pending({ consumer: options.consumer, minIdle: options.minIdle ?? Duration.zero, count: 1000 }),
        ({ entries }) => entries
      ),
    during: (effect, duration) =>
      options.live
        ? effect
        : Effect.gen(function*() {
          const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
          // The first read opens a connection before it waits
          yield* TestClock.adjust(0)
          yield* TestClock.adjust(duration)
          return yield* Fiber.join(fiber)
        })
  }
  return bench
})

/** What the test cases share: how to register a test, how to make a bench, and what the backend can do. */
export interface Cases {
  readonly it: Vitest.MethodsNonLive<StreamStore>
  readonly bench: (label: string, lease?: Duration.Duration) => ReturnType<typeof makeBench>
  /** Whether the backend publishes lease expiries. */
  readonly publishesExpiries: boolean
  /** Adds a message to a data stream, as its producer does. */
  readonly append: Append | undefined
  /** Removes a data stream's messages before this one, as its producer does. */
  readonly trim: Trim | undefined
}

export type Trim = (stream: StreamName, before: EntryId) => Effect.Effect<unknown, unknown, StreamStore>

export type Append = (
  stream: StreamName,
  fields: RawMessage["fields"]
) => Effect.Effect<EntryId, unknown, StreamStore>
