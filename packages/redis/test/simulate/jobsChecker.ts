/**
 * A checker for jobs: which runs start, under which token, and whether each scheduled time is either run or reported as
 * missed.
 */
import type { Checker } from "@effect-simba/testkit"

/**
 * What the checker knows about a job. The job's scheduled times are the multiples of `period`, in milliseconds, unless
 * an operator has changed the schedule.
 */
export interface JobRules {
  readonly job: string
  readonly period: number
  readonly attempts: number
}

/**
 * Data loss or a step of the server's clock excuses runs that started before it or within this many milliseconds after
 * it.
 */
const excuseFor = 10_000

const causes: ReadonlyArray<string> = ["noLeader", "running", "paused", "outage"]

/** Parses the arguments for the `claimRun` script. */
export const claimOf = (args: ReadonlyArray<string>) => {
  if (args.length !== 17 || !args[4]!.endsWith(":jobs")) return undefined
  const [id, token, job, claim, mode, at, missed, cause] = args.slice(5)
  return {
    id: id!,
    token: Number(token),
    job: job!,
    claim: claim!,
    mode: mode!,
    at: Number(at),
    missed: Number(missed),
    cause: cause!
  }
}

/** Parses the arguments for the `steerJobs` script. */
export const orderOf = (args: ReadonlyArray<string>) => {
  if (args.length !== 8 || !args[4]!.endsWith(":jobs")) return undefined
  return { order: args[5]!, job: args[6]! }
}

/** Whether an operator has deleted the jobs' state. */
export const isForgetting = (
  { args, reply }: { readonly args: ReadonlyArray<string>; readonly reply: unknown },
  key: string
) => args[0] === "DEL" && args[1] === key && reply === 1

/** Parses the arguments for the `endRun` script. */
export const endOf = (args: ReadonlyArray<string>) => {
  if (args.length !== 7 || !args[3]!.endsWith(":jobs")) return undefined
  const [job, claim, outcome] = args.slice(4)
  return { job: job!, claim: claim!, outcome: outcome! }
}

/** Parses a schedule whose times are the multiples of a period, in milliseconds. */
const periodOf = (schedule: string | undefined) => {
  const [, millis, seconds] = /^(?:every (\d+)|cron UTC \*\/(\d+) .*)$/.exec(schedule ?? "") ?? []
  return millis !== undefined ? Number(millis) : seconds !== undefined ? 1000 * Number(seconds) : undefined
}

/** Infers the reply to `claimRun` from the commands that the script ran, because MONITOR shows no replies. */
export const replyTo = (
  args: ReadonlyArray<string>,
  effects: ReadonlyArray<ReadonlyArray<string>>
): ReadonlyArray<string> | null => {
  const claim = claimOf(args)
  if (claim === undefined) return null
  const decides = claim.mode === "miss" ? `at:${claim.job}` : `claim:${claim.job}`
  return effects.some(([name, , field]) => name === "HSET" && field === decides) ? ["Claimed"] : null
}

/**
 * - A job has at most `attempts` attempts per instant, and each attempt starts once.
 * - The tokens of a job's runs never decrease. Within one leadership, no run starts before the previous one has ended.
 * - Each scheduled time between two claimed ones is reported as missed, with the cause, unless it passed during a
 *   pause. A change of the schedule affects only later times.
 * - A run that was claimed but never started is recorded as `unstarted`, unless its leader is lost. Unless it is
 *   retried, it also counts as missed if the next leader has read this record.
 * - After the last fault, each job runs again within `recovery` milliseconds.
 */
