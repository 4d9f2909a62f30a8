/** The order in which leases are renewed and ended, and when the renewal loop wakes up. */
import { SimbaError } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { DueLeases } from "../../src/internal/lease/dueLeases.ts"
import { type Periods, TrackedLease } from "../../src/internal/lease/leaseDeadline.ts"
import { start } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"
import { suspending } from "../support/suspending.ts"

class TestLease extends TrackedLease<Periods> {
  readonly name: string
  isOver = false
  constructor(name: string, periods: Partial<Periods>, deadlines: DueLeases<TestLease>) {
    super(
      { usable: 1000, margin: 100, renewAfter: 500, early: 0, maxHold: Infinity, isGroupable: true, ...periods },
      deadlines.now()
    )
    this.name = name
  }
  override isOpen() {
    return !this.isOver
  }
  override get annotations() {
    return {}
  }
}

/** All groups fit into a request. */
const all = () => true

const names = (leases: ReadonlyArray<TestLease>) => leases.map(({ name }) => name)

/** Creates a `DueLeases` and records which leases it ends. `ends` contains one list of names per batch. */
const make = (clock: Clock.Clock) => {
  const ends: Array<ReadonlyArray<string>> = []
  const deadlines: DueLeases<TestLease> = new DueLeases<TestLease>(clock, (over) => {
    ends.push(names(over))
    for (const lease of over) lease.isOver = true
  })
  const add = (name: string, periods: Partial<Periods> = {}) => {
    const lease = new TestLease(name, periods, deadlines)
    deadlines.place(lease.group)
    return lease
  }
  const take = () => {
    const taken: Array<string> = []
    for (let group = deadlines.takeDue(all); group !== undefined; group = deadlines.takeDue(all)) {
      taken.push(...names(deadlines.leasesOf(group)))
    }
    return taken
  }
  return { add, deadlines, ends, take }
}

const setup = Effect.map(Clock.Clock, make)

