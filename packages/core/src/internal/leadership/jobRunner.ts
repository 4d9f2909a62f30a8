/**
 * Runs a fleet's jobs while its contender leads. Started by `Leadership`.
 *
 * One loop serves all of a contender's jobs: it reads the state of the fleet, decides what to do with each job
 * (`jobPlan`), and sleeps until the next scheduled time. All scheduled times follow the backend's clock, so the nodes'
 * clocks do not affect the schedule. Nevertheless, a leader resigns if its clock is far off (`clockCheck`).
 */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import type { Contender } from "../../Contender.ts"
import type { JobRecord, JobsRecord, RunOutcome } from "../../JobStore.ts"
import type { Job } from "../../Leadership.ts"
import type { Lease } from "../../Lease.ts"
import type { InvalidConfig, StoreError } from "../../SimbaError.ts"
import { type Instant, instant } from "../lease/instant.ts"
import { endlessRetry } from "../lease/storeRetries.ts"
import * as log from "../log.ts"
import * as clockCheck from "./clockCheck.ts"
import { jobHost, withNames } from "./jobHost.ts"
import * as jobMetrics from "./jobMetrics.ts"
import { type Cause, type Decision, inForce, plan } from "./jobPlan.ts"
import * as jobRun from "./jobRun.ts"
import * as jobSchedule from "./jobSchedule.ts"
import { type JobSpec, keepOf } from "./jobSpec.ts"
import * as malformedJobs from "./malformedJobs.ts"

/** How often a leader reads the state of its jobs, including operators' requests. */
const readIntervalMillis = 5000

/** The pause after the reply to a claim was `NotOwner`, `Running` or `Paused`. Claiming again sooner would not help. */
const refusedMillis = 1000

/** Maximum number of claims whose outcomes a leader remembers. */
const mostRemembered = 1000

export interface Prepared<R> {
  readonly spec: JobSpec
  readonly run: Job<unknown, R>["run"]
}

/** A reply, and when its request was sent. */
interface Read extends JobsRecord {
  readonly sent: Instant
}

type Claiming = Exclude<Decision, { _tag: "Wait" }>

/** What one leadership knows about one job. */
interface Tracked<R> extends Prepared<R> {
  record: JobRecord | undefined
  isBusy: boolean
  /** The number of the last read that began before the job's last run or claim ended. That read may lack the end. */
  outdated: number
  /** When this leadership became able to run the job, by the backend's clock. */
  free: number
  /** Consecutive failed requests, and when the next one may be sent, in monotonic milliseconds. */
  failures: number
  notBefore: number
  /** The requested claim, until it is refused or takes effect. */
  claim: { readonly of: string; readonly id: string; readonly decision: Claiming } | undefined
}

