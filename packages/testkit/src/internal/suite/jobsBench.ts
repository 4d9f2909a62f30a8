/** The jobs on a mutex under test. Used by the contracts in `jobs` and `jobOrders`. */
import type { FencingToken } from "@effect-simba/core/FencingToken"
import type { ClaimRequest, JobOrder, JobRecord, ReadJobsRequest } from "@effect-simba/core/JobStore"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Bench, Cases, Party } from "./bench.ts"

export const keep = Duration.hours(1)

type Options = Partial<
  Pick<ClaimRequest, "mode" | "missed" | "cause" | "minInterval" | "attempts" | "changed" | "after">
>

/** The jobs on the mutex under test, with shortcuts for their operations. */
export const jobsOf = ({ mutex, store: { jobs } }: Bench) => {
  const read = (named: ReadJobsRequest["jobs"] = [], id?: Party["id"]) => jobs.read({ mutex, id, jobs: named })
  return {
    read,
    /** Registers a job, and returns the backend's time. */
    know: (name: string) => Effect.map(read([{ name, schedule: "every 1000", keep }]), ({ now }) => now),
    record: (name: string) =>
      Effect.map(read(), ({ jobs }): JobRecord => {
        const record = jobs.get(name)
        assert.isDefined(record, `${name} is not registered`)
        return record!
      }),
    steer: (order: JobOrder) => jobs.steer(mutex, order),
    end: (job: string, claim: string, outcome: "success" | "failure" | "unstarted") =>
      jobs.end({ mutex, job, claim, outcome }),
    claim: (party: Party, token: FencingToken, job: string, claim: string, at: number, options: Options = {}) =>
      Effect.flatMap(read(), ({ jobs: known }) =>
        jobs.claim({
          mutex,
          job,
          claim,
          at,
          id: party.id,
          token,
          mode: "run",
          missed: 0,
          cause: "",
          minInterval: Duration.zero,
          attempts: 1,
          changed: 0,
          after: known.get(job)?.at ?? 0,
          ...options
        }))
  }
}

export const setup = (bench: Cases["bench"]) =>
  Effect.fnUntraced(function*(label: string) {
    const one = yield* bench(label)
    const [a, b] = one.parties(2) as [Party, Party]
    const { token } = yield* a.own
    return { one, a, b, token, ...jobsOf(one) }
  })