describe("a sweep", () => {
  it.effect("ends all expired leases in one batch, and no others", () =>
    Effect.gen(function*() {
      const { add, deadlines, ends } = yield* setup
      for (const [name, usable] of [["a", 700], ["b", 600], ["c", 701]] as const) add(name, { usable })
      yield* TestClock.adjust(599)
      deadlines.sweep(deadlines.now())
      assert.deepStrictEqual(ends, [])
      yield* TestClock.adjust(101)
      deadlines.sweep(deadlines.now())
      // "a" has just reached its deadline, and "c" is one millisecond before its own
      assert.deepStrictEqual(ends.map((batch) => [...batch].sort()), [["a", "b"]])
      assert.deepStrictEqual(names(deadlines.all()), ["c"])
    }))

  it.effect("ends a lease that has reached its deadline by either clock", () =>
    Effect.gen(function*() {
      for (
        const [monotonic, wall, isOver] of [[999.5, 999.5, false], [999.5, 1000, true], [1000, 999.5, true]] as const
      ) {
        const { add, deadlines } = yield* setup
        const lease = add("a")
        const now = deadlines.now()
        deadlines.sweep({ monotonic: now.monotonic + monotonic, wall: now.wall + wall })
        assert.strictEqual(lease.isOver, isOver)
      }
    }))

  it.effect("forgets a lease that has already ended", () =>
    Effect.gen(function*() {
      const { add, deadlines, ends } = yield* setup
      add("a").isOver = true
      yield* TestClock.adjust(1000)
      deadlines.sweep(deadlines.now())
      assert.deepStrictEqual([ends, deadlines.all()], [[], []])
    }))

  it.effect("makes a lease due only once, then orders it by its deadline", () =>
    Effect.gen(function*() {
      const { add, deadlines, take } = yield* setup
      const lease = add("a")
      assert.strictEqual(lease.group.key, 500)
      yield* TestClock.adjust(500)
      deadlines.sweep(deadlines.now())
      assert.deepStrictEqual([lease.group.isDue, lease.group.nextRenewal, lease.group.key, deadlines.hasDue], [
        true,
        Infinity,
        1000,
        true
      ])
      // If it is placed again before it is processed, it stays due, but only once
      lease.group.nextRenewal = 500
      deadlines.place(lease.group)
      deadlines.sweep(deadlines.now())
      assert.deepStrictEqual(take(), ["a"])
      assert.deepStrictEqual([lease.group.isDue, deadlines.hasDue], [false, false])
      lease.group.nextRenewal = 500
      deadlines.place(lease.group)
      deadlines.sweep(deadlines.now())
      assert.deepStrictEqual(take(), ["a"])
    }))

  it.effect("skips leases that have ended or are already being renewed", () =>
    Effect.gen(function*() {
      const { add, deadlines, take } = yield* setup
      const [a, b] = [add("a"), add("b"), add("c")]
      yield* TestClock.adjust(500)
      deadlines.sweep(deadlines.now())
      a.isOver = true
      b!.group.renewing = true
      assert.deepStrictEqual(take(), ["c"])
    }))

  it.effect("tries again after ten milliseconds if ending a lease crashed", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      let crashes = 1
      const deadlines: DueLeases<TestLease> = new DueLeases<TestLease>(clock, ([first, ...rest]) => {
        first!.isOver = true
        if (crashes-- > 0) throw new Error("mistake")
        for (const lease of rest) lease.isOver = true
      })
      const leases = ["a", "b"].map((name) => new TestLease(name, {}, deadlines))
      for (const lease of leases) {
        lease.group.nextRenewal = Infinity
        deadlines.place(lease.group)
      }
      yield* TestClock.adjust(1000)
      assert.throws(() => deadlines.sweep(deadlines.now()), "mistake")
      const left = deadlines.all()
      assert.deepStrictEqual([left.length, left[0]!.isOver, left[0]!.group.key], [1, false, 1010])
    }))
})

