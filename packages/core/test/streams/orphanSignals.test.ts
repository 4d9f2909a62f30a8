/**
 * Tests which requests a member sends on signals and expiry events, when it sends them, and what it leaves to sweeps.
 */
import { SimbaError } from "@effect-simba/core"
import { StreamMetrics, StreamName } from "@effect-simba/core/streams"
import {
  ConsumerName,
  type Expiry,
  type Member,
  type Pending,
  type Signal
} from "@effect-simba/core/streams/StreamStore"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Logger, Metric, Queue, Random } from "effect"
import { TestClock } from "effect/testing"
import type { ClientContext } from "../../src/streams/internal/context.ts"
import { rank } from "../../src/streams/internal/memberOrder.ts"
import * as orphanSignals from "../../src/streams/internal/orphanSignals.ts"
import { newTable } from "../support/streamTable.ts"

const session = "s00000000000"

const id = (text: string) => StreamName.EntryId.make(text)

const stream = StreamName.StreamName.make("s1")

const entryOf = (n: number) => id(`${n}-0`)

const member = (session: string): Member => ({
  consumer: ConsumerName.make(`simba-consumer-${session}`),
  session,
  capacity: 10,
  owned: 0
})

/** An entry that is pending for an effect-simba consumer, or for a Go consumer if `go` is set. */
const pendingOf = (
  entry: StreamName.EntryId,
  go?: { readonly lease?: string; readonly deliveries?: number }
): Pending => ({
  consumer: ConsumerName.make("simba-consumer-gone"),
  content: { _tag: "Announced", entry, stream, info: {} },
  deliveries: go?.deliveries ?? 2,
  idle: Duration.seconds(60),
  goConsumer: go === undefined ? undefined : { lease: go.lease }
})

interface Options {
  readonly members?: ReadonlyArray<Member>
  readonly capacity?: number
  readonly leaseDuration?: Duration.Input
  readonly sweepInterval?: Duration.Input
  readonly bound?: Duration.Duration
  /** The pending entries in the backend. */
  readonly pending?: Array<Pending>
  /** The value that every random number has, in [0, 1). */
  readonly drawn?: number
  readonly mayTake?: (entry: StreamName.EntryId) => boolean
  /** The maximum number of candidates in one call. */
  readonly room?: number
  /** How long the backend takes to reply to a read of pending entries. */
  readonly replyAfter?: Duration.Input
  /** Whether the member only notifies a listener of expired leases. */
  readonly isListening?: boolean
  /** Which subscription the backend refuses permanently. */
  readonly refuses?: "signals" | "expiries"
}

/** Offers the values, and waits until the member has processed them. */
const heard = <A>(queue: Queue.Queue<A>, ...values: ReadonlyArray<A>) =>
  Effect.andThen(Queue.offerAll(queue, values), Effect.repeat(Effect.yieldNow, { times: 20 + 2 * values.length }))

