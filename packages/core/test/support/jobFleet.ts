/** Nodes in a fleet with the same jobs, and a record of when each node ran which job. */
import { type Contender, Leadership, Mutex } from "@effect-simba/core"
import { DateTime, Effect, Logger } from "effect"
import * as Clock from "effect/Clock"
import { TestClock } from "effect/testing"
import * as Fleet from "./fleet.ts"

/** Noon UTC on 1 January 1970, in milliseconds. */
export const noon = 12 * 60 * 60 * 1000

export interface Ran {
  readonly node: string
  readonly job: string
  /** The start of the run, in seconds since the fleet was created. */
  readonly at: number
  /** The scheduled instant of the run, in seconds since the fleet was created. */
  readonly scheduledAt: number
  readonly isCatchUp: boolean
  readonly attempt: number
}

type Options = Omit<Leadership.Job<unknown, never>, "name" | "run"> & { readonly name?: string }

export const make = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const begin = clock.currentTimeMillisUnsafe()
  const fleet = yield* Fleet.make
  const ran: Array<Ran> = []
  const warnings: Array<string> = []
  const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
    if (logLevel === "Warn" || logLevel === "Error") warnings.push([message].flat().join(" "))
  })
  const seconds = () => (clock.currentTimeMillisUnsafe() - begin) / 1000

  /** A job that records its runs, and then runs `work`. */
  const job = (
    node: string,
    options: Options,
    work: (run: Leadership.Run) => Effect.Effect<unknown, unknown> = () => Effect.void
  ) => ({
    name: "job",
    ...options,
    run: (run: Leadership.Run) =>
      Effect.suspend(() => {
        const scheduledAt = (DateTime.toEpochMillis(run.scheduledAt) - begin) / 1000
        const { attempt, isCatchUp } = run
        ran.push({ node, job: options.name ?? "job", at: seconds(), scheduledAt, isCatchUp, attempt })
        return work(run)
      })
  })

  const node = Effect.fnUntraced(function*(
    name: string,
    jobs: (name: string) => ReadonlyArray<Leadership.Job<unknown, never>>,
    options: { readonly ahead?: number | (() => number); readonly contender?: Contender.Options } = {}
  ) {
    const ahead = options.ahead ?? 0
    const made = yield* fleet.node(name, {
      ahead: () => (typeof ahead === "function" ? ahead() : ahead) * 1000,
      logger
    })
    const contender = yield* made.here(Mutex.contend("jobs", options.contender))
    yield* made.start(Leadership.runJobs(contender, jobs(name)))
    yield* TestClock.adjust(0)
    return { ...made, contender }
  })

  return {
    job,
    node,
    fleet,
    ran,
    warnings,
    /** Removes all runs from `ran`, and returns them as `node@second`. */
    take: () => ran.splice(0).map(({ at, node }) => `${node}@${at}`)
  }
})