describe("the loop", () => {
  /** Runs the loop. Records how many turns it takes, its renewals, and how late it wakes up. */
  const running = Effect.fnUntraced(function*({ deadlines }: ReturnType<typeof make>, clock: Clock.Clock) {
    const noted = { turns: 0, renewed: [] as Array<string>, late: [] as Array<number> }
    const loop = deadlines.loop({
      late: (millis) => void noted.late.push(millis),
      renew: (from) => {
        noted.turns++
        for (let group = deadlines.takeDue(all); group !== undefined; group = deadlines.takeDue(all)) {
          for (const name of names(deadlines.leasesOf(group))) noted.renewed.push(`${name}@${from}`)
          group.extend(deadlines.now())
          deadlines.place(group)
        }
        return false
      }
    })
    yield* start(Effect.provideService(loop, Clock.Clock, clock))
    yield* TestClock.adjust(0)
    return noted
  })

  it.effect("sleeps until the next lease is due, and wakes up earlier only for a lease that is due earlier", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const layer = make(clock)
      layer.add("a", { renewAfter: 900 })
      const noted = yield* running(layer, clock)
      assert.strictEqual(noted.turns, 1)
      for (const [name, renewAfter, turns] of [["later", 901, 1], ["together", 900, 1], ["earlier", 899, 2]] as const) {
        layer.add(name, { renewAfter })
        yield* TestClock.adjust(0)
        assert.strictEqual(noted.turns, turns, name)
      }
      yield* TestClock.adjust(898)
      assert.deepStrictEqual([noted.turns, noted.renewed], [2, []])
      yield* TestClock.adjust(2)
      assert.deepStrictEqual(noted.renewed, ["earlier@899", "a@900", "together@900"])
    }))

  it.effect("after a sleep, allows no more renewals in a turn than before", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const { add, deadlines } = make(clock)
      add("a", { usable: 20_000, renewAfter: 10_000 })
      const sizes: Array<number> = []
      const loop = deadlines.loop({
        late: () => {},
        renew: (_from, slice) => {
          let size = 0
          while (slice.hasRoom()) size++
          sizes.push(size)
          return false
        }
      })
      yield* start(loop)
      yield* TestClock.adjust("10 seconds")
      assert.isAtLeast(sizes.length, 2)
      assert.strictEqual(new Set(sizes).size, 1)
    }))

  it.effect("wakes up for leases that were made due outside the loop", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      const layer = make(clock)
      layer.add("a")
      const noted = yield* running(layer, clock)
      stall.millis = 500
      layer.deadlines.sweep(layer.deadlines.now())
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(noted.renewed, ["a@500"])
      // The loop keeps sleeping, because nothing is due
      const { turns } = noted
      layer.deadlines.sweep(layer.deadlines.now())
      yield* TestClock.adjust(0)
      assert.strictEqual(noted.turns, turns)
    }))

  it.effect("renews earlier if an event loop turn was long: by twice its length, but at most half the interval", () =>
    Effect.gen(function*() {
      for (const [late, lead] of [[0, 0], [49, 0], [50, 100], [100, 200], [20_000, 250]] as const) {
        const { clock, stall } = yield* stalling
        const layer = make(clock)
        layer.add("timer", { renewAfter: 10, usable: 1e6 })
        const early = layer.add("a", { usable: 1e6, renewAfter: 30_000 + 500 })
        yield* Effect.scoped(Effect.gen(function*() {
          const noted = yield* Effect.forkScoped(Effect.never).pipe(Effect.andThen(running(layer, clock)))
          stall.millis = late
          yield* TestClock.adjust(10)
          assert.deepStrictEqual(noted.late[0], late, String(late))
          early.group.extend({ ...layer.deadlines.now() })
          early.group.nextRenewal = layer.deadlines.now().monotonic + 500
          layer.deadlines.place(early.group)
          assert.strictEqual(early.group.nextRenewal - early.group.key, lead, String(late))
        }))
      }
    }))

  it.effect("makes all leases due earlier once after each suspension of more than ten milliseconds", () =>
    Effect.gen(function*() {
      const { clock, suspension } = yield* suspending
      const layer = make(clock)
      const lease = layer.add("a", { usable: 60_000, renewAfter: 50_000 })
      yield* running(layer, clock)
      for (const [millis, key] of [[10, 50_000], [11, 49_989], [511, 49_489], [511, 49_489]] as const) {
        suspension.millis = millis
        yield* TestClock.adjust("1 second")
        assert.strictEqual(lease.group.key, key, String(millis))
      }
    }))
})

