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
  cut(usable: number, renewAfter: number) {
    this.shorten(usable, renewAfter)
  }
  get adjusted() {
    return this.adjustedRenewal
  }
  problem(reason: "BackendGone" | "Expired") {
    return this.problemOf(reason)
  }
}

/** An instant on the monotonic clock and on the wall clock, in milliseconds. Both show the same time by default. */
const at = (monotonic: number, wall = monotonic): Instant => ({ monotonic, wall: 1_000_000 + wall })

const begun = 100

const make = (periods: Partial<Periods> = {}) =>
  new TestLease({ usable: 1000, margin: 50, renewAfter: 400, early: 0, maxHold: Infinity, ...periods }, at(begun))

describe("a lease's deadline", () => {
  it("L1: is measured from when the request that granted or renewed the lease was sent", () => {
    const lease = make()
    assert.deepStrictEqual([lease.left(at(begun)), lease.left(at(300)), lease.left(at(1100))], [1000, 800, 0])
    assert.strictEqual(lease.endsAt(), 1100)
    lease.extend(at(500))
    assert.deepStrictEqual([lease.left(at(600)), lease.endsAt()], [900, 1500])
  })

  it("a suspension, or setting the wall clock forward, shortens the lease permanently and makes its renewal due earlier", () => {
    const lease = make()
    assert.strictEqual(lease.nextRenewal, 500)
    assert.strictEqual(lease.left(at(200, 500)), 600)
    assert.deepStrictEqual([lease.endsAt(), lease.nextRenewal], [800, 200])
    // The same suspension is not counted twice
    assert.strictEqual(lease.left(at(200, 500)), 600)
    assert.deepStrictEqual([lease.endsAt(), lease.nextRenewal], [800, 200])
    assert.strictEqual(lease.left(at(300, 600)), 500)
    // After a renewal, the lease is measured from the start of that renewal on both clocks
    lease.extend(at(400, 700))
    assert.deepStrictEqual([lease.left(at(400, 700)), lease.endsAt(), lease.nextRenewal], [1000, 1400, 800])
  })

  it("a wall clock step of up to a millisecond counts as a rounding error and changes nothing", () => {
    const lease = make()
    assert.strictEqual(lease.left(at(200, 201)), 899)
    assert.deepStrictEqual([lease.endsAt(), lease.nextRenewal], [1100, 500])
    assert.strictEqual(lease.left(at(200, 201.5)), 898.5)
    assert.deepStrictEqual([lease.endsAt(), lease.nextRenewal], [1098.5, 498.5])
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
    assert.deepStrictEqual([lease.endsAt(), lease.nextRenewal], [1100, 500])
    lease.extend(at(599))
    assert.deepStrictEqual([lease.endsAt(), lease.nextRenewal], [1599, 999])
    lease.extend(at(600))
    assert.deepStrictEqual([lease.endsAt(), lease.nextRenewal, lease.left(at(700))], [1600, Infinity, 900])
    lease.extend(at(900))
    assert.deepStrictEqual([lease.endsAt(), lease.left(at(1500))], [1600, 100])
    // The limit also applies to the wall clock
    assert.strictEqual(lease.left(at(1550, 1600)), 0)
  })

  it("may be shortened, but is not extended until a request extends it", () => {
    const lease = make()
    lease.cut(600, 200)
    assert.deepStrictEqual([lease.endsAt(), lease.nextRenewal, lease.left(at(400))], [700, 300, 300])
    lease.cut(5000, 5000)
    assert.deepStrictEqual([lease.endsAt(), lease.nextRenewal, lease.left(at(400))], [700, 300, 300])
    // The wall clock is set forward by 100 ms, so the lease ends earlier
    const other = make()
    other.cut(600, 200)
    assert.strictEqual(other.left(at(400, 500)), 200)
    lease.extend(at(450))
    assert.deepStrictEqual([lease.endsAt(), lease.nextRenewal], [1450, 850])
  })

  it("a lease that is handed on is measured from its last renewal, less the time by which it was shortened", () => {
    const lease = make()
    assert.deepStrictEqual(lease.adjusted, at(begun))
    lease.left(at(200, 500))
    assert.deepStrictEqual(lease.adjusted, at(begun - 300, begun))
    const back = make()
    back.left(at(200, -800))
    assert.deepStrictEqual(back.adjusted, at(begun, begun - 1000))
    for (const maxHold of [700, 1500]) {
      const limited = make({ maxHold })
      limited.extend(at(650))
      assert.deepStrictEqual(limited.adjusted, at(650), String(maxHold))
      limited.cut(20, 10)
      const taken = Math.min(1000, begun + maxHold - 650) - 20
      assert.deepStrictEqual(limited.adjusted, at(650 - taken), String(maxHold))
    }
  })
})

describe("a lease's renewal", () => {
  it("is repeated after the shorter of two periods, rounded to whole milliseconds", () => {
    const lease = make()
    lease.paceAt(250.5)
    assert.strictEqual(lease.nextRenewal, 351)
    lease.extend(at(351))
    assert.strictEqual(lease.nextRenewal, 601.5)
    lease.paceAt(9000)
    assert.strictEqual(lease.nextRenewal, 751)
    lease.extend(at(751))
    assert.strictEqual(lease.nextRenewal, 1151)
    // No renewal is scheduled while one is in flight, or if it would not extend the lease
    lease.nextRenewal = Infinity
    lease.paceAt(100)
    assert.strictEqual(lease.nextRenewal, Infinity)
    // The schedule does not delay a lease that must be renewed immediately
    lease.nextRenewal = -Infinity
    lease.paceAt(100)
    assert.strictEqual(lease.nextRenewal, -Infinity)
  })

  it("is repeated before a shorter grant ends, until a reply extends the grant", () => {
    const lease = make()
    lease.cut(300, 225)
    lease.paceAt(350)
    assert.strictEqual(lease.nextRenewal, begun + 225)
    lease.extend(at(200))
    assert.strictEqual(lease.nextRenewal, 550)
    lease.paceAt(360)
    assert.strictEqual(lease.nextRenewal, 560)
  })

  it("is sent earlier in a busy process, by two turns or at most half its period, except after a failure", () => {
    const lease = make()
    assert.deepStrictEqual([0, 10, 99, 100, 101, 5000].map((turn) => lease.lead(turn)), [0, 20, 198, 200, 200, 200])
    lease.failure = {} as StoreError
    assert.strictEqual(lease.lead(10), 0)
    lease.failure = undefined
    // An overdue renewal cannot be sent earlier
    lease.nextRenewal = 50
    assert.strictEqual(lease.lead(10), 0)
  })

  it("makes the loss BackendGone if it is in flight or has failed when the lease ends", () => {
    const lease = make()
    assert.strictEqual(lease.isFailing, false)
    assert.strictEqual(lease.expiry(), "Expired")
    lease.renewing = true
    assert.strictEqual(lease.expiry(), "BackendGone")
    lease.renewing = false
    lease.failure = {} as StoreError
    assert.deepStrictEqual([lease.isFailing, lease.expiry()], [true, "BackendGone"])
  })

  it("adds the reason to BackendGone if the backend refused it", () => {
    const lease = make()
    assert.deepStrictEqual(lease.problem("BackendGone"), {})
    lease.failure = { isRetryable: true, message: "no reply" } as StoreError
    assert.deepStrictEqual(lease.problem("BackendGone"), {})
    lease.failure = { isRetryable: false, message: "WRONGTYPE" } as StoreError
    assert.deepStrictEqual(lease.problem("BackendGone"), { problem: "WRONGTYPE" })
    assert.deepStrictEqual(lease.problem("Expired"), {})
  })
})
