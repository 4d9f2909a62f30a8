/**
 * Stores the fleet's jobs that a mutex coordinates, for `store`. Each mutex has one hash, with fields named
 * `<attribute>:<job>`. The fields without a colon, `paused` and `leaving`, apply to all of the mutex's jobs.
 *
 * Scripts read and write the hash. They also receive the owner key, because only the owner may run a job, store its
 * schedule or be asked to step down.
 */
import type { ClaimResult, JobRecord, JobsRecord, JobStore, RunOutcome } from "@effect-simba/core/JobStore"
import type { MutexName } from "@effect-simba/core/MutexName"
import type { ProtocolError } from "@effect-simba/core/SimbaError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Count } from "../client/codecs.ts"
import type { Redis } from "../client/effectRedis.ts"
import { malformed } from "../client/malformedInput.ts"
import { call } from "../client/script.ts"
import * as keys from "./keys.ts"
import * as scripts from "./scripts.generated.ts"

const Fields = Schema.Struct({
  at: Count,
  attempt: Schema.optional(Count),
  end: Schema.optional(Count),
  missed: Schema.optional(Count),
  outcome: Schema.optional(Schema.Literals(["success", "failure", "defect", "interrupted", "unstarted"])),
  replaced: Schema.optional(Schema.String.check(Schema.isPattern(/^\d{1,16} .+(\n\d{1,16} .+)*$/))),
  scheduled: Schema.optional(Count),
  start: Schema.optional(Count),
  success: Schema.optional(Count),
  token: Schema.optional(Count),
  until: Schema.optional(Count),
  wanted: Schema.optional(Count)
})

const decodeFields = Schema.decodeUnknownResult(Fields)

/** Parses a line in `replaced`: `<ms> <schedule>`. */
const toFormer = (line: string) => {
  const end = line.indexOf(" ")
  return { schedule: line.slice(end + 1), until: Number(line.slice(0, end)) }
}

const toRecord = (fields: Readonly<Record<string, string>>) =>
  Result.map(
    decodeFields(fields),
    ({ at, attempt, end, missed, outcome, replaced, scheduled, start, success, token, wanted }): JobRecord => ({
      at,
      schedule: fields["schedule"],
      override: fields["override"],
      former: replaced === undefined ? [] : replaced.split("\n").map(toFormer),
      isPaused: fields["paused"] !== undefined,
      wanted,
      run: start === undefined || token === undefined || scheduled === undefined ? undefined : {
        id: fields["run"] ?? "",
        claim: fields["claim"] ?? "",
        token,
        scheduledAt: scheduled,
        attempt: attempt ?? 1,
        start,
        end,
        outcome: outcome as RunOutcome | undefined
      },
      success,
      missed: missed ?? 0,
      cause: fields["cause"]
    })
  )

const toRecords = ([now, entries]: typeof scripts.readJobs.reply.Type): JobsRecord => {
  const whole = new Map<string, string>()
  const byJob = new Map<string, Record<string, string>>()
  for (let i = 0; i < entries.length; i += 2) {
    const [field, value] = [entries[i]!, entries[i + 1]!]
    const colon = field.indexOf(":")
    if (colon === -1) {
      whole.set(field, value)
      continue
    }
    const job = field.slice(colon + 1)
    const fields = byJob.get(job) ?? {}
    fields[field.slice(0, colon)] = value
    byJob.set(job, fields)
  }
  const jobs = new Map<string, JobRecord>()
  const malformedJobs = new Map<string, ProtocolError>()
  for (const [job, fields] of byJob) {
    const record = toRecord(fields)
    const where = `the state of the job ${JSON.stringify(job)}`
    if (Result.isSuccess(record)) jobs.set(job, record.success)
    else malformedJobs.set(job, malformed(where, fields, record.failure.message))
  }
  return { now, isPaused: whole.has("paused"), leaving: whole.get("leaving"), jobs, malformed: malformedJobs }
}

const keysOf = (mutex: MutexName) => ({ owner: keys.owner(mutex), jobs: keys.jobs(mutex) })

export const make = (redis: Redis["Service"]): JobStore => {
  const read = call(redis, "read jobs", scripts.readJobs)
  const claim = call(redis, "claim a run", scripts.claimRun)
  const end = call(redis, "end a run", scripts.endRun)
  const steer = call(redis, "steer jobs", scripts.steerJobs)
  return {
    read: ({ id = "", jobs, mutex }) =>
      Effect.map(
        read({
          ...keysOf(mutex),
          id,
          each: jobs.map(({ every, keep, name, schedule }) => ({
            job: name,
            schedule,
            every: every ?? "",
            keep: Duration.toMillis(keep)
          }))
        }),
        toRecords
      ),
    claim: ({ minInterval, mutex, ...request }) =>
      Effect.map(
        claim({ ...keysOf(mutex), ...request, minInterval: Duration.toMillis(minInterval) }),
        ([_tag, now, attempt, wait]): ClaimResult => ({ _tag, now, attempt, wait })
      ),
    end: ({ mutex, ...ended }) => end({ ...keysOf(mutex), ...ended }),
    steer: (mutex, order) => {
      const { job }: { readonly _tag: string; readonly job?: string | undefined } = order
      // In the request, an empty name stands for all jobs
      if (job === "") return Effect.succeed(false)
      const schedule = order._tag === "Reschedule" ? order.schedule ?? "" : ""
      return steer({ ...keysOf(mutex), order: order._tag, job: job ?? "", schedule })
    }
  }
}
