/** Compares the table of owned data streams with a small model in all sequences of four operations. */
import { StreamMetrics, StreamName } from "@effect-simba/core/streams"
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Exit, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { Recorder } from "../../src/internal/lease/metricsRecorder.ts"
import { slicedTasks } from "../../src/internal/lease/workSlices.ts"
import { check } from "../../src/streams/internal/config.ts"
import { OwnedStream } from "../../src/streams/internal/ownedStream.ts"
import { StreamTable } from "../../src/streams/internal/streamTable.ts"
import { acquisitionAt } from "../support/acquisition.ts"
import { newTable } from "../support/streamTable.ts"

const acts = ["take s1", "take s2", "end s1", "lose s1", "finish s1", "reserve", "unreserve"] as const

type Act = (typeof acts)[number]

const capacity = 2

/** A data stream, with the number of its current lease and of an earlier lease whose handler is still running. */
interface Modelled {
  owner: number | undefined
  lingering: number | undefined
  isRunning: boolean
}

class Model {
  readonly streams = new Map<string, Modelled>()
  readonly events: Array<string> = []
  reserved = 0

  private of(name: string): Modelled {
    const found = this.streams.get(name) ?? { owner: undefined, lingering: undefined, isRunning: false }
    this.streams.set(name, found)
    return found
  }

  leave(name: string, event: string): void {
    const one = this.of(name)
    if (one.owner === undefined) return
    this.events.push(`${one.owner} ${event}`)
    if (one.isRunning) one.lingering = one.owner
    one.owner = undefined
  }

  take(name: string, lease: number): boolean {
    this.leave(name, "TakenOver")
    const one = this.of(name)
    if (one.lingering !== undefined) return false
    one.owner = lease
    one.isRunning = true
    return true
  }

  finish(name: string): void {
    const one = this.of(name)
    one.isRunning = false
    one.lingering = undefined
  }

  count(key: "owner" | "lingering"): number {
    return [...this.streams.values()].filter((one) => one[key] !== undefined).length
  }

  get free(): number {
    return Math.max(0, capacity - this.count("owner") - this.count("lingering") - this.reserved)
  }
}

const setup = Effect.gen(function*() {
  const config = yield* check({ service: "svc", processName: "a", capacity })
  const clock = yield* Clock.Clock
  const tasks = yield* slicedTasks
  return (history: ReadonlyArray<Act>) => {
    const model = new Model()
    const events: Array<string> = []
    let owned = 0
    let lines = 0
    const counts = new Map<unknown, number>()
    const recorder: Recorder = {
      update: (metric) => void counts.set(metric, (counts.get(metric) ?? 0) + 1),
      modify: (metric, by) => {
        assert.strictEqual<unknown>(metric, StreamMetrics.stream.owned)
        owned += by as number
      },
      count: () => {},
      least: () => {},
      run: () => lines++
    }
    const table = new StreamTable(clock, tasks, config, recorder)
    table.onLost = ({ token }, reason) => events.push(`${token} ${reason}`)
    const latest = new Map<string, OwnedStream>()
    let leases = 0
    for (const act of history) {
      const [verb, name = ""] = act.split(" ")
      const one = latest.get(name)
      if (verb === "take") {
        const lease = new OwnedStream(
          acquisitionAt(table.now(), { stream: name, token: ++leases, entry: `${leases}-0` }),
          table.periods
        )
        const isTaken = table.add(lease)
        assert.strictEqual(isTaken, model.take(name, leases), history.join())
        if (isTaken) {
          lease.hasHandler = true
          latest.set(name, lease)
        }
      } else if (verb === "end" && one !== undefined) {
        const wasOpen = one.isOpen()
        table.end(one, "done")
        if (wasOpen) events.push(`${one.token} done`)
        model.leave(name, "done")
      } else if (verb === "lose" && one !== undefined) {
        table.lose(one, "Vanished")
        model.leave(name, "Vanished")
      } else if (verb === "finish" && one !== undefined) {
        table.workEnded(one)
        model.finish(name)
      } else if (verb === "reserve") {
        const kept = table.reserve(1, false)
        assert.strictEqual(kept, Math.min(1, model.free))
        model.reserved += kept
      } else if (verb === "unreserve" && model.reserved > 0) {
        table.unreserve(1)
        model.reserved--
      }
      assert.deepStrictEqual({
        free: table.free(),
        hasRoom: table.room.isOpen(),
        size: table.size,
        owned,
        inUse: ["s1", "s2"].filter((name) => table.isInUse(StreamName.StreamName.make(name))),
        owners: [...table.all()].map(({ token }) => Number(token)).sort(),
        events
      }, {
        free: model.free,
        hasRoom: model.free > 0,
        size: model.count("owner"),
        owned: model.count("owner"),
        inUse: ["s1", "s2"].filter((name) => {
          const one = model.streams.get(name)
          return one?.owner !== undefined || one?.lingering !== undefined
        }),
        owners: [...model.streams.values()].flatMap(({ owner }) => owner ?? []).sort(),
        events: model.events
      }, history.join())
    }
    const { acquisitions, ends, holdTime, losses } = StreamMetrics.stream
    const countOf = (event: string) => model.events.filter((one) => one.endsWith(event)).length
    assert.deepStrictEqual(
      [acquisitions.sweep, holdTime, ends.done, losses.Vanished, losses.TakenOver].map((one) => counts.get(one) ?? 0),
      [
        model.count("owner") + model.events.length,
        model.events.length,
        ...["done", "Vanished", "TakenOver"].map(countOf)
      ]
    )
    // All losses within half a second are logged together
    assert.strictEqual(lines, Math.min(1, countOf("Vanished") + countOf("TakenOver")))
  }
})