/** Starts a member on a backend with these pending entries. `notes` lists its actions and their times in ms. */
const setup = Effect.fnUntraced(function*(options: Options = {}) {
  const { pending = [], room = Infinity } = options
  const { config, metrics, table } = yield* newTable({
    capacity: options.capacity ?? 10,
    leaseDuration: options.leaseDuration,
    sweepInterval: options.sweepInterval ?? "1 hour"
  })
  const began = table.now().monotonic
  const notes: Array<string> = []
  const note = (text: string) => notes.push(`${Math.round(table.now().monotonic - began)} ${text}`)
  const [signals, expiries] = [yield* Queue.unbounded<Signal>(), yield* Queue.unbounded<Expiry>()]
  const refusal = new SimbaError.BackendError({
    operation: "subscribe",
    isRetryable: false,
    cause: new Error("NOPERM")
  })
  const subscriptionOf = <A>(what: Options["refuses"], queue: Queue.Queue<A>) =>
    options.refuses === what ? Effect.fail(refusal) : Effect.succeed({ next: Queue.take(queue), bound: options.bound })
  const store = {
    signals: subscriptionOf("signals", signals),
    expiries: Effect.asSome(subscriptionOf("expiries", expiries)),
    pending: ({ after, count, minIdle }: { after: string; count: number; minIdle: Duration.Duration }) =>
      Effect.suspend(() => {
        note(`pending after ${after}, ${count}, ${Duration.toMillis(minIdle)} ms`)
        const later = pending.filter(({ content }) => compare(content.entry, after) > 0)
        const entries = later.slice(0, count)
        const next = entries.length < count ? undefined : entries.at(-1)!.content.entry
        const reply = Effect.succeed({ entries, next })
        return options.replyAfter === undefined ? reply : Effect.delay(reply, options.replyAfter)
      })
  }
  const taking = {
    mayTake: ({ entry }: { entry: StreamName.EntryId }) => options.mayTake?.(entry) ?? true,
    take: (candidates: ReadonlyArray<{ entry: string; minIdle: Duration.Duration }>, source: string) =>
      Effect.sync(() => {
        if (candidates.length === 0) return []
        const texts = candidates.map(({ entry, minIdle }) => `${entry}/${Duration.toMillis(minIdle)}`)
        note(`take ${texts.join(" ")} by ${source}`)
        return candidates.slice(0, room)
      })
  }
  const sweep = { wake: () => note("wake"), request: () => note("request") }
  const client = { config, metrics, members: options.members ?? [], session, store, table } as unknown as ClientContext
  const lines: Array<string> = []
  yield* orphanSignals.make(client, taking as never, sweep as never, () => {}, {
    onExpired: options.isListening === true
      ? (_, entry) => Effect.sync(() => void note(`expired ${entry}`))
      : undefined,
    onHandOver: Effect.sync(() => void note("adopt"))
  }).pipe(
    Effect.provideService(Random.Random, { nextIntUnsafe: () => 0, nextDoubleUnsafe: () => options.drawn ?? 0 }),
    Effect.provide(Logger.layer([Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))])),
    Effect.forkScoped({ startImmediately: true })
  )
  yield* TestClock.adjust(0)
  // Subscribing counts as a gap, because signals from before the subscription were missed
  if (options.refuses !== "signals") assert.deepStrictEqual(notes.splice(0), ["0 wake"])
  return {
    notes,
    lines,
    table,
    released: (...entries: ReadonlyArray<StreamName.EntryId>) =>
      heard(signals, ...entries.map((entry): Signal => ({ _tag: "Released", entry, stream }))),
    expired: (...entries: ReadonlyArray<StreamName.EntryId>) =>
      heard(expiries, ...entries.map((entry): Expiry => ({ _tag: "Expired", entry, stream }))),
    signal: (signal: Signal) => heard(signals, signal),
    expiry: (expiry: Expiry) => heard(expiries, expiry),
    /** Advances the clock, and returns the member's actions in the meantime. */
    within: (time: Duration.Input) => Effect.map(TestClock.adjust(time), () => notes.splice(0))
  }
})

const compare = (a: string, b: string) => {
  const [x, y] = [a, b].map((text) => text.split("-").map(BigInt) as [bigint, bigint]) as [
    [bigint, bigint],
    [bigint, bigint]
  ]
  return x[0] === y[0] ? Number(x[1] - y[1]) : Number(x[0] - y[0])
}

const lastId = "18446744073709551615"

