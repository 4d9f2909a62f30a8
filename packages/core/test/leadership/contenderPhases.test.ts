/** What a contender reports about its mutex, based on the last poll or on its own lease. */
import type { Lease } from "@effect-simba/core"
import { LeaseLost } from "@effect-simba/core/SimbaError"
import { assert, describe, it } from "@effect/vitest"
import { Cause, DateTime, Duration, Effect } from "effect"
import { isLossOf, isSame, observe, stateOf, unobserved } from "../../src/internal/leadership/contenderState.ts"

const now = { monotonic: 1000, wall: 50_000 }
const transition = 600

const leaseOf = (timeLeft: number, id = "1-aaaaaaaaaaaa:us") =>
  ({
    id,
    token: 7,
    isHeld: Effect.succeed(timeLeft > 0),
    timeLeft: Effect.succeed(Duration.millis(timeLeft))
  }) as unknown as Lease.Lease

describe("an observation of the owner", () => {
  it("is within the ttl until the transition begins, and in transition until the lease ends", () => {
    const phases = [601, 600, 599, 1, 0, -1].map((left) => {
      const { isInTransition, isInTtl, until } = observe(unobserved, "them", now.monotonic + left, now, transition)
      return [isInTtl, isInTransition, until]
    })
    assert.deepStrictEqual(phases, [
      [true, false, 50_601],
      [false, true, 50_600],
      [false, true, 50_599],
      [false, true, 50_001],
      [false, true, 50_000],
      [false, false, 49_999]
    ])
  })

  it("has no phase or end if nobody owns the mutex, and is within the ttl if the lease never ends", () => {
    for (const end of [Infinity, 1500]) {
      assert.deepStrictEqual(observe(unobserved, undefined, end, now, transition), unobserved)
    }
    const forever = observe(unobserved, "them", Infinity, now, transition)
    assert.deepStrictEqual(forever, { ...unobserved, after: "them", isInTtl: true })
  })

  it("remembers the previous owner, however often the current owner is observed", () => {
    let observed = unobserved
    const pairs = ["a", "a", "b", "b", undefined, undefined, "c"].map((owner) => {
      observed = observe(observed, owner, Infinity, now, transition)
      return [observed.before, observed.after]
    })
    assert.deepStrictEqual(pairs, [
      [undefined, "a"],
      [undefined, "a"],
      ["a", "b"],
      ["a", "b"],
      ["b", undefined],
      ["b", undefined],
      [undefined, "c"]
    ])
  })
})

describe("a contender's state", () => {
  const phases = { transition, margin: 100 }
  const following = observe(observe(unobserved, "a", 2000, now, transition), "b", 2000, now, transition)

  it("follows its own lease while it holds one, with the margin counted as part of the lease", () => {
    for (const [left, isInTtl] of [[501, true], [500, false], [1, false]] as const) {
      const lease = leaseOf(left)
      assert.deepStrictEqual(stateOf(following, lease, true, phases), {
        ...{ _tag: "Leading", lease, before: "b", after: lease.id },
        ...{ isInTtl, isInTransition: !isInTtl }
      })
    }
    // The last poll already showed this lease as the owner
    const lease = leaseOf(700, "b")
    assert.deepInclude(stateOf(following, lease, true, phases), { before: "a", after: "b" })
    assert.deepInclude(stateOf(following, lease, false, phases), { _tag: "Leading" })
  })

  it("follows the last poll while it holds no lease", () => {
    const { until, ...observed } = following
    const expected = { _tag: "Following", ...observed, leader: "b", until: DateTime.makeUnsafe(until!) }
    assert.deepStrictEqual<unknown>(stateOf(following, undefined, true, phases), expected)
    assert.deepStrictEqual<unknown>(stateOf(following, leaseOf(0), true, phases), expected)
    assert.deepStrictEqual<unknown>(stateOf(following, undefined, false, phases), { _tag: "Stopped", ...observed })
    const forever = observe(unobserved, "b", Infinity, now, transition)
    assert.deepInclude(stateOf(forever, undefined, true, phases), { _tag: "Following", until: undefined })
    const { until: _, ...nothing } = unobserved
    assert.deepStrictEqual<unknown>(stateOf(unobserved, undefined, true, phases), { _tag: "Vacant", ...nothing })
  })

  it("counts as changed if its tag, an owner or its phase changes, but not if only a lease's end changes", () => {
    const state = stateOf(following, undefined, true, phases)
    assert.isTrue(isSame(state, { ...state, until: undefined } as typeof state))
    const others = [
      { _tag: "Vacant" },
      { before: "x" },
      { after: "x" },
      { isInTtl: !state.isInTtl },
      { isInTransition: !state.isInTransition }
    ]
    for (const other of others) assert.isFalse(isSame(state, { ...state, ...other } as typeof state))
  })
})

it("distinguishes the loss of its own lease from the loss of another lease and from other failures", () => {
  const lease = leaseOf(1)
  const lossOf = (id: string, token: number = lease.token) =>
    new LeaseLost({ kind: "mutex", resource: "m", id, token, reason: { _tag: "Expired" } } as never)
  assert.isTrue(isLossOf(lease, Cause.fail(lossOf(lease.id))))
  assert.isFalse(isLossOf(lease, Cause.fail(lossOf(lease.id, lease.token - 1))))
  assert.isFalse(isLossOf(lease, Cause.fail(lossOf("2-aaaaaaaaaaaa:us"))))
  assert.isFalse(isLossOf(lease, Cause.fail({ id: lease.id })))
  assert.isFalse(isLossOf(lease, Cause.die(lossOf(lease.id))))
})
