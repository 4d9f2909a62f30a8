/** Tests the rebalancing plan's decisions for single views and for simulated fleets. */
import type { Member } from "@effect-simba/core/streams/StreamStore"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Random, Schema } from "effect"
import * as sharing from "../../src/streams/internal/rebalancePlan.ts"
import { Fleet, settings, type Start } from "../support/sharingModel.ts"

const member = (session: string, capacity: number, owned: number): Member => ({
  consumer: `simba-consumer-${session}` as Member["consumer"],
  session,
  capacity,
  owned
})

/** The receiver that each member plans if all members have had this view for a long time. */
const plans = (members: ReadonlyArray<Member>, state: sharing.State = { ...sharing.initial, levelSince: -Infinity }) =>
  members.map(({ owned, session }) =>
    sharing.plan(state, { members, session, owned, leaving: [], movable: owned }, 0, settings)?.to.session
  )

const numbers = Schema.Array(Schema.Struct({
  capacity: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 })),
  owned: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 }))
})).check(Schema.isMinLength(1), Schema.isMaxLength(9))

/** A fleet in which no member owns more than its capacity. */
const within = (starts: ReadonlyArray<Start>): ReadonlyArray<Start> =>
  starts.map(({ capacity, owned }) => ({ capacity, owned: owned % (capacity + 1) }))

const sum = (values: ReadonlyArray<number>) => values.reduce((a, b) => a + b, 0)

/** The total surplus above ceilings plus the total deficit below floors. */
const imbalance = (starts: ReadonlyArray<Start>): number => {
  const [owned, capacity] = [sum(starts.map((one) => one.owned)), sum(starts.map((one) => one.capacity))]
  return sum(starts.map((one) => {
    const share = capacity === 0 ? 0 : Math.min(owned, capacity) * one.capacity / capacity
    return Math.max(0, one.owned - Math.ceil(share)) + Math.max(0, Math.floor(share) - one.owned)
  }))
}

/** Pseudo-random numbers between 0 and 1 that depend only on the seed. */
const chances = (seed: number) =>
  Random.withSeed(Effect.map(Random.Random, (random) => () => random.nextDoubleUnsafe()), String(seed))