describe("signals", () => {
  it.effect("the first member with free capacity acts on a signal immediately, and each of the others 30 ms after the previous one", () =>
    Effect.gen(function*() {
      const members = ["b", "c", "d"].map((name) => member(`s0000000000${name}`))
      const ranks = new Set<number>()
      for (let n = 1; n <= 8; n++) {
        const [entry, all] = [entryOf(n), [member(session), ...members]]
        const turn = rank(all, session, entry)!
        ranks.add(turn)
        const { released, within } = yield* setup({ members: all, pending: [pendingOf(entry)] })
        yield* released(entry)
        assert.deepStrictEqual(yield* within("1 second"), [
          `${30 * turn} pending after ${n - 1}-${lastId}, 1, 2000 ms`,
          `${30 * turn} take ${entry}/2000 by signal`
        ])
      }
      assert.deepStrictEqual([...ranks].sort(), [0, 1, 2, 3])
    }))

  it.effect("a member acts on a signal after a random delay of at most 120 ms if it does not know its fleet", () =>
    Effect.gen(function*() {
      for (const [drawn, at] of [[0, 0], [0.5, 60], [0.9999, 120]] as const) {
        const { released, within } = yield* setup({ drawn, pending: [pendingOf(entryOf(1))] })
        yield* released(entryOf(1))
        assert.strictEqual((yield* within("1 second"))[1], `${at} take 1-0/2000 by signal`)
      }
    }))

  it.effect("a signal is delayed by at most the sweep interval", () =>
    Effect.gen(function*() {
      const { released, within } = yield* setup({ drawn: 0.9, sweepInterval: "50 millis" })
      yield* released(entryOf(1))
      assert.strictEqual((yield* within("1 second"))[0], `50 pending after 0-${lastId}, 1, 2000 ms`)
    }))

  it.effect("a repeated signal is handled only once, or not at all if its entry may not be taken", () =>
    Effect.gen(function*() {
      const { released, within } = yield* setup({ drawn: 0.5, mayTake: (entry) => entry !== entryOf(2) })
      yield* released(entryOf(1), entryOf(2), entryOf(1))
      assert.lengthOf(yield* within("1 second"), 1)
      yield* released(entryOf(2))
      assert.deepStrictEqual(yield* within("1 second"), [])
    }))

  it.effect("one paged scan from the oldest to the newest entry serves many signals, and takes no other entries", () =>
    Effect.gen(function*() {
      const all = Array.from({ length: 450 }, (_, i) => entryOf(i + 1))
      const { released, within } = yield* setup({ drawn: 0.5, pending: all.map((entry) => pendingOf(entry)) })
      // Ids are ordered as numbers, not as text
      yield* released(entryOf(300), entryOf(9), entryOf(20))
      assert.deepStrictEqual(yield* within("1 second"), [
        `60 pending after 8-${lastId}, 200, 2000 ms`,
        "60 take 9-0/2000 20-0/2000 by signal",
        "60 pending after 208-0, 200, 2000 ms",
        "60 take 300-0/2000 by signal"
      ])
      // One entry has a much larger id, and another is no longer pending. The scan still makes only one call per page.
      yield* released(entryOf(1), id("1-1"), entryOf(401))
      assert.lengthOf(yield* within("1 second"), 3 + 2)
    }))

  it.effect("a signal does not wait for others that are due later", () =>
    Effect.gen(function*() {
      const members = [session, "s1", "s2", "s3"].map(member)
      const ranked = (wanted: number) =>
        Array.from({ length: 100 }, (_, i) => entryOf(i + 1)).find((entry) => rank(members, session, entry) === wanted)!
      const [first, last] = [ranked(0), ranked(3)]
      const { released, within } = yield* setup({
        members,
        pending: [first, last].sort(compare).map((entry) => pendingOf(entry))
      })
      yield* released(last)
      assert.deepStrictEqual(yield* within("10 millis"), [])
      yield* released(first)
      assert.include((yield* within("10 millis")).join(), `take ${first}/`)
      assert.include((yield* within("1 second")).join(), `take ${last}/`)
    }))

  it.effect("a signal wakes a sweep if ten thousand entries are already due", () =>
    Effect.gen(function*() {
      const { released, within } = yield* setup({ replyAfter: "1 minute", sweepInterval: "1 hour" })
      yield* released(entryOf(1))
      assert.lengthOf(yield* within("1 millis"), 1)
      // The backend does not reply when the first entry is read, so all others stay due
      yield* released(...Array.from({ length: 10_000 }, (_, i) => entryOf(i + 2)))
      assert.deepStrictEqual(yield* within("1 millis"), [])
      yield* released(entryOf(10_002))
      assert.deepStrictEqual(yield* within("1 millis"), ["2 wake"])
    }))

  it.effect("a member with too little free capacity requests a sweep to make up for the signals that it drops", () =>
    Effect.gen(function*() {
      const dropped = Effect.map(Metric.value(StreamMetrics.stream.signals.dropped), ({ count }) => count)
      const used = Effect.map(Metric.value(StreamMetrics.stream.signals.used), ({ count }) => count)
      const [droppedBefore, usedBefore] = [yield* dropped, yield* used]
      const full = yield* setup({ capacity: 1, drawn: 0.5 })
      full.table.reserve(1, false)
      yield* full.released(entryOf(1), entryOf(2))
      assert.deepStrictEqual(yield* full.within("1 second"), ["60 request"])
      assert.strictEqual((yield* dropped) - droppedBefore, 2)
      const entries = [1, 2, 3].map(entryOf)
      const narrow = yield* setup({ room: 2, drawn: 0.5, pending: entries.map((entry) => pendingOf(entry)) })
      yield* narrow.released(...entries)
      assert.strictEqual((yield* narrow.within("1 second")).at(-1), "60 request")
      assert.deepStrictEqual([(yield* dropped) - droppedBefore, (yield* used) - usedBefore], [3, 2])
      const wide = yield* setup({ drawn: 0.5, pending: entries.map((entry) => pendingOf(entry)) })
      yield* wide.released(...entries)
      assert.lengthOf(yield* wide.within("1 second"), 2)
      assert.strictEqual((yield* used) - usedBefore, 5)
    }))

  it.effect("an entry is not taken if a Go consumer has claimed it since the signal", () =>
    Effect.gen(function*() {
      const { released, within } = yield* setup({ pending: [pendingOf(entryOf(1), {})] })
      yield* released(entryOf(1))
      assert.lengthOf(yield* within("1 minute"), 1)
    }))

  it.effect("a released entry is taken only if it has been idle for a lease duration", () =>
    Effect.gen(function*() {
      const { released, within } = yield* setup({ leaseDuration: "9 seconds", pending: [pendingOf(entryOf(1))] })
      yield* released(entryOf(1))
      assert.deepStrictEqual(yield* within("1 second"), [
        `0 pending after 0-${lastId}, 1, 9000 ms`,
        "0 take 1-0/9000 by signal"
      ])
    }))

  it.effect("a released entry that is not idle is checked once, then left to the sweeps", () =>
    Effect.gen(function*() {
      const { released, within } = yield* setup()
      yield* released(entryOf(1))
      assert.lengthOf(yield* within("1 minute"), 1)
    }))

  it.effect("a scan does not read any more pages after reaching the newest signaled entry", () =>
    Effect.gen(function*() {
      const all = Array.from({ length: 450 }, (_, i) => entryOf(i + 1))
      const { released, within } = yield* setup({
        drawn: 0.5,
        pending: all.map((entry) => pendingOf(entry)),
        mayTake: () => true
      })
      // One of the entries is no longer pending, and the newest is the last one on the first page
      yield* released(entryOf(1), id("1-1"), entryOf(200))
      assert.lengthOf((yield* within("1 second")).filter((note) => note.includes("pending")), 1)
    }))

  it.effect("all released entries and expired leases that are due at the same time are taken", () =>
    Effect.gen(function*() {
      const pending = [pendingOf(entryOf(1)), pendingOf(entryOf(2))]
      const { expired, released, within } = yield* setup({ drawn: 0.5, pending })
      yield* released(entryOf(1))
      yield* expired(entryOf(2))
      assert.deepStrictEqual((yield* within("1 second")).filter((note) => note.includes("take")), [
        "60 take 1-0/2000 by signal",
        "60 take 2-0/2000 by expiry"
      ])
    }))

  it.effect("a member adopts a hand-over if the signal names its session", () =>
    Effect.gen(function*() {
      const { signal, within } = yield* setup()
      yield* signal({ _tag: "HandedOver", session: "s00000000001" })
      assert.deepStrictEqual(yield* within("1 second"), [])
      yield* signal({ _tag: "HandedOver", session })
      assert.deepStrictEqual(yield* within("1 second"), ["1000 adopt"])
    }))
})

