import { LeaseId, MutexName } from "@effect-simba/core/MutexName"
import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { PendingReleases } from "../../src/internal/mutex/pendingReleases.ts"

const mutex = MutexName.make("jobs")
const request = (n: number) => ({
  mutex,
  id: LeaseId.make(`${n}-abcdef012345:4711@host`),
  confirm: Duration.seconds(1),
  lease: Duration.seconds(16)
})

describe("PendingReleases", () => {
  it("finds the last 10,000 uncertain releases, and drops old ones", () => {
    const pending = new PendingReleases()
    const count = 30_000
    for (let n = 0; n < count; n++) {
      pending.settle(request(n), true)
      if (n % 1000 === 0) {
        for (let past = Math.max(0, n - 9999); past <= n; past += 37) assert.isDefined(pending.find(request(past).id))
      }
    }
    assert.isUndefined(pending.find(request(0).id))
  })

  it("forgets a release that succeeded, unless its id was queued", () => {
    const pending = new PendingReleases()
    pending.settle(request(1), false)
    pending.noteQueued(request(2).id)
    pending.settle(request(2), false)
    assert.isUndefined(pending.find(request(1).id))
    assert.strictEqual(pending.find(request(2).id)?.id, request(2).id)
  })
})
