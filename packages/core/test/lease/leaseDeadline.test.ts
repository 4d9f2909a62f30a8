/** When a lease ends, which depends on two clocks, and when it is renewed. */
import { assert, describe, it } from "@effect/vitest"
import type { Instant } from "../../src/internal/lease/instant.ts"
import { type Periods, TrackedLease } from "../../src/internal/lease/leaseDeadline.ts"
import type { StoreError } from "../../src/SimbaError.ts"

class TestLease extends TrackedLease<Periods> {
  override isOpen() {
    return true
  }
  override get annotations() {
    return {}
  }
  problem(reason: "BackendGone" | "Expired") {
    return this.problemOf(reason)
  }
}

/** An instant on the monotonic clock and on the wall clock, in milliseconds. Both show the same time by default. */
const at = (monotonic: number, wall = monotonic): Instant => ({ monotonic, wall: 1_000_000 + wall })

const begun = 100

const make = (periods: Partial<Periods> = {}) =>
  new TestLease({
    usable: 1000,
    margin: 50,
    renewAfter: 400,
    early: 0,
    maxHold: Infinity,
    isGroupable: true,
    ...periods
  }, at(begun))

describe("a lease's deadline", () => {
  it("L1: is measured from when the request that granted or renewed the lease was sent", () => {
    const lease = make()
    assert.deepStrictEqual([lease.left(at(begun)), lease.left(at(300)), lease.left(at(1100))], [1000, 800, 0])
    assert.strictEqual(lease.endsAt(), 1100)
    lease.group.extend(at(500))
    assert.deepStrictEqual([lease.left(at(600)), lease.endsAt()], [900, 1500])
  })

  it("a suspension, or setting the wall clock forward, shortens the lease permanently and makes its renewal due earlier", () => {
    const lease = make()
    assert.strictEqual(lease.group.nextRenewal, 500)
    assert.strictEqual(lease.left(at(200, 500)), 600)
    assert.deepStrictEqual([lease.endsAt(), lease.group.nextRenewal], [800, 200])
    // The same suspension is not counted twice
    assert.strictEqual(lease.left(at(200, 500)), 600)
    assert.deepStrictEqual([lease.endsAt(), lease.group.nextRenewal], [800, 200])
    assert.strictEqual(lease.left(at(300, 600)), 500)
    // After a renewal, the lease is measured from the start of that renewal on both clocks
    lease.group.extend(at(400, 700))
    assert.deepStrictEqual([lease.left(at(400, 700)), lease.endsAt(), lease.group.nextRenewal], [1000, 1400, 800])
  })

  it("a wall clock step of up to a millisecond counts as a rounding error and changes nothing", () => {
    const lease = make()
    assert.strictEqual(lease.left(at(200, 201)), 899)
    assert.deepStrictEqual([lease.endsAt(), lease.group.nextRenewal], [1100, 500])
    assert.strictEqual(lease.left(at(200, 201.5)), 898.5)
    assert.deepStrictEqual([lease.endsAt(), lease.group.nextRenewal], [1098.5, 498.5])
  })

  it("setting the wall clock back does not extend the lease, and a later suspension still shortens it", () => {
    const lease = make()
    assert.strictEqual(lease.left(at(200, -5000)), 900)
    assert.strictEqual(lease.endsAt(), 1100)
    // 100 ms later on the monotonic clock, and 400 ms later on the wall clock
    assert.strictEqual(lease.left(at(300, -4600)), 500)
    assert.strictEqual(lease.endsAt(), 800)
  })

  it("a lease is never held for longer than maxHold, and is not renewed if maxHold prevents an extension", () => {
    const lease = make({ maxHold: 1500 })
    assert.deepStrictEqual([lease.endsAt(), lease.group.nextRenewal], [1100, 500])
    lease.group.extend(at(599))
    assert.deepStrictEqual([lease.endsAt(), lease.group.nextRenewal], [1599, 999])
    lease.group.extend(at(600))
    assert.deepStrictEqual([lease.endsAt(), lease.group.nextRenewal, lease.left(at(700))], [1600, Infinity, 900])
    lease.group.extend(at(900))
    assert.deepStrictEqual([lease.endsAt(), lease.left(at(1500))], [1600, 100])
    // The limit also applies to the wall clock
    assert.strictEqual(lease.left(at(1550, 1600)), 0)
  })

  it("may be shortened, but is not extended until a request extends it", () => {
    const lease = make()
    lease.group.shorten(600, 200)
    assert.deepStrictEqual([lease.endsAt(), lease.group.nextRenewal, lease.left(at(400))], [700, 300, 300])
    lease.group.shorten(5000, 5000)
    assert.deepStrictEqual([lease.endsAt(), lease.group.nextRenewal, lease.left(at(400))], [700, 300, 300])
    // The wall clock is set forward by 100 ms, so the lease ends earlier
    const other = make()
    other.group.shorten(600, 200)
    assert.strictEqual(other.left(at(400, 500)), 200)
    lease.group.extend(at(450))
    assert.deepStrictEqual([lease.endsAt(), lease.group.nextRenewal], [1450, 850])
  })

  it("a lease that is handed on is measured from its last renewal, less the time by which it was shortened", () => {
    const lease = make()
    assert.deepStrictEqual(lease.group.adjustedRenewal, at(begun))
    lease.left(at(200, 500))
    assert.deepStrictEqual(lease.group.adjustedRenewal, at(begun - 300, begun))
    const back = make()
    back.left(at(200, -800))
    assert.deepStrictEqual(back.group.adjustedRenewal, at(begun, begun - 1000))
    for (const maxHold of [700, 1500]) {
      const limited = make({ maxHold })
      limited.group.extend(at(650))
      assert.deepStrictEqual(limited.group.adjustedRenewal, at(650), String(maxHold))
      limited.group.shorten(20, 10)
      const taken = Math.min(1000, begun + maxHold - 650) - 20
      assert.deepStrictEqual(limited.group.adjustedRenewal, at(650 - taken), String(maxHold))
    }
  })
})

