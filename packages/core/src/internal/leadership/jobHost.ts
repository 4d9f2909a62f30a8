/**
 * What scheduled jobs need from their contender beyond its public interface. `contender` registers a host. `jobRunner`
 * looks up the host of the contender that users pass, and passes it on to `jobRun` and `clockCheck`.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { JobStore } from "../../JobStore.ts"
import type { Lease } from "../../Lease.ts"
import type { MutexStore } from "../../MutexStore.ts"
import type { InvalidConfig } from "../../SimbaError.ts"
import { refuse } from "../optionChecks.ts"

interface JobRunner {
  /** Whether the runner was interrupted. Its runs may still be ending. */
  isEnding: boolean
  readonly ended: Deferred.Deferred<void>
}

export interface JobHost {
  readonly store: Pick<MutexStore["Service"], "owner"> & { readonly jobs: Omit<JobStore, "steer"> }
  /** The runners of this contender's jobs, by job name. */
  readonly jobs: Map<string, JobRunner>
  /** The number of claims so far. Successive runners under one lease must not reuse claim ids. */
  claims: number
  /**
   * Whether the contender leads under this lease. If so, a run may be claimed; `startRun` checks again after the claim.
   */
  readonly mayStart: (lease: Lease) => boolean
  /**
   * Counts a run under this lease until the returned function is called. Returns undefined if no run may start, because
   * the lease or its leadership has ended or is about to end. The caller must start the run in the same step.
   */
  readonly startRun: (lease: Lease) => (() => void) | undefined
  /**
   * Ends the leadership under this lease once its runs have ended or `drainTimeout` has passed, and contends again
   * after a pause.
   */
  readonly resign: (lease: Lease) => void
}

const hosts = new WeakMap<object, JobHost>()

export const register = (contender: object, host: JobHost): void => void hosts.set(contender, host)

/** Finds a contender's host. The contender may be wrapped in an object that inherits from it. */
export const jobHost = (contender: object): JobHost => {
  for (let object: object | null = contender; object !== null; object = Object.getPrototypeOf(object)) {
    const host = hosts.get(object)
    if (host !== undefined) return host
  }
  throw new TypeError("Jobs need a contender from Mutex.contend, or an object that inherits from one")
}

/**
 * Reserves the names of the jobs while they run. Two runners of one job would each mistake the other's runs for their
 * own, so the second runner fails or, if the first one is ending, waits for it. `running` receives a function to call
 * on interruption.
 */
export const withNames = <A, E, R>(
  { jobs }: Pick<JobHost, "jobs">,
  names: ReadonlyArray<string>,
  running: (interrupted: () => void) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | InvalidConfig, R> =>
  Effect.uninterruptibleMask((restore) => {
    const runner: JobRunner = { isEnding: false, ended: Deferred.makeUnsafe() }
    const reserve: Effect.Effect<void, InvalidConfig> = Effect.suspend(() => {
      const known = names.find((name) => jobs.has(name))
      if (known === undefined) {
        // Reserve in the same step: after a yield, another runner may have reserved them
        names.forEach((name) => jobs.set(name, runner))
        return Effect.void
      }
      const { ended, isEnding } = jobs.get(known)!
      return isEnding
        ? Effect.andThen(restore(Deferred.await(ended)), reserve)
        : refuse("jobs", `the contender already runs a job named ${JSON.stringify(known)}`)
    })
    return Effect.andThen(
      reserve,
      Effect.ensuring(
        restore(running(() => runner.isEnding = true)),
        Effect.sync(() => {
          names.forEach((name) => jobs.delete(name))
          Deferred.doneUnsafe(runner.ended, Exit.void)
        })
      )
    )
  })