describe("expired leases", () => {
  it.effect("a Go consumer's entry is taken 2 s after its delivery, even if effect-simba's leases last longer", () =>
    Effect.gen(function*() {
      const { expired, within } = yield* setup({
        leaseDuration: "9 seconds",
        pending: [pendingOf(entryOf(1), {}), pendingOf(entryOf(2))]
      })
      yield* expired(entryOf(1))
      assert.deepStrictEqual(yield* within("1 second"), [
        `0 pending after 0-${lastId}, 1, 2000 ms`,
        "0 take 1-0/2000 by expiry"
      ])
      yield* expired(entryOf(2))
      assert.strictEqual((yield* within("1 second"))[1], "1000 take 2-0/9000 by expiry")
    }))

  it.effect("an entry that is not idle is checked again after a Go consumer's lease duration", () =>
    Effect.gen(function*() {
      const pending: Array<Pending> = []
      const { expired, within } = yield* setup({ pending })
      yield* expired(entryOf(1))
      assert.lengthOf(yield* within("2029 millis"), 1)
      assert.deepStrictEqual(yield* within("1 millis"), [`2030 pending after 0-${lastId}, 1, 2000 ms`])
      assert.deepStrictEqual(yield* within("1 minute"), [])
    }))

  it.effect("a release signal is handled when it is due, even if it arrives while an expired lease is checked", () =>
    Effect.gen(function*() {
      const { expired, released, within } = yield* setup({ drawn: 0.5, replyAfter: "100 millis" })
      yield* expired(entryOf(1))
      assert.lengthOf(yield* within("100 millis"), 1)
      yield* released(entryOf(1))
      assert.deepStrictEqual(yield* within("1 minute"), [`160 pending after 0-${lastId}, 1, 2000 ms`])
    }))

  it.effect("an entry is taken on the second check if a Go consumer claimed but did not lock it", () =>
    Effect.gen(function*() {
      const pending: Array<Pending> = []
      const { expired, within } = yield* setup({ pending })
      yield* expired(entryOf(1))
      yield* within("1 second")
      pending.push(pendingOf(entryOf(1), {}))
      assert.lengthOf(yield* within("1030 millis"), 1)
      assert.lengthOf(yield* within("279 millis"), 0)
      assert.strictEqual((yield* within("1 millis"))[1], "2310 take 1-0/2000 by expiry")
    }))

  it.effect("an entry is left to the sweeps if a Go consumer has only read it, or has since locked it", () =>
    Effect.gen(function*() {
      for (const go of [{ deliveries: 1 }, { lease: "redis-consumer-go" }]) {
        const pending: Array<Pending> = []
        const { expired, within } = yield* setup({ pending })
        yield* expired(entryOf(1))
        yield* within("1 second")
        pending.push(pendingOf(entryOf(1), go))
        assert.lengthOf(yield* within("1 minute"), 1)
      }
    }))

  it.effect("a member with a listener notifies the listener instead of taking an entry, if it has free capacity and may take it", () =>
    Effect.gen(function*() {
      const { expired, table, within } = yield* setup({
        capacity: 1,
        isListening: true,
        mayTake: (entry) => entry !== entryOf(2)
      })
      yield* expired(entryOf(1), entryOf(2))
      assert.deepStrictEqual(yield* within("1 second"), ["0 expired 1-0"])
      table.reserve(1, false)
      yield* expired(entryOf(1))
      assert.deepStrictEqual(yield* within("1 second"), [])
    }))
})