export const jobsRunAsScheduled = (
  { jobs, mutex, recovery }: {
    readonly mutex: string
    readonly jobs: ReadonlyArray<JobRules>
    readonly recovery: number
  }
): Checker.Checker => ({
  name: "jobs run as scheduled",
  start: (view) => {
    const rules = new Map(jobs.map((rule) => [rule.job, rule]))
    /** When each attempt started. There may be two: an operator may request a run at the instant of a scheduled one. */
    const begun = new Map<string, ReadonlyArray<number>>()
    /** The runs that were claimed, each with its mode. */
    const granted = new Set<string>()
    const newest = new Map<string, { readonly token: number; readonly at: number }>()
    /** Each job's last scheduled time that was run, missed, or passed during a pause. */
    const decided = new Map<string, { readonly at: number; readonly when: number }>()
    const claims = new Set<string>()
    const unbegun = new Map<string, { readonly claim: string; readonly at: number }>()
    /** Each job's last scheduled time whose only run never started. */
    const unstarted = new Map<string, number>()
    /** Runs whose end was recorded before the checker observed their start, as happens with short runs. */
    const uncertain = new Map<string, string>()
    const running = new Map<string, string>()
    const waiting = new Set<string>()
    let over = Infinity
    const isOverdue = (at: number) => at - over > recovery
    const overdue = (job: string) =>
      view.violated(`${job} does not run again within ${recovery} ms after the last fault`)
    const key = `simba:{${mutex}}:jobs`
    /** When an operator last deleted the jobs' state. */
    let forgottenAt = -Infinity
    const isExcused = (since: number) => Math.max(view.lossAt(), view.serverStepAt(), forgottenAt) >= since
    /** The number of a job's scheduled times after `from` and up to `to`, according to the schedules then in force. */
    const instantsIn = ({ job, period }: JobRules, from: number, to: number) => {
      let [count, start] = [0, from]
      const add = (schedule: string | undefined, end: number) => {
        if (end <= start) return
        const every = periodOf(schedule) ?? period
        count += Math.floor(end / every) - Math.floor(start / every)
        start = end
      }
      for (const line of view.field(key, `replaced:${job}`)?.split("\n") ?? []) {
        const [until = "", ...schedule] = line.split(" ")
        add(schedule.join(" "), Math.min(to, Number(until)))
      }
      add(view.field(key, `override:${job}`) ?? view.field(key, `schedule:${job}`), to)
      return count
    }
    /** Records that an operator has resumed a job, whose scheduled times up to now are neither run nor missed. */
    const resume = (job: string, when: number) => {
      const at = Number(view.field(key, `at:${job}`) ?? NaN)
      if (!Number.isNaN(at)) decided.set(job, { at, when })
    }
    const began = (job: string, fields: Readonly<Record<string, string | number>>, at: number, client: string) => {
      const [instant, attempt, token] = [Number(fields["instant"]), Number(fields["attempt"]), Number(fields["token"])]
      const run = `${job} of ${instant}, attempt ${attempt}`
      const before = begun.get(run) ?? []
      const most = granted.has(`run ${run}`) && granted.has(`manual ${run}`) ? 2 : 1
      if (before.length >= most && !isExcused(before.at(-1)! - excuseFor)) view.violated(`${run} starts twice`)
      begun.set(run, [...before, at])
      if (attempt > rules.get(job)!.attempts) view.violated(`${run} exceeds the job's attempts`)
      const last = newest.get(job)
      if (last !== undefined && token < last.token) {
        const excused = isExcused(last.at - excuseFor) || view.clockStepAt(client) >= last.at - excuseFor
        if (!excused) view.violated(`${run} starts under token ${token}, after a run under ${last.token}`)
      } else newest.set(job, { token, at })
      const leader = `${client} ${job} ${token}`
      if (running.get(leader) !== undefined) {
        view.violated(`${run} starts before the run for ${running.get(leader)} has ended`)
      }
      running.set(leader, String(instant))
      if (unbegun.get(job)?.at === instant) unbegun.delete(job)
      uncertain.delete(`${job} of ${instant}`)
    }
    const decide = ({ at, cause, claim, job, missed, mode }: NonNullable<ReturnType<typeof claimOf>>, when: number) => {
      // Ignore repeated requests
      if (claims.has(claim)) return
      claims.add(claim)
      granted.add(`${mode} ${job} of ${at}, attempt 1`)
      const left = unstarted.get(job)
      unstarted.delete(job)
      const rule = rules.get(job)
      if (rule === undefined || mode === "manual") return
      if (missed > 0 && !causes.includes(cause)) {
        view.violated(`${job} misses ${missed} runs with the unknown cause "${cause}"`)
      }
      if (mode === "run") unbegun.set(job, { claim, at })
      const before = decided.get(job)
      if (before !== undefined && at > before.at && !isExcused(before.when)) {
        if (mode === "run" && instantsIn(rule, Math.max(before.at, at - 1), at) !== 1) {
          view.violated(`${job} runs for ${at}, which is not a scheduled time`)
        }
        const between = instantsIn(rule, before.at, at) - (mode === "run" ? 1 : 0)
        if (missed !== between && !(left === before.at && missed === between + 1)) {
          view.violated(
            `${job} goes from ${before.at} to ${at} (${mode}) with ${missed} missed runs instead of ${between}`
          )
        }
      }
      decided.set(job, { at, when })
    }
    return {
      onEvent: (event) => {
        if (event._tag === "Phase" && event.phase === "liveness") {
          over = event.at
          for (const { job } of jobs) waiting.add(job)
        }
        if (event._tag === "Note" && event.kind === "run") {
          const job = String(event.fields["job"])
          began(job, event.fields, event.at, event.client)
          if (waiting.delete(job) && isOverdue(event.at)) overdue(job)
        }
        if (event._tag === "Note" && event.kind === "run ended") {
          running.delete(`${event.client} ${event.fields["job"]} ${event.fields["token"]}`)
        }
        if (event._tag !== "Command") return
        if (isForgetting(event.command, key)) {
          forgottenAt = event.at
          decided.clear()
          unbegun.clear()
        }
        const order = orderOf(event.command.args)
        if (order?.order === "Resume" && event.command.reply === "1") {
          for (const { job } of order.job === "" ? jobs : [{ job: order.job }]) resume(job, event.at)
        }
        const end = endOf(event.command.args)
        const assigned = end === undefined ? undefined : unbegun.get(end.job)
        if (end !== undefined && assigned?.claim === end.claim) {
          unbegun.delete(end.job)
          if (view.field(key, `attempt:${end.job}`) === "0") unstarted.set(end.job, assigned.at)
          if (end.outcome !== "unstarted") uncertain.set(`${end.job} of ${assigned.at}`, end.outcome)
        }
        const claim = claimOf(event.command.args)
        const { reply } = event.command
        if (claim === undefined || !Array.isArray(reply) || reply[0] !== "Claimed") return
        decide(claim, event.at)
      },
      isConverged: () => waiting.size === 0,
      onConverged: () => {
        for (const job of waiting) overdue(job)
        for (const [run, outcome] of uncertain) view.violated(`${run} never started, but is recorded as ${outcome}`)
        const known = view.hash(key)
        for (const { job } of jobs) if (!known.has(`at:${job}`)) view.violated(`${job} has no record on the server`)
      }
    }
  }
})