describe("plans", () => {
  it("streams move from members above their share to members below it", () => {
    assert.deepStrictEqual(plans([member("a", 64, 10), member("b", 64, 0)]), ["b", undefined])
    assert.deepStrictEqual(plans([member("a", 64, 5), member("b", 64, 5)]), [undefined, undefined])
    assert.deepStrictEqual(plans([member("a", 64, 1), member("b", 64, 0)]), [undefined, undefined])
    assert.deepStrictEqual(plans([member("a", 64, 3), member("b", 64, 2)]), [undefined, undefined])
  })

  it("shares are proportional to capacity", () => {
    assert.deepStrictEqual(plans([member("a", 10, 8), member("b", 30, 24)]), [undefined, undefined])
    assert.deepStrictEqual(plans([member("a", 10, 9), member("b", 30, 23)]), ["b", undefined])
    assert.deepStrictEqual(plans([member("a", 0, 1), member("b", 30, 3)]), ["b", undefined])
  })

  it("a new member in a fleet whose members are at their ceilings receives one stream from one of them", () => {
    const members = [member("c", 64, 2), member("a", 64, 2), member("b", 64, 0)]
    assert.deepStrictEqual(plans(members), [undefined, "b", undefined])
    // The stream moves only if nobody has been above a ceiling for a while
    assert.deepStrictEqual(plans(members, sharing.initial), [undefined, undefined, undefined])
  })

  it("no plan exceeds a member's capacity", () => {
    assert.deepStrictEqual(plans([member("a", 4, 9), member("b", 4, 4)]), [undefined, undefined])
    assert.deepStrictEqual(plans([member("a", 4, 9), member("b", 4, 3)]), ["b", undefined])
  })

  it("nothing is planned by a client that is not a member, or without a movable stream", () => {
    const members = [member("a", 64, 10), member("b", 64, 0)]
    const view = { members, session: "a", owned: 10, leaving: [], movable: 0 }
    assert.isUndefined(sharing.plan(sharing.initial, view, 0, settings))
    assert.isUndefined(sharing.plan(sharing.initial, { ...view, session: "x", movable: 10 }, 0, settings))
    assert.strictEqual(sharing.plan(sharing.initial, { ...view, movable: 1 }, 0, settings)?.to.session, "b")
  })

  it.prop(
    "members that act on the same view do not push a receiver above its ceiling together",
    [numbers],
    ([starts]) => {
      const members = starts.map(({ capacity, owned }, index) => member(String(index), capacity, owned))
      const [owned, capacity] = [sum(starts.map((one) => one.owned)), sum(starts.map((one) => one.capacity))]
      const received = new Map<string, number>()
      for (const to of plans(members)) if (to !== undefined) received.set(to, (received.get(to) ?? 0) + 1)
      for (const [session, count] of received) {
        const to = members.find((one) => one.session === session)!
        const ceiling = Math.ceil(Math.min(owned, capacity) * to.capacity / capacity)
        assert.isAtMost(to.owned + count, ceiling)
        assert.isAtMost(ceiling, to.capacity)
      }
    }
  )

  it.prop(
    "with one hand-over at a time, a fleet reaches balance in at most as many hand-overs as its imbalance, and then stops",
    [numbers],
    ([starts]) => {
      const now = starts.map((one) => ({ ...one }))
      let moves = 0
      for (;;) {
        const members = now.map(({ capacity, owned }, index) => member(String(index), capacity, owned))
        const planned = plans(members)
        const from = planned.findIndex((to) => to !== undefined)
        if (from === -1) break
        const before = imbalance(now)
        now[from] = { ...now[from]!, owned: now[from]!.owned - 1 }
        const to = Number(planned[from])
        now[to] = { ...now[to]!, owned: now[to]!.owned + 1 }
        assert.isBelow(imbalance(now), before)
        moves++
      }
      assert.isAtMost(moves, imbalance(starts))
      const [owned, capacity] = [sum(starts.map((one) => one.owned)), sum(starts.map((one) => one.capacity))]
      if (owned <= capacity) assert.strictEqual(imbalance(now), 0)
    }
  )
})

describe("pacing", () => {
  const [a, b] = [member("a", 64, 10), member("b", 64, 0)]
  const view = { members: [a, b], session: "a", owned: 10, leaving: [], movable: 10 }

  it("a member plans nothing for a while after the membership changes", () => {
    const state = sharing.observe(sharing.initial, view, 1000, settings)
    assert.isUndefined(sharing.plan(state, view, 1000 + settings.settle - 1, settings))
    assert.strictEqual(sharing.plan(state, view, 1000 + settings.settle, settings)?.to.session, "b")
    const repeated = sharing.observe(state, view, 2000, settings)
    assert.strictEqual(repeated.quietUntil, state.quietUntil)
    // A different order of members is not a change, but a different capacity is
    const turned = sharing.observe(state, { ...view, members: [b, a] }, 3000, settings)
    assert.strictEqual(turned.quietUntil, state.quietUntil)
    const smaller = sharing.observe(state, { ...view, members: [a, { ...b, capacity: 8 }] }, 3000, settings)
    assert.strictEqual(smaller.quietUntil, 3000 + settings.settle)
  })

  it("a member plans nothing for a while after a hand-over, and counts a stream in transit for both sides", () => {
    const state = sharing.handedOver(sharing.initial, "b", 1000, settings)
    assert.isUndefined(sharing.plan(state, view, 1000 + settings.rest - 1, settings))
    assert.strictEqual(sharing.plan(state, view, 1000 + settings.rest, settings)?.to.session, "b")
    assert.strictEqual(sharing.registered(state, 9, 1000 + settings.transit - 1), 10)
    assert.strictEqual(sharing.registered(state, 9, 1000 + settings.transit), 9)
    // The receiver has not registered its sixth stream yet. Counting the stream in transit, nobody is above their
    // share.
    const known = { members: [a, { ...b, owned: 5 }], session: "a", owned: 7, leaving: [], movable: 7 }
    assert.strictEqual(sharing.plan(sharing.initial, known, 1000 + settings.rest, settings)?.to.session, "b")
    assert.isUndefined(sharing.plan({ ...state, levelSince: -Infinity }, known, 1000 + settings.rest, settings))
    assert.lengthOf(sharing.observe(state, view, 1000 + settings.transit, settings).sent, 0)
  })

  it("a stream that was handed over becomes movable only after the membership changes or `stay` has passed", () => {
    const state = sharing.observe(sharing.initial, view, 0, settings)
    const arrival = { membership: state.membership, at: 1000 }
    assert.isTrue(sharing.isMovable(state, undefined, 1000, settings))
    assert.isFalse(sharing.isMovable(state, arrival, 1000 + settings.stay - 1, settings))
    assert.isTrue(sharing.isMovable(state, arrival, 1000 + settings.stay, settings))
    const joined = sharing.observe(state, { ...view, members: [a, b, member("c", 64, 0)] }, 2000, settings)
    assert.isTrue(sharing.isMovable(joined, arrival, 2000, settings))
  })
})