describe("a lease's renewal", () => {
  it("is repeated after the shorter of two periods, rounded to whole milliseconds", () => {
    const lease = make()
    lease.group.paceAt(250.5)
    assert.strictEqual(lease.group.nextRenewal, 351)
    lease.group.extend(at(351))
    assert.strictEqual(lease.group.nextRenewal, 601.5)
    lease.group.paceAt(9000)
    assert.strictEqual(lease.group.nextRenewal, 751)
    lease.group.extend(at(751))
    assert.strictEqual(lease.group.nextRenewal, 1151)
    // No renewal is scheduled while one is in flight, or if it would not extend the lease
    lease.group.nextRenewal = Infinity
    lease.group.paceAt(100)
    assert.strictEqual(lease.group.nextRenewal, Infinity)
    // The schedule does not delay a lease that must be renewed immediately
    lease.group.nextRenewal = -Infinity
    lease.group.paceAt(100)
    assert.strictEqual(lease.group.nextRenewal, -Infinity)
  })

  it("is repeated before a shorter grant ends, until a reply extends the grant", () => {
    const lease = make()
    lease.group.shorten(300, 225)
    lease.group.paceAt(350)
    assert.strictEqual(lease.group.nextRenewal, begun + 225)
    lease.group.extend(at(200))
    assert.strictEqual(lease.group.nextRenewal, 550)
    lease.group.paceAt(360)
    assert.strictEqual(lease.group.nextRenewal, 560)
  })

  it("is sent earlier in a busy process, by two turns or at most half its period, except after a failure", () => {
    const lease = make()
    assert.deepStrictEqual([0, 10, 99, 100, 101, 5000].map((turn) => lease.group.lead(turn)), [
      0,
      20,
      198,
      200,
      200,
      200
    ])
    lease.group.failure = {} as StoreError
    assert.strictEqual(lease.group.lead(10), 0)
    lease.group.failure = undefined
    // An overdue renewal cannot be sent earlier
    lease.group.nextRenewal = 50
    assert.strictEqual(lease.group.lead(10), 0)
  })

  it("makes the loss BackendGone if it is in flight or has failed when the lease ends", () => {
    const lease = make()
    assert.strictEqual(lease.group.isFailing, false)
    assert.strictEqual(lease.expiry(), "Expired")
    lease.group.renewing = true
    assert.strictEqual(lease.expiry(), "BackendGone")
    lease.group.renewing = false
    lease.group.failure = {} as StoreError
    assert.deepStrictEqual([lease.group.isFailing, lease.expiry()], [true, "BackendGone"])
  })

  it("adds the reason to BackendGone if the backend refused it", () => {
    const lease = make()
    assert.deepStrictEqual(lease.problem("BackendGone"), {})
    lease.group.failure = { isRetryable: true, message: "no reply" } as StoreError
    assert.deepStrictEqual(lease.problem("BackendGone"), {})
    lease.group.failure = { isRetryable: false, message: "WRONGTYPE" } as StoreError
    assert.deepStrictEqual(lease.problem("BackendGone"), { problem: "WRONGTYPE" })
    assert.deepStrictEqual(lease.problem("Expired"), {})
  })
})
