/**
 * Decides what a leader does with one job now, given the job's state in the fleet. Called by `jobRunner`.
 *
 * Every scheduled time after `record.at` is unsettled: it neither had a run nor was missed. Of the scheduled times that
 * passed while this leader could run the job, the last is on time, no matter how late the backend replies. All other
 * scheduled times are late: `misfire` says which of them get a run, and `catchUp` how old they may be. Late scheduled
 * times that get no run are missed, each with a cause.
 */
import type { JobRecord } from "../../JobStore.ts"
import { last, type Next } from "./cronInstants.ts"
import type { JobSpec } from "./jobSpec.ts"

/**
 * Why a scheduled time was missed: there was no leader, the job was running or had to wait for `minInterval`, it was
 * paused, or the backend did not reply.
 */
export type Cause = "noLeader" | "running" | "paused" | "outage"

/** Scheduled times are in milliseconds since 1970, by the backend's clock. */
export type Decision =
  | { readonly _tag: "Wait"; readonly until: number }
  | { readonly _tag: "Miss"; readonly at: number; readonly missed: number; readonly cause: Cause }
  | {
    readonly _tag: "Run"
    readonly mode: "run" | "manual"
    readonly at: number
    readonly attempt: number
    readonly isCatchUp: boolean
    readonly missed: number
    readonly cause: Cause
  }

/** The current leadership: when it began, when it became able to run the job, and its token. */
export interface Leader {
  readonly gained: number
  readonly free: number
  readonly token: number
}

/** Missed runs beyond this number are not counted. */
const mostCounted = 1000

/** The pause before the second attempt for a scheduled time. Doubles with each further attempt. */
const pauseMillis = 1000

/**
 * Combines a job's schedules into one. Former schedules, in chronological order, apply up to the times at which they
 * were replaced, and the current one after that.
 */
export const inForce = (
  present: Next,
  former: ReadonlyArray<{ readonly next: Next; readonly until: number }>
): Next =>
(after) => {
  let from = after
  for (const { next, until } of former) {
    if (from >= until) continue
    const found = next(from)
    if (found <= until) return found
    from = until
  }
  return present(from)
}

const count = (next: Next, after: number, before: number) => {
  let found = 0
  for (let at = next(after); at < before && found < mostCounted; at = next(at)) found++
  return found
}

export const plan = (
  spec: Pick<JobSpec, "misfire" | "catchUp" | "minInterval" | "attempts">,
  next: Next,
  record: JobRecord,
  isPaused: boolean,
  leader: Leader,
  now: number
): Decision => {
  const { at, run, wanted } = record
  const begun = run === undefined || run.outcome === "unstarted" || run.start > now ? undefined : run
  const ready = begun === undefined ? 0 : begun.start + spec.minInterval
  const causeOf = (instant: number): Cause =>
    isPaused
      ? "paused"
      : instant < Math.max(ready, begun?.end ?? 0)
      ? "running"
      : instant < leader.gained
      ? "noLeader"
      : instant < leader.free
      ? "running"
      : "outage"
  const runAt = (
    instant: number,
    attempt: number,
    isCatchUp: boolean,
    missed: number,
    cause: Cause,
    mode: "run" | "manual" = "run"
  ): Decision => ({
    _tag: "Run",
    mode,
    at: instant,
    attempt,
    isCatchUp,
    missed,
    cause
  })

  const first = next(at)
  const retry = retryAt(spec, record, leader, now)
  if (retry !== undefined && !isPaused && (first > now || spec.misfire === "runAll")) {
    const due = Math.max(retry, ready)
    return due <= now
      ? runAt(run!.scheduledAt, run!.attempt + 1, true, 0, "outage")
      : { _tag: "Wait", until: first > now ? Math.min(due, Math.max(first, ready)) : due }
  }
  // The last scheduled time's run was granted, but never started
  const unstarted = run?.scheduledAt === at && run.attempt === 0 ? 1 : 0
  // Checked after retries, because a requested run overwrites the record of the last attempt
  if (wanted !== undefined) {
    return now < ready
      ? { _tag: "Wait", until: ready }
      : runAt(wanted, 1, false, unstarted, causeOf(at), "manual")
  }
  if (first > now) return { _tag: "Wait", until: first }
  if (now < ready && !isPaused) return { _tag: "Wait", until: ready }

  const latest = last(next, at, now)!
  const chosen = isPaused ? undefined : choose(spec, next, at, latest, leader.free, now)
  const end = chosen ?? latest + 1
  const missed = count(next, at, end) + unstarted
  const cause = causeOf(last(next, at, end - 1) ?? at)
  return chosen === undefined
    ? { _tag: "Miss", at: latest, missed, cause }
    : runAt(chosen, 1, chosen !== latest || chosen < leader.free, missed, cause)
}

/** The first scheduled time after `at` that gets a run, if any. */
const choose = (
  { catchUp, misfire }: Pick<JobSpec, "misfire" | "catchUp">,
  next: Next,
  at: number,
  latest: number,
  free: number,
  now: number
): number | undefined => {
  const oldest = now - catchUp
  const isLatestRun = latest >= free || (misfire !== "skip" && latest >= oldest)
  if (!isLatestRun || misfire !== "runAll") return isLatestRun ? latest : undefined
  return Math.min(next(Math.max(at, oldest - 1)), latest)
}

/**
 * When to retry the last run. Undefined if the run succeeded, has not ended, is too old, has no attempts left, or is
 * not for the last settled time.
 */
const retryAt = (
  { attempts, catchUp }: Pick<JobSpec, "attempts" | "catchUp">,
  { at, run }: JobRecord,
  leader: Leader,
  now: number
): number | undefined => {
  if (run === undefined || run.scheduledAt !== at || run.outcome === "success" || run.attempt >= attempts) {
    return undefined
  }
  if (run.end === undefined && run.token >= leader.token) return undefined
  if (now - at > Math.max(catchUp, run.outcome === "unstarted" ? now - leader.gained : 0)) return undefined
  return run.attempt === 0
    ? now
    : (run.end ?? leader.gained) + Math.min(pauseMillis * 2 ** (run.attempt - 1), 60 * pauseMillis)
}
