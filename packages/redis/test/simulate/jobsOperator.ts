/**
 * The operator in job simulations. It pauses and resumes jobs, requests runs, changes schedules, asks leaders to step
 * down, lists the jobs, and sometimes deletes their state.
 */
import { Jobs, Leadership } from "@effect-simba/core"
import type { Simulation } from "@effect-simba/testkit"
import { Effect } from "effect"
import { Redis } from "effect/persistence/Redis"
import { insisting, tools } from "./streamSettings.ts"

/** Other schedules for the jobs. Their times are the multiples of their periods. */
const schedules = [
  Leadership.every("500 millis"),
  Leadership.every("1500 millis"),
  Leadership.every("6 seconds"),
  Leadership.cron("*/3 * * * * *")
]

/** The maximum time from the last fault until operators have resumed everything, in milliseconds. */
export const resumedWithin = 8000

export const operate = (client: Simulation.Client, mutex: string, jobs: ReadonlyArray<string>) => {
  const { note } = client
  const { between, calm, chance, pause } = tools(client)
  const insist = insisting(client)
  const pick = <A>(items: ReadonlyArray<A>) => items[Math.floor(between(0, items.length))]!
  const any = () => pick(jobs)

  const interrupt = Effect.gen(function*() {
    const job = chance(0.3) ? undefined : any()
    yield* Effect.ignore(Jobs.pause(mutex, job))
    yield* pause(200, 5000)
    yield* Effect.ignore(Jobs.resume(mutex, job))
  })

  const reschedule = Effect.gen(function*() {
    const job = any()
    yield* Effect.ignore(Jobs.reschedule(mutex, job, pick(schedules)))
    yield* pause(200, 8000)
    yield* Effect.ignore(Jobs.reschedule(mutex, job, undefined))
  })

  const list = Effect.gen(function*() {
    const { jobs: found, malformed } = yield* Jobs.list(mutex)
    for (const { name, problem } of malformed) note("malformed", { job: name, problem })
    for (const { name } of found) if (!jobs.includes(name)) note("malformed", { job: name, problem: "unknown" })
  })

  const work = () => {
    const which = client.random()
    if (which < 0.3) return interrupt
    if (which < 0.55) return Jobs.run(mutex, any())
    if (which < 0.75) return reschedule
    if (which < 0.85) return Jobs.stepDown(mutex)
    if (which < 0.97) return list
    return Redis.use(({ send }) => send("DEL", `simba:{${mutex}}:jobs`))
  }

  const busy = Effect.suspend(() =>
    client.phase() === "safety"
      ? Effect.andThen(
        pause(300, 3000),
        Effect.suspend(() => Effect.ignore(work()))
      )
      : Effect.never
  )

  /** Undoes everything, including the actions of operators that have died. */
  const resumeAll = insist(Effect.andThen(
    Jobs.resume(mutex),
    Effect.forEach(
      jobs,
      (job) => Effect.andThen(Jobs.resume(mutex, job), Jobs.reschedule(mutex, job, undefined)),
      { discard: true }
    )
  ))

  return Effect.raceFirst(Effect.forever(busy), calm).pipe(
    // A recent request may still be in flight
    Effect.andThen(Effect.sleep("3 seconds")),
    Effect.andThen(resumeAll)
  )
}
