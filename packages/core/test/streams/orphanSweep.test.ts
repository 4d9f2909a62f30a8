/** Tests what a sweep reads and takes, in what order, and when the next sweep is due. */
import { StreamName } from "@effect-simba/core/streams"
import { ConsumerName, type Pending } from "@effect-simba/core/streams/StreamStore"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Random } from "effect"
import { TestClock } from "effect/testing"
import type { ClientContext } from "../../src/streams/internal/context.ts"
import * as orphanSweep from "../../src/streams/internal/orphanSweep.ts"
import { newTable } from "../support/streamTable.ts"

const entryOf = (n: number) => StreamName.EntryId.make(`${n}-0`)

const me = ConsumerName.make("simba-consumer-a")

interface Fields {
  readonly consumer?: string
  readonly idle?: Duration.Input
  readonly isMalformed?: boolean
  readonly go?: { readonly lease: string | undefined }
}

const pendingOf = (
  n: number,
  { consumer = "simba-consumer-gone", go, idle = "1 minute", isMalformed }: Fields = {}
): Pending => ({
  consumer: ConsumerName.make(consumer),
  content: isMalformed === true
    ? { _tag: "Malformed", entry: entryOf(n), problem: "no JSON" }
    : { _tag: "Announced", entry: entryOf(n), stream: StreamName.StreamName.make(`s${n}`), info: {} },
  deliveries: 1,
  idle: Duration.fromInputUnsafe(idle),
  goConsumer: go
})

/** One consumer on a backend with the entries `pending`. `notes` lists its actions and their times in milliseconds. */
const setup = Effect.fnUntraced(function*(
  pending: Array<Pending>,
  options: { readonly capacity?: number; readonly room?: () => number; readonly mayTake?: (n: number) => boolean } = {}
) {
  const { config, metrics, table } = yield* newTable({ capacity: options.capacity })
  const began = table.now().monotonic
  const notes: Array<string> = []
  const note = (text: string) => notes.push(`${Math.round(table.now().monotonic - began)} ${text}`)
  let known: (entry: string) => unknown = () => undefined
  const store = {
    pending: (
      asked: { after?: string; consumer?: string; count: number; minIdle: Duration.Duration; known: typeof known }
    ) =>
      Effect.sync(() => {
        known = asked.known
        note(`pending ${asked.consumer ?? "all"} after ${asked.after}, ${Duration.toMillis(asked.minIdle)} ms`)
        const from = asked.after === undefined
          ? 0
          : pending.findIndex(({ content }) => content.entry === asked.after) + 1
        const entries = pending.slice(from, from + asked.count)
        return { entries, next: from + asked.count < pending.length ? entries.at(-1)!.content.entry : undefined }
      })
  }
  const taking = {
    mayTake: ({ entry }: { entry: string }) => options.mayTake?.(Number(entry.split("-")[0])) ?? true,
    take: (candidates: ReadonlyArray<{ entry: string; minIdle: Duration.Duration }>, source: string) =>
      Effect.sync(() => {
        const taken = candidates.slice(0, options.room?.() ?? Infinity)
        const entries = candidates.map(({ entry }) => entry.split("-")[0])
        note(`take ${entries.length > 5 ? entries.length : entries.join(" ")} by ${source}`)
        return taken
      }),
    deadLetter: ({ entry }: { entry: string }, consumer: string) =>
      Effect.sync(() => void note(`dead letter ${entry} of ${consumer}`))
  }
  const client = { config, metrics, store, table } as unknown as ClientContext
  const adopt = Effect.sync(() => void note("adopt"))
  return {
    sweep: orphanSweep.make(client, taking as never, () => {}, adopt),
    notes,
    table,
    known: (n: number) => known(entryOf(n))
  }
})