describe("gaps", () => {
  it.effect("a gap wakes a sweep and is counted", () =>
    Effect.gen(function*() {
      const gaps = Effect.map(Metric.value(StreamMetrics.stream.signals.gap), ({ count }) => count)
      const { expiry, signal, within } = yield* setup()
      const before = yield* gaps
      yield* signal({ _tag: "Gap" })
      yield* expiry({ _tag: "Gap" })
      assert.deepStrictEqual(yield* within("1 minute"), ["0 wake", "0 wake"])
      assert.strictEqual((yield* gaps) - before, 2)
    }))

  it.effect("a gap is assumed each time no signal arrives for `bound`", () =>
    Effect.gen(function*() {
      const { within } = yield* setup({ bound: Duration.seconds(2) })
      assert.deepStrictEqual(yield* within("5 seconds"), ["2000 wake", "2000 wake", "4000 wake", "4000 wake"])
    }))
})

it.effect("a permanently refused subscription is logged once, and the other subscription keeps working", () =>
  Effect.gen(function*() {
    const withoutSignals = yield* setup({ refuses: "signals", pending: [pendingOf(entryOf(1))] })
    yield* withoutSignals.expired(entryOf(1))
    assert.lengthOf(yield* withoutSignals.within("1 minute"), 2)
    assert.match(withoutSignals.lines.join(), /^Listening for .* was refused: /)
    const withoutEvents = yield* setup({ refuses: "expiries", pending: [pendingOf(entryOf(1))] })
    yield* withoutEvents.released(entryOf(1))
    assert.lengthOf(yield* withoutEvents.within("1 minute"), 2)
    assert.match(withoutEvents.lines.join(), /^Listening for .* was refused: /)
  }))
