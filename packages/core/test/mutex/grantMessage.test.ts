/** How old a grant by message is assumed to be after clocks have been set. */
import { FencingToken, MutexName } from "@effect-simba/core"
import { assert, it } from "@effect/vitest"
import { Duration } from "effect"
import type { Refused } from "../../src/internal/mutex/attempt.ts"
import { leaseOfGrant } from "../../src/internal/mutex/grantMessage.ts"
import { settingsOf } from "../../src/internal/mutex/leaseOptions.ts"
import type { LocalWaiter } from "../../src/internal/mutex/localWaiter.ts"

it("a grant starts no later than its message arrives, even if the server's and the waiter's clocks were set forward", () => {
  const mutex = MutexName.MutexName.make("m")
  const settings = settingsOf({
    ttl: Duration.seconds(10),
    transition: Duration.seconds(6),
    localTurn: Duration.zero
  })
  const waiter = { attempt: { mutex, settings } } as LocalWaiter
  const refused = { sent: { monotonic: 0, wall: 0 }, stamp: { micros: 0, token: 400 } } as Refused
  const forward = 60_000
  const grant = { token: FencingToken.FencingToken.make(500), micros: forward * 1000, millis: 16_000 }
  const id = "1-aaaaaaaaaaaa:us" as MutexName.LeaseId
  const lease = leaseOfGrant(grant, refused, waiter, { id, now: { monotonic: 100, wall: 100 + forward } })
  assert.isDefined(lease)
  // The waiter's wall clock has been set back to its old time, so only the monotonic clock limits the lease
  assert.isAtMost(lease!.left({ monotonic: 100, wall: 100 }), 16_000)
})

it("a grant is only a hint if the wall clock was set back by more than a rounding error since the last request", () => {
  const mutex = MutexName.MutexName.make("m")
  const settings = settingsOf({ ttl: Duration.seconds(10), transition: Duration.seconds(6), localTurn: Duration.zero })
  const waiter = { attempt: { mutex, settings } } as LocalWaiter
  const refused = { sent: { monotonic: 1000, wall: 500_000 }, stamp: { micros: 0, token: 400 } } as Refused
  const grant = { token: FencingToken.FencingToken.make(500), micros: 1000, millis: 16_000 }
  const id = "1-aaaaaaaaaaaa:us" as MutexName.LeaseId
  const isBelieved = [90, 89, 100, 50, -1000].map((wall) =>
    leaseOfGrant(grant, refused, waiter, { id, now: { monotonic: 1100, wall: 500_000 + wall } }) !== undefined
  )
  assert.deepStrictEqual(isBelieved, [true, false, true, false, false])
})