/** Asserts that no stream moves back to an earlier owner, from the move with index `first` onwards. */
const assertNothingWentBack = (fleet: Fleet, first = 0) => {
  const had = new Map<number, Set<number>>()
  for (const { from, stream, to } of fleet.moves.slice(first)) {
    const owners = had.get(stream) ?? new Set()
    assert.isFalse(owners.add(from).has(to), `stream ${stream} went back to member ${to}`)
    had.set(stream, owners)
  }
}

describe("a fleet with outdated views", { tags: ["G32"] }, () => {
  it.effect.prop(
    "reaches balance with at most one hand-over more than needed, and no stream moves back",
    [numbers.check(Schema.isMinLength(2)), Schema.Int],
    ([wild, seed]) =>
      Effect.gen(function*() {
        const starts = within(wild)
        const fleet = new Fleet(starts, yield* chances(seed), 500)
        assert.isTrue(fleet.rest())
        const now = fleet.owned().map((owned, index) => ({ capacity: starts[index]!.capacity, owned }))
        assert.strictEqual(imbalance(now), 0, JSON.stringify(now))
        assert.isAtMost(fleet.moves.length, imbalance(starts) + 1)
        assertNothingWentBack(fleet)
      }),
    { arbitrary: { runs: 150, seed: "sharing" } }
  )

  it.effect.prop(
    "gives a new member its share, and moves no more streams than needed when a member leaves",
    [numbers.check(Schema.isMinLength(2)), Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 })), Schema.Int],
    ([wild, capacity, seed]) =>
      Effect.gen(function*() {
        const starts = within(wild)
        const fleet = new Fleet(starts, yield* chances(seed), 500)
        assert.isTrue(fleet.rest())
        const first = fleet.moves.length
        fleet.join({ capacity, owned: 0 })
        assert.isTrue(fleet.rest())
        const all = [...starts, { capacity, owned: 0 }]
        const now = fleet.owned().map((owned, index) => ({ capacity: all[index]!.capacity, owned }))
        assert.strictEqual(imbalance(now), 0, JSON.stringify(now))
        assertNothingWentBack(fleet, first)
        const second = fleet.moves.length
        fleet.leave(starts.length)
        assert.isTrue(fleet.rest())
        const left = now.slice(0, -1)
        assert.isAtMost(fleet.moves.length - second, imbalance(left) + 1)
        assertNothingWentBack(fleet, second)
      }),
    { arbitrary: { runs: 60, seed: "joining" } }
  )

  it.effect.each([[5000, 2, 200], [10_000, 3, 200], [5000, 2, 5000]] as const)(
    "with %d data streams on %d members, gives a new member its share within three minutes if handlers end within %d ms",
    ([streams, members, grace]) =>
      Effect.gen(function*() {
        const owned = Math.floor(streams / members)
        const starts = Array.from({ length: members }, () => ({ capacity: streams, owned }))
        const fleet = new Fleet(starts, yield* chances(1), 500, grace)
        fleet.rest()
        const before = fleet.moves.length
        fleet.join({ capacity: streams, owned: 0 })
        const joined = fleet.time
        assert.isTrue(fleet.rest())
        const share = Math.floor(members * owned / (members + 1))
        assert.isTrue(fleet.owned().every((count) => count - share === 0 || count - share === 1), `${fleet.owned()}`)
        assert.isAtMost(fleet.moves.at(-1)!.at - joined, 180_000)
        assert.isAtMost(fleet.moves.length - before, share + members)
        assertNothingWentBack(fleet, before)
      })
  )
})

