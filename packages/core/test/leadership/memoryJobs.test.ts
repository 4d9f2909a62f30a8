/** When the in-process store forgets job records. `jobScripts.test.ts` compares the Redis scripts with this store. */
import type { LeaseId } from "@effect-simba/core/MutexName"
import { assert, it } from "@effect/vitest"
import { Duration } from "effect"
import { MemoryJobs } from "../../src/internal/leadership/memoryJobs.ts"

const owner = "1-aaaaaaaaaaaa:us" as LeaseId
const read = { mutex: "m" as never, id: owner, jobs: [] }
const job = { name: "a", schedule: "every 1000", every: 1000, keep: Duration.seconds(1) }

it("a request to step down is forgotten together with the last job, unless all jobs are paused", () => {
  for (const isPaused of [false, true]) {
    const jobs = new MemoryJobs()
    jobs.read({ ...read, jobs: [job] }, owner, 5000)
    if (isPaused) jobs.steer({ _tag: "Pause" }, owner, 5000)
    jobs.steer({ _tag: "StepDown" }, owner, 5000)
    assert.strictEqual(jobs.read(read, owner, 6000).leaving, owner)
    assert.strictEqual(jobs.read(read, owner, 6001).leaving, isPaused ? owner : undefined)
    assert.strictEqual(jobs.isEmpty(), !isPaused)
  }
})