it.effect("the table agrees with a model on owners, free capacity, lingering handlers and metrics after every sequence of four operations", () =>
  Effect.gen(function*() {
    const play = yield* setup
    const histories = (length: number): ReadonlyArray<ReadonlyArray<Act>> =>
      length === 0 ? [[]] : histories(length - 1).flatMap((history) => acts.map((act) => [...history, act]))
    for (const history of histories(4)) play(history)
  }))

it.effect("a handler is interrupted if its lease has already ended or been stopped when it starts", () =>
  Effect.gen(function*() {
    const { table } = yield* newTable({}, { update: () => {}, modify: () => {}, run: () => {} })
    for (const [how, expected] of [["none", 0], ["stop", 1], ["lose", 1]] as const) {
      const lease = new OwnedStream(acquisitionAt(table.now()), table.periods)
      assert.isTrue(table.add(lease))
      if (how === "stop") lease.stop()
      else if (how === "lose") table.lose(lease, "Vanished")
      let interrupted = 0
      table.workBegan(lease, { interruptUnsafe: () => interrupted++ } as never)
      assert.strictEqual(interrupted, expected, how)
      table.end(lease, "released")
      table.workEnded(lease)
    }
  }))

it.effect("a data stream that is taken by name does not need free capacity, but leaves less of it for others", () =>
  Effect.gen(function*() {
    const { table } = yield* newTable({ capacity: 1 })
    assert.strictEqual(table.reserve(3, true), 3)
    assert.deepStrictEqual([table.free(), table.room.isOpen(), table.reserve(1, false)], [0, false, 0])
    table.unreserve(2)
    assert.strictEqual(table.free(), 0)
    table.unreserve(1)
    assert.deepStrictEqual([table.free(), table.room.isOpen()], [1, true])
  }))

/** A table, a record of each metric's values, and a function that adds data stream `n` to the table. */
const recordedTable = Effect.fnUntraced(function*(options: Parameters<typeof newTable>[0] = {}) {
  const values = new Map<unknown, Array<unknown>>()
  const { table } = yield* newTable(options, {
    update: (metric, value) => void values.set(metric, [...values.get(metric) ?? [], value]),
    modify: () => {},
    count: () => {},
    least: () => {},
    run: () => {}
  })
  const leaseOf = (n: number) =>
    new OwnedStream(acquisitionAt(table.now(), { entry: `${n}-0`, stream: `s${n}`, token: n }), table.periods)
  return {
    table,
    values,
    leaseOf,
    add: (n: number) => {
      const lease = leaseOf(n)
      assert.isTrue(table.add(lease))
      return lease
    }
  }
})

it.effect("one request renews at most 200 data streams", () =>
  Effect.gen(function*() {
    const { add, table } = yield* recordedTable({ capacity: 500 })
    const sizes: Array<number> = []
    yield* table.renewing({
      renew: (requests: ReadonlyArray<unknown>) =>
        Effect.sync(() => {
          sizes.push(requests.length)
          return requests.map(() => ({ _tag: "Renewed" }))
        })
    } as never)
    for (let n = 1; n <= 201; n++) add(n)
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(sizes, [200, 1])
  }))