/** The same decision, made stream by stream: the n-th surplus stream goes to the n-th open place. */
const spelledOut = (members: ReadonlyArray<Member>, session: string): sharing.Decision | undefined => {
  const [owned, capacity] = [sum(members.map((one) => one.owned)), sum(members.map((one) => one.capacity))]
  const shareOf = (one: Member) => capacity === 0 ? 0 : Math.min(owned, capacity) * one.capacity / capacity
  const units = (streams: (one: Member) => number) =>
    members.map((one) => ({ one, count: streams(one) })).sort((a, b) =>
      b.count - a.count || (a.one.session < b.one.session ? -1 : 1)
    ).flatMap(({ count, one }) => Array.from({ length: Math.max(0, count) }, () => one))
  const pairs = (donors: ReadonlyArray<Member>, places: ReadonlyArray<Member>) => {
    const mine = donors.flatMap((donor, i) => donor.session === session && places[i] !== undefined ? [places[i]!] : [])
    return mine[0] === undefined ? undefined : { to: mine[0], count: mine.filter((to) => to === mine[0]).length }
  }
  const above = units((one) => one.owned - Math.ceil(shareOf(one)))
  const [donors, places] = above.length > 0
    ? [above, units((one) => Math.ceil(shareOf(one)) - one.owned)]
    : [
      units((one) => one.owned > Math.floor(shareOf(one)) ? 1 : 0),
      units((one) => Math.floor(shareOf(one)) - one.owned)
    ]
  const found = pairs(donors, places)
  return found && { to: found.to, count: Math.max(1, Math.floor(found.count / 4)) }
}

describe("decisions", () => {
  it("in every fleet of three, each surplus stream is assigned to one open place, a quarter of them at a time", () => {
    const numbers = [0, 2, 5].flatMap((capacity) => [0, 1, 2, 3, 5, 18].map((owned) => [capacity, owned] as const))
    const state = { ...sharing.initial, levelSince: -Infinity }
    let decisions = 0
    for (const first of numbers) {
      for (const second of numbers) {
        for (const third of numbers) {
          const members = [first, second, third].map(([capacity, owned], i) => member("bac"[i]!, capacity, owned))
          for (const { owned, session } of members) {
            const view = { members, session, owned, leaving: [], movable: 1000 }
            const found = sharing.plan(state, view, 0, settings)
            assert.deepStrictEqual(found, spelledOut(members, session), JSON.stringify(members))
            if (found !== undefined) decisions++
          }
        }
      }
    }
    assert.isAbove(decisions, 1000)
    // Fleets of four, including fleets with two donors and two receivers
    const counts = [0, 3, 40, 90]
    for (const n of Array.from({ length: 256 }, (_, n) => n)) {
      const members = [0, 1, 2, 3].map((i) => member("bacd"[i]!, 100, counts[Math.floor(n / 4 ** i) % 4]!))
      for (const { owned, session } of members) {
        const view = { members, session, owned, leaving: [], movable: 1000 }
        assert.deepStrictEqual(sharing.plan(state, view, 0, settings), spelledOut(members, session))
      }
    }
  })

  it("a decision contains at most as many data streams as are movable, and at most one batch", () => {
    const members = [member("a", 5000, 4000), member("b", 5000, 0)]
    const countOf = (movable: number, batch: number) =>
      sharing.plan(
        sharing.initial,
        { members, session: "a", owned: 4000, leaving: [], movable },
        0,
        { ...settings, batch }
      )?.count
    assert.deepStrictEqual([countOf(4000, 100), countOf(30, 100), countOf(4000, 7), countOf(1, 7)], [100, 30, 7, 1])
    assert.deepStrictEqual(sharing.settingsFor(1000, 1500), {
      settle: 5500,
      rest: 1000,
      transit: 4500,
      stay: 55_000,
      batch: 100
    })
  })

  it("a stream that is leaving is counted once, for its receiver", () => {
    const members = [member("a", 10, 6), member("b", 10, 0)]
    const planned = (leaving: number) =>
      sharing.plan(
        { ...sharing.initial, levelSince: -Infinity },
        { members, session: "a", owned: 6, leaving: Array.from({ length: leaving }, () => "b"), movable: 6 },
        0,
        settings
      )?.to.session
    assert.deepStrictEqual([0, 1, 2, 3].map(planned), ["b", "b", "b", undefined])
  })
})