describe("one sweep", () => {
  it.effect("sweeps read entries that have been idle for longer than a lease, and the first sweep all of the consumer's own entries", () =>
    Effect.gen(function*() {
      const { notes, sweep } = yield* setup(Array.from({ length: 450 }, (_, i) => pendingOf(i + 1)))
      yield* sweep.once
      assert.deepStrictEqual(notes.splice(0), [
        "0 adopt",
        "0 pending all after undefined, 2000 ms",
        "0 take 200 by sweep",
        "0 pending all after 200-0, 2000 ms",
        "0 take 200 by sweep",
        "0 pending all after 400-0, 2000 ms",
        "0 take 50 by sweep"
      ])
      yield* sweep.own
      assert.deepStrictEqual(notes.slice(0, 2), [`0 pending ${me} after undefined, 0 ms`, "0 take 200 by start"])
    }))

  it.effect("a sweep takes entries until the capacity is used up, and another sweep is due 50 ms later", () =>
    Effect.gen(function*() {
      const rooms = [2, 1, 0]
      const { notes, sweep } = yield* setup([1, 2, 3, 4, 5].map((n) => pendingOf(n)), {
        room: () => rooms.shift() ?? 9
      })
      assert.isAbove(sweep.dueIn(), 0)
      yield* sweep.once
      assert.deepStrictEqual(notes.splice(0).slice(2), [
        "0 take 1 2 3 4 5 by sweep",
        "0 take 3 4 5 by sweep",
        "0 take 4 5 by sweep"
      ])
      // Otherwise, handlers that end quickly would cause one sweep after another
      yield* TestClock.adjust("49 millis")
      assert.isAbove(sweep.dueIn(), 0)
      yield* TestClock.adjust("1 millis")
      assert.isAtMost(sweep.dueIn(), 0)
      yield* sweep.once
      yield* TestClock.adjust("1 second")
      assert.isAbove(sweep.dueIn(), 0)
      sweep.request()
      assert.isAtMost(sweep.dueIn(), 0)
    }))

  it.effect("a sweep that runs out of capacity forgets Go consumers' missing entries only up to where it stopped", () =>
    Effect.gen(function*() {
      const rooms = [1, 0, 1, 0]
      const pending = [pendingOf(1, { go: { lease: "redis-consumer-go" } }), pendingOf(2), pendingOf(3)]
      const { known, sweep } = yield* setup(pending, { room: () => rooms.shift() ?? 9 })
      yield* sweep.once
      assert.isDefined(known(1))
      pending.shift()
      yield* sweep.once
      assert.isUndefined(known(1))
    }))

  it.effect("a sweep without free capacity reads nothing, and does not delay the next sweep", () =>
    Effect.gen(function*() {
      const { notes, sweep, table } = yield* setup([pendingOf(1)], { capacity: 1 })
      yield* TestClock.adjust("1 second")
      table.reserve(1, false)
      yield* sweep.once
      assert.deepStrictEqual([notes, sweep.dueIn()], [["1000 adopt"], -Infinity])
      table.unreserve(1)
      yield* sweep.once
      assert.deepStrictEqual(notes.slice(1), [
        "1000 adopt",
        "1000 pending all after undefined, 2000 ms",
        "1000 take 1 by sweep"
      ])
    }))

  it.effect("a sweep delays the next one even if it has only one unit of free capacity", () =>
    Effect.gen(function*() {
      const { sweep } = yield* setup([], { capacity: 1 })
      yield* sweep.once
      sweep.request()
      assert.isAbove(sweep.dueIn(), 0)
    }))

  it.effect("a sweep begins only after the previous one has ended, so that no entry is claimed twice", () =>
    Effect.gen(function*() {
      const consumer = "redis-consumer-go"
      const pending = [pendingOf(1, { consumer, go: { lease: consumer } })]
      const { notes, sweep } = yield* setup(pending)
      yield* sweep.once
      pending.splice(0, 1, pendingOf(1, { consumer, go: { lease: undefined } }))
      notes.splice(0)
      yield* Effect.forkChild(sweep.once, { startImmediately: true })
      yield* Effect.forkChild(sweep.own, { startImmediately: true })
      yield* TestClock.adjust("249 millis")
      assert.lengthOf(notes.filter((note) => note.includes("pending")), 1)
      yield* TestClock.adjust("1 millis")
      assert.lengthOf(notes.filter((note) => note.includes("pending")), 2)
    }))

  it.effect("a sweep skips entries that may not be taken, and unreadable entries that their consumers may still be handling", () =>
    Effect.gen(function*() {
      const { notes, sweep } = yield* setup([
        pendingOf(1),
        pendingOf(2),
        pendingOf(3, { isMalformed: true }),
        pendingOf(4, { isMalformed: true, idle: "10 minutes" }),
        pendingOf(5, { isMalformed: true, consumer: me, idle: 0 })
      ], { mayTake: (n) => n === 2 })
      yield* sweep.once
      assert.deepStrictEqual(notes.slice(2), [
        "0 dead letter 4-0 of simba-consumer-gone",
        "0 dead letter 5-0 of simba-consumer-a",
        "0 take 2 by sweep"
      ])
    }))

  it.effect("a sweep takes a Go consumer's previously locked entry on the second check", () =>
    Effect.gen(function*() {
      const consumer = "redis-consumer-go"
      const locked = [1, 2].map((n) => pendingOf(n, { consumer, go: { lease: consumer } }))
      const pending = [...locked]
      let isOwned = false
      const { notes, sweep } = yield* setup(pending, { mayTake: (n) => n === 1 || !isOwned })
      yield* sweep.once
      assert.lengthOf(notes, 2)
      pending.splice(0, 2, ...[1, 2].map((n) => pendingOf(n, { consumer, go: { lease: undefined } })))
      const sweeping = yield* Effect.forkChild(sweep.once, { startImmediately: true })
      isOwned = true
      yield* TestClock.adjust("249 millis")
      assert.isUndefined(sweeping.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.isDefined(sweeping.pollUnsafe())
      assert.strictEqual(notes.at(-1), "250 take 1 by sweep")
    }))
})

describe("what sweeps remember about Go consumers' entries", () => {
  const go = { lease: "redis-consumer-go" }

  it.effect("a complete sweep forgets the entries that it did not find", () =>
    Effect.gen(function*() {
      const pending = [pendingOf(1, { go }), pendingOf(2)]
      const { known, sweep } = yield* setup(pending)
      yield* sweep.once
      assert.isDefined(known(1))
      pending.shift()
      yield* sweep.once
      assert.isUndefined(known(1))
    }))

  it.effect("the search for the consumer's own entries does not forget other consumers' entries", () =>
    Effect.gen(function*() {
      const pending = [pendingOf(1, { go }), pendingOf(2)]
      const { known, sweep } = yield* setup(pending)
      yield* sweep.once
      pending.shift()
      yield* sweep.own
      assert.isDefined(known(1))
    }))

  it.effect("a sweep without free capacity forgets nothing", () =>
    Effect.gen(function*() {
      const { known, sweep, table } = yield* setup([pendingOf(1, { go })], { capacity: 1 })
      yield* sweep.once
      table.reserve(1, false)
      yield* sweep.once
      assert.isDefined(known(1))
    }))

  it.effect("a sweep without capacity for a second page forgets entries that are missing from the first page", () =>
    Effect.gen(function*() {
      const pending = Array.from({ length: 450 }, (_, i) => pendingOf(i + 1, i === 99 || i === 299 ? { go } : {}))
      let isFilled = false
      const { known, notes, sweep, table } = yield* setup(pending, {
        room: () => {
          if (isFilled) table.reserve(64, false)
          return Infinity
        }
      })
      yield* sweep.once
      pending.splice(299, 1)
      pending.splice(99, 1)
      isFilled = true
      yield* sweep.once
      assert.lengthOf(notes.filter((note) => note.includes("pending")), 3 + 1)
      assert.deepStrictEqual([known(100) !== undefined, known(300) !== undefined], [false, true])
    }))

  it.effect("a sweep that runs out of capacity forgets entries up to the last one that it read, and does not read any more pages", () =>
    Effect.gen(function*() {
      const pending = Array.from({ length: 450 }, (_, i) => pendingOf(i + 1, i === 199 || i === 299 ? { go } : {}))
      let room = Infinity
      const { known, notes, sweep } = yield* setup(pending, { room: () => room })
      yield* sweep.once
      notes.splice(0)
      pending.splice(299, 1)
      pending.splice(199, 1)
      room = 0
      yield* sweep.once
      assert.lengthOf(notes.filter((note) => note.includes("pending")), 1)
      assert.deepStrictEqual([known(200) !== undefined, known(300) !== undefined], [false, true])
    }))
})

describe("the sweep loop", () => {
  const timesOf = (notes: ReadonlyArray<string>) =>
    notes.filter((note) => note.endsWith("adopt")).map((note) => Number(note.split(" ")[0]))

  it.effect("the interval varies by 20%, to keep members from sweeping at the same time", () =>
    Effect.gen(function*() {
      for (const [drawn, expected] of [[0, [1600, 3200]], [0.5, [2000, 4000]], [1, [2400, 4800]]] as const) {
        const { notes, sweep } = yield* setup([])
        yield* Effect.forkScoped(
          Effect.provideService(sweep.loop, Random.Random, {
            nextIntUnsafe: () => 0,
            nextDoubleUnsafe: () => drawn
          }),
          { startImmediately: true }
        )
        yield* TestClock.adjust("4800 millis")
        assert.deepStrictEqual(timesOf(notes).slice(0, 2), [...expected])
      }
    }))

  it.effect("a wake-up causes an immediate sweep, but no earlier than 50 ms after the last one", () =>
    Effect.gen(function*() {
      const { notes, sweep } = yield* setup([])
      yield* Effect.forkScoped(sweep.loop, { startImmediately: true })
      sweep.wake()
      yield* TestClock.adjust("10 millis")
      assert.deepStrictEqual(timesOf(notes), [0])
      sweep.wake()
      yield* TestClock.adjust("39 millis")
      assert.deepStrictEqual(timesOf(notes), [0])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(timesOf(notes), [0, 50])
    }))
})
