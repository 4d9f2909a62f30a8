/** Simulates the plan for jobs, and stores with defects that its checker must find. */
import type { JobRecord, JobStore } from "@effect-simba/core/JobStore"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { RedisMutex } from "@effect-simba/redis"
import { Simulation } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { jobsPlan, program } from "../simulate/jobsPlan.ts"

const clean = (result: Simulation.Result) => assert.deepStrictEqual(result.violations, [], Simulation.report(result))

const seeds = (from: number, count: number) => Array.from({ length: count }, (_, index) => from + index)

/** The production store with one defect. */
const mistaken = (wrong: (jobs: JobStore) => Partial<JobStore>) =>
  Layer.effect(
    MutexStore.MutexStore,
    Effect.map(
      MutexStore.MutexStore,
      (store) => MutexStore.MutexStore.of({ ...store, jobs: { ...store.jobs, ...wrong(store.jobs) } })
    )
  ).pipe(Layer.provide(RedisMutex.layerStore))

/** Returns the first violation found with a few seeds. */
const violation = (store: ReturnType<typeof mistaken>, isOperated = false) =>
  Effect.gen(function*() {
    for (const seed of seeds(1, 20)) {
      const { violations } = yield* Simulation.run(jobsPlan(seed, { isOperated, program: program(store, isOperated) }))
      if (violations[0] !== undefined) return violations[0].message
    }
    return "none"
  })

describe("job simulations", () => {
  it.effect("violate no rules under any fault, over 4 seeds", () =>
    Effect.forEach(seeds(1, 4), (seed) => Effect.map(Simulation.run(jobsPlan(seed)), clean), { discard: true }))

  it.effect(
    "violate no rules under any fault, over 150 seeds",
    () => Effect.forEach(seeds(5, 150), (seed) => Effect.map(Simulation.run(jobsPlan(seed)), clean), { discard: true }),
    {
      tags: ["long"]
    }
  )

  it.effect("violate no rules after a failover that loses the end of one run and the claim of the next", () =>
    Effect.forEach([100309, 100776], (seed) => Effect.map(Simulation.run(jobsPlan(seed)), clean), { discard: true }))

  it.effect("reveal a store that does not report missed runs", () => {
    const silent = mistaken((jobs) => ({ claim: (request) => jobs.claim({ ...request, missed: 0 }) }))
    return Effect.map(violation(silent), (found) => assert.include(found, "missed"))
  })

  it.effect("reveal a store whose first runs after the last fault start late", () => {
    const slow = (client: Simulation.Client) =>
      mistaken((jobs) => ({
        claim: (request) =>
          Effect.suspend(() => Effect.delay(jobs.claim(request), client.phase() === "safety" ? 0 : "20 seconds"))
      }))
    return Effect.gen(function*() {
      const { violations } = yield* Simulation.run(
        jobsPlan(1, { enabled: [], isOperated: false, program: (client) => program(slow(client))(client) })
      )
      assert.include(violations[0]?.message, "does not run again within 15700 ms after the last fault")
    })
  })

  /** A store that returns job records with these wrong values to leaders. */
  const misread = (wrong: Partial<JobRecord>) =>
    mistaken((jobs) => ({
      read: (request) =>
        Effect.map(jobs.read(request), (observed) => ({
          ...observed,
          jobs: new Map([...observed.jobs].map(([name, record]) => [name, { ...record, ...wrong }]))
        }))
    }))

  it.effect("reveal a store that hides runs requested by operators", () =>
    Effect.map(
      violation(misread({ wanted: undefined }), true),
      (found) => assert.match(found, /a requested run of \w+ has not started/)
    ))

  it.effect("reveal a store that hides schedules set by operators", () =>
    Effect.map(
      violation(misread({ override: undefined }), true),
      (found) => assert.match(found, /which is not a scheduled time|missed runs instead of/)
    ))

  it.effect("reveal a store that lets a job run twice for one scheduled time", () => {
    const generous = mistaken((jobs) => ({
      read: (request) =>
        Effect.map(jobs.read(request), (observed) => ({
          ...observed,
          jobs: new Map([...observed.jobs].map(([name, record]) => [name, { ...record, at: record.at - 1000 }]))
        })),
      claim: (request) =>
        Effect.map(
          jobs.claim(request),
          (result) => result._tag === "Taken" ? { ...result, _tag: "Claimed" as const, attempt: 1 } : result
        )
    }))
    return Effect.map(violation(generous), (found) => assert.match(found, /starts twice/))
  })
})