it("`observe` starts a quiet period on each membership change, and resets `levelSince` after a surplus or a change", () => {
  const views = {
    level: [member("a", 10, 2), member("b", 10, 2)],
    surplus: [member("a", 10, 9), member("b", 10, 2)],
    joined: [member("a", 10, 2), member("b", 10, 2), member("c", 10, 2)]
  }
  type Name = keyof typeof views
  const sequences = (length: number): ReadonlyArray<ReadonlyArray<Name>> =>
    length === 0
      ? [[]]
      : sequences(length - 1).flatMap((one) =>
        (Object.keys(views) as ReadonlyArray<Name>).map((name) => [...one, name])
      )
  for (const sequence of sequences(4)) {
    let state = sharing.initial
    let [quietUntil, levelSince, last] = [-Infinity, Infinity, ""]
    sequence.forEach((name, i) => {
      const now = 1000 * i
      const members = views[name]
      state = sharing.observe(
        state,
        { members, session: "a", owned: members[0]!.owned, leaving: [], movable: 0 },
        now,
        settings
      )
      const membership = name === "joined" ? "three" : "two"
      if (membership !== last) quietUntil = now + settings.settle
      if (name === "surplus") levelSince = Infinity
      else if (membership !== last || levelSince === Infinity) levelSince = now
      last = membership
      assert.deepStrictEqual([state.quietUntil, state.levelSince], [quietUntil, levelSince], sequence.join())
    })
  }
})

it("a fleet with a total capacity of one gives its only stream to the member with that capacity", () => {
  const members = [member("a", 1, 0), member("b", 0, 1)]
  assert.deepStrictEqual(plans(members), [undefined, "a"])
})

it("a fleet without capacity or streams is level, but a fleet with a surplus of one stream is not", () => {
  const since = (members: ReadonlyArray<Member>) =>
    sharing.observe(
      sharing.initial,
      { members, session: "a", owned: members[0]!.owned, leaving: [], movable: 0 },
      7,
      settings
    ).levelSince
  assert.strictEqual(since([member("a", 0, 0), member("b", 0, 0)]), 7)
  assert.strictEqual(since([member("a", 10, 3), member("b", 10, 1)]), Infinity)
})

it("a member at its ceiling hands over as soon as the fleet has been level for `settle`", () => {
  const members = [member("c", 64, 2), member("a", 64, 2), member("b", 64, 0)]
  const view = { members, session: "a", owned: 2, leaving: [], movable: 2 }
  const state = { ...sharing.initial, levelSince: 0 }
  assert.isUndefined(sharing.plan(state, view, settings.settle - 1, settings))
  assert.strictEqual(sharing.plan(state, view, settings.settle, settings)?.to.session, "b")
})
