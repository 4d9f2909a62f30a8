/** When a process may hand a lease on to its next fiber, and when leases are renewed. */
import { type FencingToken, MutexName } from "@effect-simba/core"
import { assert, it } from "@effect/vitest"
import { Duration } from "effect"
import { HeldLease } from "../../src/internal/mutex/heldLease.ts"
import { settingsOf } from "../../src/internal/mutex/leaseOptions.ts"
import { outage } from "../support/faultyStore.ts"

const at = (millis: number) => ({ monotonic: millis, wall: millis })

const settings = settingsOf({
  ttl: Duration.seconds(10),
  transition: Duration.seconds(6),
  localTurn: Duration.seconds(1)
})

/** A lease that was granted at zero. */
const leaseOf = (token = 100) => {
  const id = "1-aaaaaaaaaaaa:us" as MutexName.LeaseId
  return new HeldLease(MutexName.MutexName.make("m"), id, token as FencingToken.FencingToken, settings, at(0))
}

it("after a reported forced release, a lease is handed on only once a renewal sent after the report has succeeded", () => {
  const lease = leaseOf()
  assert.isTrue(lease.isFresh(at(200)))
  lease.suspect(at(100))
  assert.isFalse(lease.isFresh(at(200)))
  lease.group.extend(at(50))
  assert.isFalse(lease.isFresh(at(200)))
  lease.group.extend(at(150))
  assert.isTrue(lease.isFresh(at(200)))
})

it("after a suspension, a lease is handed on only if more than the margin is left", () => {
  // The deadline is at 15.2 seconds on the wall clock, and the margin is 0.8 seconds
  const isFresh = (wall: number) => leaseOf().isFresh({ monotonic: 1000, wall })
  assert.deepStrictEqual([1000, 14_399, 14_400, 15_100].map(isFresh), [true, true, false, false])
})

it("a lease is not handed on while its renewal is in flight, because the reply may be a loss", () => {
  const lease = leaseOf()
  lease.group.renewing = true
  assert.isFalse(lease.isFresh(at(9500)))
  lease.group.renewing = false
  assert.isTrue(lease.isFresh(at(9500)))
})

it("a retried renewal is not sent early, however long the process's turns are", () => {
  const lease = leaseOf()
  assert.strictEqual(lease.group.lead(1000), 2000)
  lease.group.failure = outage
  assert.strictEqual(lease.group.lead(1000), 0)
})

it("a lease is handed on only if it is certain and has an unused token", () => {
  const fresh = (change: (lease: HeldLease) => void, now = 5000, token = 100) => {
    const lease = leaseOf(token)
    change(lease)
    return lease.isFresh(at(now))
  }
  assert.isTrue(fresh(() => {}))
  assert.isTrue(fresh(() => {}, 9999))
  assert.isFalse(fresh(() => {}, 10_000), "its renewal is due")
  assert.isFalse(fresh(() => {}, 5000, 101), "its grant has one token")
  assert.isFalse(fresh((lease) => lease.grantedFor(1500, 1400)), "its grant is not confirmed")
  assert.isTrue(fresh((lease) => lease.grantedFor(16_000, 15_000)))
  assert.isFalse(fresh((lease) => lease.group.failure = outage), "a renewal failed")
  assert.isFalse(fresh((lease) => lease.dead = true), "its holder is not alive")
  // Each hand-off uses one token of the grant
  let lease = leaseOf(100)
  let heirs = 0
  for (; lease.isFresh(at(1)); heirs++) {
    const heir = leaseOf(lease.token + 1)
    heir.inherit(lease)
    lease = heir
  }
  assert.deepStrictEqual([heirs, lease.token], [99, 199])
})

it("a lease granted by a message is renewed within its period if that is short, and as usual if it is the whole ttl", () => {
  const settings = settingsOf({ ttl: Duration.seconds(14), transition: Duration.seconds(2), localTurn: Duration.zero })
  const granted = (period: number, usable: number) => {
    const mutex = MutexName.MutexName.make("m")
    const id = "1-aaaaaaaaaaaa:us" as MutexName.LeaseId
    const lease = new HeldLease(mutex, id, 100 as FencingToken.FencingToken, settings, { monotonic: 1000, wall: 500 })
    lease.grantedFor(period, usable)
    return lease
  }
  const [short, whole] = [granted(1500, 1400), granted(16_000, 15_000)]
  assert.deepStrictEqual([short.group.nextRenewal, short.endsAt()], [1000 + 1050, 2400])
  assert.deepStrictEqual([whole.group.nextRenewal, whole.endsAt()], [15_000, 16_000])
  assert.deepStrictEqual([short.expiry(), whole.expiry()], ["BackendGone", "Expired"])
  whole.group.failure = outage
  assert.strictEqual(whole.expiry(), "BackendGone")
  whole.dead = short.dead = true
  assert.deepStrictEqual([short.expiry(), whole.expiry()], ["Expired", "Expired"])
  // The remaining time on the server, by the clock that reaches the end first
  assert.strictEqual(whole.serverLeft({ monotonic: 5000, wall: 500 }), 12_000)
  assert.strictEqual(whole.serverLeft({ monotonic: 1000, wall: 6500 }), 10_000)
})

it("renewals may be sent early by an eighth of the ttl, but by at most a second", () => {
  const early = [1000, 4000, 8000, 10_000].map((ttl) =>
    settingsOf({ ttl: Duration.millis(ttl), transition: Duration.seconds(6), localTurn: Duration.zero }).early
  )
  assert.deepStrictEqual(early, [125, 500, 1000, 1000])
})