export const run = <R>(
  contender: Contender,
  jobs: ReadonlyArray<Prepared<R>>
): Effect.Effect<never, InvalidConfig, R> =>
  Effect.suspend(() => {
    const host = jobHost(contender)
    const checkClock = clockCheck.make(host, jobs.map(({ spec }) => spec.instants))
    const named = (now: number) =>
      jobs.map(({ spec }) => ({
        name: spec.name,
        schedule: spec.instants.text,
        every: spec.instants.everyMillis,
        keep: keepOf(spec, now)
      }))
    const readAll = (lease?: Lease): Effect.Effect<Read, StoreError> =>
      Clock.clockWith((clock) => {
        const sent = instant(clock)
        const request = { mutex: contender.mutex, id: lease?.id, jobs: named(sent.wall) }
        return Effect.map(host.store.jobs.read(request), (record) => ({ ...record, sent }))
      })

    /**
     * Registers the jobs even if this node does not lead: a new job's scheduled times begin at its registration, and
     * the backend forgets jobs that are not registered again.
     */
    const introduce = Effect.retry(
      Effect.tapError(readAll(), (error) => log.warning(`Cannot register the jobs: ${error.message}`)),
      endlessRetry
    )

    const lead = (lease: Lease) =>
      Effect.scoped(Effect.gen(function*() {
        const clock = yield* Clock.Clock
        const began = instant(clock).monotonic
        let wake = Deferred.makeUnsafe<void>()
        const notify = () => void Deferred.doneUnsafe(wake, Exit.void)

        let view = yield* Effect.retry(
          Effect.tapError(readAll(lease), (error) => log.warning(`Cannot read the jobs: ${error.message}`)),
          endlessRetry
        ).pipe(Effect.orDie)
        let readAt = instant(clock).monotonic
        let isStale = false
        let reads = 1
        let readFailures = 0
        /** An estimate of the backend's time. It is never ahead, unless the clocks run at different rates. */
        const backendTime = () => Math.floor(view.now + instant(clock).monotonic - readAt)
        // Reads may have failed since the leadership began
        const gained = view.now - (view.sent.monotonic - began)
        const tracked = jobs.map((job): Tracked<R> => ({
          ...job,
          record: undefined,
          isBusy: false,
          outdated: 0,
          free: gained,
          failures: 0,
          notBefore: 0,
          claim: undefined
        }))
        /**
         * The outcomes of this leadership's claims; `unstarted` until the run has ended. The backend may lack an
         * outcome that a failover has lost.
         */
        const over = new Map<string, RunOutcome>()
        const setOver = (claim: string, outcome: RunOutcome) => {
          // Move to the end: the outcome of a long run is needed until it is recorded
          over.delete(claim)
          over.set(claim, outcome)
          if (over.size > mostRemembered) over.delete(over.keys().next().value!)
        }
        // A claim without a reply has not started its run
        yield* Effect.addFinalizer(() =>
          Effect.forEach(
            tracked,
            (job) => job.claim === undefined ? Effect.void : note(job, job.claim.id, "unstarted"),
            { concurrency: "unbounded", discard: true }
          )
        )
        // Created last and thus closed first: closing interrupts the runs and waits for them
        const fibers = yield* FiberSet.make()

        const reportMalformed = malformedJobs.reporter()
        const adopt = Effect.fnUntraced(function*(latest: Read, number: number) {
          view = latest
          readAt = instant(clock).monotonic
          for (const job of tracked) {
            const record = latest.jobs.get(job.spec.name)
            if (!job.isBusy && number > job.outdated) job.record = record
            yield* jobMetrics.note(contender.mutex, job.spec.name, record)
          }
          yield* reportMalformed(latest.malformed)
        })

        /** The schedules from the backend's records. Each is parsed once. */
        const texts = new Map<string | undefined, jobSchedule.Instants | undefined>()
        const read = Effect.fnUntraced(function*(text: string | undefined) {
          if (text === undefined || texts.has(text)) return
          const parsed = yield* Effect.exit(jobSchedule.parse(text))
          if (Exit.isFailure(parsed)) {
            yield* log.warning(`Cannot read the schedule "${text}"; it is ignored`, parsed.cause)
          }
          texts.set(text, Exit.isSuccess(parsed) ? parsed.value : undefined)
        })
        const nextOf = ({ spec }: Tracked<R>, record: JobRecord) => {
          const present = (texts.get(record.override) ?? spec.instants).next
          const former = record.former.flatMap(({ schedule, until }) => {
            const instants = texts.get(schedule)
            return instants === undefined ? [] : [{ next: instants.next, until }]
          })
          return inForce(present, former)
        }

        const claimId = (job: Tracked<R>, decision: Claiming) => {
          const attempt = decision._tag === "Run" ? `${decision.mode}/${decision.attempt}` : "miss"
          const of = `${attempt}/${decision.at}`
          if (job.claim?.of !== of) {
            job.claim = { of, id: `${lease.id}#${++host.claims}`, decision }
            setOver(job.claim.id, "unstarted")
          }
          return job.claim.id
        }

        /**
         * Suspends decisions about the job while the effect runs. A read that began before the effect ended may lack
         * the effect's result. Such a read is ignored, and another follows immediately.
         */
        const busy = (job: Tracked<R>) => <A, E, RE>(effect: Effect.Effect<A, E, RE>) => {
          job.isBusy = true
          return Effect.ensuring(
            effect,
            Effect.sync(() => {
              job.isBusy = false
              job.record = undefined
              job.outdated = reads
              isStale = true
              notify()
            })
          )
        }

        const note = (job: Tracked<R>, claim: string, outcome: RunOutcome) =>
          Effect.suspend(() => {
            setOver(claim, outcome)
            return jobRun.noteEnd(host, { mutex: contender.mutex, job: job.spec.name, claim, outcome })
          })

        const perform = (job: Tracked<R>, decision: Claiming) =>
          Effect.gen(function*() {
            const { spec } = job
            const mode = decision._tag === "Miss" ? "miss" : decision.mode
            const reply = yield* Effect.exit(host.store.jobs.claim({
              mutex: contender.mutex,
              job: spec.name,
              id: lease.id,
              token: lease.token,
              claim: claimId(job, decision),
              mode,
              at: decision.at,
              after: job.record?.at ?? 0,
              missed: decision.missed,
              cause: decision.cause,
              minInterval: Duration.millis(spec.minInterval),
              attempts: spec.attempts,
              changed: job.record?.former.at(-1)?.until ?? 0
            }))
            if (Exit.isFailure(reply)) {
              job.notBefore = instant(clock).monotonic + pauseAfter(++job.failures)
              return yield* log.warning(`Cannot claim a run of "${spec.name}"; retrying:`, log.why(reply.cause))
            }
            const { attempt, _tag, now, wait } = reply.value
            job.failures = 0
            if (_tag !== "Claimed") {
              job.claim = undefined
              job.notBefore = instant(clock).monotonic +
                (_tag === "Early" ? Math.min(wait, readIntervalMillis) : _tag === "Taken" ? 1 : refusedMillis)
              return
            }
            if (decision.missed > 0) yield* reportMissed(spec.name, decision)
            if (decision._tag === "Miss") return void (job.claim = undefined)
            const { id } = job.claim!
            yield* jobRun.execute({
              host,
              lease,
              spec,
              run: job.run,
              mutex: contender.mutex,
              note: (outcome) => note(job, id, outcome),
              taken: () => {
                job.claim = undefined
              },
              scheduledAt: decision.at,
              isCatchUp: decision.isCatchUp,
              attempt,
              start: now,
              // From this scheduled time to the next one
              periodMillis: jobSchedule.periodAt(nextOf(job, job.record!), decision.at - 1)
            })
            job.free = backendTime()
          }).pipe(
            busy(job),
            Effect.annotateLogs({ job: job.spec.name, token: lease.token })
          )

        const reportMissed = (name: string, { cause, missed }: { readonly cause: Cause; readonly missed: number }) =>
          Effect.andThen(
            jobMetrics.countMissed(contender.mutex, name, cause, missed),
            log.warning(`"${name}" missed ${missed} run(s): ${causes[cause]}`)
          )

        yield* adopt(view, reads)
        yield* checkClock(lease, clock, view.sent.wall, view.now)
        for (const { record, spec } of tracked) {
          if (record?.run === undefined || record.run.end !== undefined) continue
          const instant = DateTime.formatIso(DateTime.makeUnsafe(record.run.scheduledAt))
          yield* log.warning(
            `Run of "${spec.name}" for ${instant} has no recorded end: its leader died or is suspended`
          )
        }
        while (true) {
          wake = Deferred.makeUnsafe()
          if (isStale || instant(clock).monotonic - readAt >= readIntervalMillis) {
            isStale = false
            const number = ++reads
            const latest = yield* Effect.exit(readAll(lease))
            if (Exit.isSuccess(latest)) {
              yield* adopt(latest.value, number)
              yield* checkClock(lease, clock, view.sent.wall, view.now)
              readFailures = 0
            } else {
              isStale = true
              readFailures++
              yield* log.warning("Cannot read the jobs; retrying:", log.why(latest.cause))
            }
          }
          // An operator asked this leader to step down
          if (view.leaving === lease.id) host.resign(lease)
          const now = backendTime()
          let until = now + pauseAfter(readFailures)
          for (const job of tracked) {
            if (job.isBusy || job.record === undefined) continue
            yield* Effect.forEach([job.record.override, ...job.record.former.map(({ schedule }) => schedule)], read)
            const pause = job.notBefore - instant(clock).monotonic
            if (pause > 0) {
              until = Math.min(until, now + pause)
              continue
            }
            const isPaused = view.isPaused || job.record.isPaused
            const leader = { gained, free: job.free, token: lease.token }
            // The claim was executed but its reply was lost: repeating the request returns the same reply
            const isClaimed = job.claim !== undefined && job.record.run?.claim === job.claim.id
            // The runs are recorded as missed, but the reply was lost
            if (job.claim?.decision._tag === "Miss" && job.claim.decision.at === job.record.at) {
              yield* Effect.annotateLogs(reportMissed(job.spec.name, job.claim.decision), { job: job.spec.name })
              job.claim = undefined
            }
            // The run is recorded as running, but this leader does not run it: its end was lost, or a late copy of its
            // claim was executed
            const { run } = job.record
            if (!isClaimed && run?.id === lease.id && run.end === undefined) {
              // Sends the end now and, if that fails, again after a pause
              job.notBefore = instant(clock).monotonic + pauseAfter(++job.failures)
              yield* FiberSet.run(fibers, busy(job)(note(job, run.claim, over.get(run.claim) ?? "interrupted")))
              continue
            }
            const decision = isClaimed
              ? job.claim!.decision
              : plan(job.spec, nextOf(job, job.record), job.record, isPaused, leader, now)
            if (decision._tag === "Wait") until = Math.min(until, decision.until)
            else if (host.mayStart(lease)) {
              yield* FiberSet.run(fibers, perform(job, decision))
            }
          }
          yield* Effect.timeoutOption(Deferred.await(wake), Math.max(1, until - now))
        }
      }))

    return withNames(host, jobs.map(({ spec }) => spec.name), (interrupted) =>
      Effect.raceFirst(
        Effect.onInterrupt(
          Effect.forever(Effect.andThen(introduce, Effect.sleep("1 day"))) as Effect.Effect<never>,
          () => Effect.sync(interrupted)
        ),
        contender.whileLeader(lead)
      ))
  }).pipe(Effect.annotateLogs({ mutex: contender.mutex }))

/** Milliseconds until the next request. If nothing failed, that is the next regular read. */
const pauseAfter = (failures: number) =>
  failures === 0 ? readIntervalMillis : Math.min(50 * 2 ** failures, readIntervalMillis)

const causes = {
  noLeader: "there was no leader",
  running: "the previous run had not ended, or minInterval had not passed",
  paused: "it is paused",
  outage: "the backend did not reply in time, or the leader was paused"
}