describe("leases that share a group", () => {
  const sharing = Effect.gen(function*() {
    const layer = yield* setup
    const leases = ["a", "b", "c"].map((name) => layer.add(name)) as [TestLease, TestLease, TestLease]
    const [{ group }, ...others] = leases
    return { ...layer, leases, group, join: () => others.map((other) => layer.deadlines.join(group, other.group)) }
  })

  it.effect("become due together, and end together", () =>
    Effect.gen(function*() {
      const { deadlines, ends, join, take, group } = yield* sharing
      assert.deepStrictEqual(join(), [true, true])
      assert.deepStrictEqual(names(deadlines.all()), ["a", "b", "c"])
      yield* TestClock.adjust(500)
      deadlines.sweep(deadlines.now())
      assert.isUndefined(deadlines.takeDue(({ leases }) => leases.length < 3))
      assert.deepStrictEqual([take(), deadlines.hasDue], [["a", "b", "c"], false])
      assert.strictEqual(deadlines.first, group)
      yield* TestClock.adjust(500)
      deadlines.sweep(deadlines.now())
      assert.deepStrictEqual(ends, [["a", "b", "c"]])
    }))

  it.effect("are due once, even if they were due separately before", () =>
    Effect.gen(function*() {
      const { deadlines, join, take } = yield* sharing
      yield* TestClock.adjust(500)
      deadlines.sweep(deadlines.now())
      join()
      assert.deepStrictEqual(take(), ["a", "b", "c"])
      assert.isFalse(deadlines.hasDue)
    }))

  it.effect("keep their deadline, the renewal in flight and its failure when they are separated, and can share again", () =>
    Effect.gen(function*() {
      const { deadlines, ends, join, leases, group } = yield* sharing
      join()
      // The wall clock is set forward by 400 ms
      const ahead = deadlines.now()
      assert.strictEqual(group.left({ ...ahead, wall: ahead.wall + 400 }), 600)
      group.renewing = true
      group.failure = new SimbaError.BackendError({ operation: "renew", isRetryable: true, cause: "outage" })
      group.renewNow({ monotonic: 300, wall: 300 })
      const groups = deadlines.separate(group)
      assert.deepStrictEqual(groups.map(({ leases }) => leases.length), [1, 1, 1])
      assert.sameMembers([...groups], leases.map(({ group }) => group))
      for (const own of groups) {
        assert.deepStrictEqual([own.endsAt(), own.renewing, own.failure], [600, true, group.failure])
        // The renewal in flight was sent before the immediate one was requested
        own.extend({ monotonic: 200, wall: 200 })
        assert.strictEqual(own.nextRenewal, -Infinity)
        own.extend({ monotonic: 0, wall: 0 })
        own.nextRenewal = Infinity
      }
      const [a, b, c] = leases
      assert.deepStrictEqual([deadlines.join(b.group, a.group), deadlines.join(b.group, c.group)], [true, true])
      deadlines.remove(c)
      deadlines.remove(b)
      assert.deepStrictEqual(names(deadlines.all()), ["a"])
      yield* TestClock.adjust(1000)
      deadlines.sweep(deadlines.now())
      assert.deepStrictEqual(ends, [["a"]])
    }))

  it.effect("leave nothing behind when all of them have ended", () =>
    Effect.gen(function*() {
      const { deadlines, join, leases } = yield* sharing
      join()
      for (const lease of leases) deadlines.remove(lease)
      assert.isUndefined(deadlines.first)
    }))

  it.effect("still end at their deadline, by both clocks, after they were separated", () =>
    Effect.gen(function*() {
      const { deadlines, ends, group, join } = yield* sharing
      join()
      const now = deadlines.now()
      // The wall clock is set back by five seconds, then forward by 400 ms
      assert.strictEqual(group.left({ ...now, wall: now.wall - 5000 }), 1000)
      for (const own of deadlines.separate(group)) {
        assert.strictEqual(own.left({ ...now, wall: now.wall - 4600 }), 600)
        own.left(now)
      }
      yield* TestClock.adjust(1000)
      deadlines.sweep(deadlines.now())
      assert.deepStrictEqual(ends.flat().sort(), ["a", "b", "c"])
    }))

  it.effect("are only those with the same deadline and the same next renewal", () =>
    Effect.gen(function*() {
      const { add, deadlines } = yield* setup
      const lease = add("a")
      for (const periods of [{ usable: 999 }, { renewAfter: 499 }, { isGroupable: false }]) {
        const other = add("other", periods)
        assert.isFalse(deadlines.join(lease.group, other.group), JSON.stringify(periods))
        assert.isFalse(deadlines.join(other.group, lease.group), JSON.stringify(periods))
      }
      const suspected = [add("suspected"), add("suspected", { renewAfter: 499 })] as const
      for (const { group } of suspected) group.renewNow(deadlines.now())
      assert.isFalse(deadlines.join(lease.group, suspected[0].group))
      assert.isFalse(deadlines.join(suspected[0].group, suspected[1].group))
      assert.isTrue(deadlines.join(lease.group, add("b").group))
    }))
})