it.effect("a renewal that is in flight when the client closes has not failed", () =>
  Effect.gen(function*() {
    const { add, table } = yield* recordedTable()
    const scope = yield* Scope.make()
    yield* Scope.provide(table.renewing({ renew: () => Effect.never } as never), scope)
    const lease = add(1)
    yield* TestClock.adjust("1 second")
    assert.isTrue(lease.group.renewing)
    yield* Scope.close(scope, Exit.void)
    assert.isFalse(lease.group.isFailing)
  }))

it.effect("progress resets the count of failures only once a successful renewal has reported it", () =>
  Effect.gen(function*() {
    const { add, table } = yield* recordedTable()
    let reply = "Lost"
    yield* table.renewing({
      renew: () => Effect.sync(() => [{ _tag: reply, reason: "Vanished" }])
    } as never)
    const lease = add(1)
    lease.failures = 3
    lease.hasProgressed = true
    // The renewal does not decide the outcome, because a request that ends the lease is in flight
    lease.endings = 1
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual([lease.isOpen(), lease.failures, lease.hasProgressed], [true, 3, true])
    const next = add(2)
    next.failures = 3
    next.hasProgressed = true
    reply = "Renewed"
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual([next.isOpen(), next.failures, next.hasProgressed], [true, 0, false])
  }))

it.effect("an expired lease is refused, but a lease with a millisecond left is added", () =>
  Effect.gen(function*() {
    const { leaseOf, table } = yield* recordedTable()
    const [first, second] = [leaseOf(1), leaseOf(2)]
    yield* TestClock.adjust(first.left(table.now()) - 1)
    assert.isTrue(table.add(first))
    yield* TestClock.adjust(1)
    assert.isFalse(table.add(second))
  }))

it.effect("watching a lease that has ended has no effect, and neither its renewal nor its deadline is due", () =>
  Effect.gen(function*() {
    const { add, table } = yield* recordedTable()
    const lease = add(1)
    lease.progressedAt = table.now().monotonic
    table.end(lease, "done")
    table.watch(lease)
    assert.isUndefined(table.deadlines.first)
  }))

it.effect("each loss is counted once, and the duration of a lease is measured from its grant", () =>
  Effect.gen(function*() {
    const { add, table, values } = yield* recordedTable()
    yield* TestClock.adjust("10 seconds")
    const [lost, ended] = [add(1), add(2)]
    yield* TestClock.adjust("300 millis")
    table.lose(lost, "Vanished")
    yield* TestClock.adjust("200 millis")
    table.end(ended, "done")
    assert.deepStrictEqual(values.get(StreamMetrics.stream.losses.Vanished), [1])
    assert.deepStrictEqual(values.get(StreamMetrics.stream.holdTime), [300, 500])
  }))

it.effect("a loss is reported as Stalled before the lease's deadline, and as Expired at the deadline", () =>
  Effect.gen(function*() {
    for (const [left, expected] of [[1, "Stalled"], [0, "Expired"]] as const) {
      const { add, leaseOf, table } = yield* recordedTable({ progressTimeout: "1 second" })
      const reasons: Array<string> = []
      table.onLost = (_, reason) => reasons.push(reason)
      const usable = leaseOf(2).left(table.now())
      const lease = add(1)
      lease.progressedAt = table.now().monotonic + usable - left - 1000
      table.watch(lease)
      yield* TestClock.adjust(usable - left)
      table.isHeld(lease)
      assert.deepStrictEqual(reasons, [expected])
    }
  }))

it.effect("operations on a data stream fail from its lease's deadline onwards", () =>
  Effect.gen(function*() {
    const { add, table } = yield* recordedTable()
    const lease = add(1)
    yield* TestClock.adjust(lease.left(table.now()) - 1)
    yield* table.ensure(lease)
    yield* TestClock.adjust(1)
    const exit = yield* Effect.exit(table.ensure(lease))
    assert.isTrue(Exit.isFailure(exit))
    assert.strictEqual((yield* Effect.flip(table.ensure(lease)))._tag, "LeaseLost")
  }))

it.effect("stopping a data stream does not interrupt a handler that has ended", () =>
  Effect.gen(function*() {
    const { add, table } = yield* recordedTable()
    const lease = add(1)
    let interrupted = 0
    table.workBegan(lease, { interruptUnsafe: () => interrupted++ } as never)
    table.workEnded(lease)
    lease.stop()
    assert.strictEqual(interrupted, 0)
  }))
