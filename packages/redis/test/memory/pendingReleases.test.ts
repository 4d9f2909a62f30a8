/** A layer's uncertain releases, which it may have to repeat. */
import { LeaseId, MutexName } from "@effect-simba/core/MutexName"
import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { PendingReleases } from "../../src/internal/mutex/pendingReleases.ts"

const mutex = MutexName.make("jobs")
/** An id without its process name, as used in messages. */
const attempt = (n: number) => `${n}-abcdef012345`
const request = (n: number) => ({
  mutex,
  id: LeaseId.make(`${attempt(n)}:4711@host`),
  confirm: Duration.seconds(1),
  lease: Duration.seconds(16)
})

describe("PendingReleases", () => {
  it("keeps only the latest 10,000 uncertain releases", () => {
    const pending = new PendingReleases()
    const count = 30_000
    for (let n = 0; n < count; n++) {
      pending.settle(request(n), true)
      if (n % 1000 === 0) {
        for (let past = Math.max(0, n - 9999); past <= n; past += 37) assert.isDefined(pending.find(attempt(past)))
      }
    }
    assert.isUndefined(pending.find(attempt(0)))
  })

  it("forgets a successful release unless its id was queued before", () => {
    const pending = new PendingReleases()
    pending.settle(request(1), false)
    pending.noteQueued(request(2).id)
    pending.settle(request(2), false)
    assert.isUndefined(pending.find(attempt(1)))
    assert.strictEqual(pending.find(attempt(2))?.id, request(2).id)
  })
})
