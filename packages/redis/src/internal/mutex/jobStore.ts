/** The jobs of a mutex on Redis: one hash for all of them, read and written by scripts. */
import type { ClaimResult, JobRecord, JobsRecord, JobStore, RunOutcome } from "@effect-simba/core/JobStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { Count } from "../client/codecs.ts"
import { malformed, type Reader, reader } from "../client/decode.ts"
import type { Redis } from "../client/effectRedis.ts"
import { call } from "../client/script.ts"
import * as keys from "./keys.ts"
import * as scripts from "./scripts.ts"

const ClaimReply = Schema.Tuple([
  Schema.Literals(["Claimed", "NotOwner", "Taken", "Running", "Paused", "Early"]),
  Count,
  Count,
  Count
])

const Fields = Schema.Struct({
  at: Count,
  attempt: Schema.optional(Count),
  changed: Schema.optional(Count),
  end: Schema.optional(Count),
  missed: Schema.optional(Count),
  outcome: Schema.optional(Schema.Literals(["success", "failure", "defect", "interrupted", "unstarted"])),
  scheduled: Schema.optional(Count),
  start: Schema.optional(Count),
  success: Schema.optional(Count),
  token: Schema.optional(Count),
  wanted: Schema.optional(Count)
})

const LookReply = Schema.Tuple([Count, Schema.Array(Schema.String)])

const decodeLook = reader("the reply of the look at jobs", LookReply)
const decodeClaim = reader("the reply of the claim of a run", ClaimReply)
const decodeFields = reader("what is known of a job", Fields)

const toRecord = (fields: Readonly<Record<string, string>>) =>
  Exit.map(
    decodeFields(fields),
    ({ at, attempt, changed, end, missed, outcome, scheduled, start, success, token, wanted }): JobRecord => ({
      at,
      schedule: fields["schedule"],
      override: fields["override"],
      former: fields["former"],
      changed,
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

const readLook: Reader<JobsRecord> = (reply) => {
  const decoded = decodeLook(reply)
  if (Exit.isFailure(decoded)) return Exit.failCause(decoded.cause)
  const [now, entries] = decoded.value
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
  for (const [job, fields] of byJob) {
    const record = toRecord(fields)
    if (Exit.isFailure(record)) {
      return Exit.fail(malformed("the reply of the look at jobs", reply, `of ${JSON.stringify(job)}`))
    }
    jobs.set(job, record.value)
  }
  return Exit.succeed<JobsRecord>({ now, isPaused: whole.has("paused"), leaving: whole.get("leaving"), jobs })
}

const readClaim = (reply: unknown) =>
  Exit.map(decodeClaim(reply), ([_tag, now, attempt, wait]): ClaimResult => ({ _tag, now, attempt, wait }))

const readEnd = reader("the reply of the end of a run", Count)
const readSteer = reader("the reply to an order", Schema.Literals(["0", "1"]))

export const make = (redis: Redis["Service"]): JobStore => {
  const look = call(redis, "look at jobs", scripts.lookAtJobs, readLook)
  const claim = call(redis, "claim a run", scripts.claimRun, readClaim)
  const end = call(redis, "end a run", scripts.endRun, readEnd)
  const steer = call(redis, "steer jobs", scripts.steerJobs, readSteer)
  return {
    look: ({ id = "", jobs, mutex }) =>
      look(
        [keys.owner(mutex), keys.jobs(mutex)],
        [
          id,
          ...jobs.flatMap(({ every = "", keep, name, schedule }) => [name, schedule, every, Duration.toMillis(keep)])
        ]
      ),
    claim: (request) =>
      claim([keys.owner(request.mutex), keys.jobs(request.mutex)], [
        request.id,
        request.token,
        request.job,
        request.claim,
        request.mode,
        request.at,
        request.missed,
        request.cause,
        Duration.toMillis(request.minInterval),
        request.attempts
      ]),
    end: ({ claim, job, mutex, outcome }) => end([keys.jobs(mutex)], [job, claim, outcome]),
    steer: (mutex, order) =>
      Effect.map(
        steer([keys.owner(mutex), keys.jobs(mutex)], [
          order._tag,
          "job" in order ? order.job ?? "" : "",
          order._tag === "Reschedule" ? order.schedule ?? "" : ""
        ]),
        (reply) => reply === "1"
      )
  }
}
