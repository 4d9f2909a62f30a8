/**
 * Checks jobs: which runs start, under which token, and that each instant is handed out or reported as missed.
 */
import type { Checker } from "@effect-simba/testkit"

/** The instants of a job are the multiples of `period`, in milliseconds. */
export interface JobRules {
  readonly job: string
  readonly period: number
  readonly attempts: number
}

/** The server lost what it had handed out, or its clock left the leases that it had granted. */
const excuseFor = 10_000

const causes: ReadonlyArray<string> = ["noLeader", "running", "paused", "outage"]

/** Arguments of `claimRun`, after the command, the script and the keys. */
export const claimOf = (args: ReadonlyArray<string>) => {
  if (args.length !== 15 || !args[4]!.endsWith(":jobs")) return undefined
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

/** Arguments of `endRun`. */
const endOf = (args: ReadonlyArray<string>) => {
  if (args.length !== 7 || !args[3]!.endsWith(":jobs")) return undefined
  const [job, claim, outcome] = args.slice(4)
  return { job: job!, claim: claim!, outcome: outcome! }
}

/** The reply of `claimRun`, from what it wrote, if replies are not visible. */
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
 * - A run starts at most as often as its job allows for each instant, and each attempt starts once.
 * - No run starts under a smaller token than one that has started, nor before the previous run of its leadership has
 * ended.
 * - Each instant between two decided ones is reported as missed, with its cause.
 * - A run that was handed out and never started is recorded as such, unless its leader is lost.
 * - After the last fault each job runs again within `recovery`, in milliseconds.
 */
export const jobsKeepTheirWord = (
  { jobs, mutex, recovery }: {
    readonly mutex: string
    readonly jobs: ReadonlyArray<JobRules>
    readonly recovery: number
  }
): Checker.Checker => ({
  name: "jobs keep their word",
  start: (view) => {
    const rules = new Map(jobs.map((rule) => [rule.job, rule]))
    const begun = new Map<string, number>()
    const newest = new Map<string, { readonly token: number; readonly at: number }>()
    const decided = new Map<string, { readonly at: number; readonly when: number }>()
    const claims = new Set<string>()
    const unbegun = new Map<string, { readonly claim: string; readonly at: number }>()
    /** Runs that seem never to have started: the end of a short run may be seen before its start. */
    const uncertain = new Map<string, string>()
    const running = new Map<string, string>()
    const waiting = new Set<string>()
    const key = `simba:{${mutex}}:jobs`
    const isExcused = (since: number) => Math.max(view.lossAt(), view.serverStepAt()) >= since
    const began = (job: string, fields: Readonly<Record<string, string | number>>, at: number, client: string) => {
      const [instant, attempt, token] = [Number(fields["instant"]), Number(fields["attempt"]), Number(fields["token"])]
      const run = `${job} of ${instant}, attempt ${attempt}`
      const before = begun.get(run)
      if (before !== undefined && !isExcused(before - excuseFor)) view.violated(`${run} begins twice`)
      begun.set(run, at)
      if (attempt > rules.get(job)!.attempts) view.violated(`${run} starts too often`)
      const last = newest.get(job)
      if (last !== undefined && token < last.token) {
        const excused = isExcused(last.at - excuseFor) || view.clockStepAt(client) >= last.at - excuseFor
        if (!excused) view.violated(`${run} starts under token ${token}, after a run under ${last.token}`)
      } else newest.set(job, { token, at })
      const leader = `${client} ${job} ${token}`
      if (running.get(leader) !== undefined) {
        view.violated(`${run} starts before the run of ${running.get(leader)} ends`)
      }
      running.set(leader, String(instant))
      if (unbegun.get(job)?.at === instant) unbegun.delete(job)
      uncertain.delete(`${job} of ${instant}`)
    }
    const decide = ({ at, cause, claim, job, missed, mode }: NonNullable<ReturnType<typeof claimOf>>, when: number) => {
      // The request was repeated
      if (claims.has(claim)) return
      claims.add(claim)
      const rule = rules.get(job)
      if (rule === undefined || mode === "manual") return
      if (missed > 0 && !causes.includes(cause)) view.violated(`${job} misses ${missed} instants and says "${cause}"`)
      if (mode === "run") unbegun.set(job, { claim, at })
      const before = decided.get(job)
      if (before !== undefined && at > before.at && !isExcused(before.when)) {
        const between = Math.floor(at / rule.period) - Math.floor(before.at / rule.period) - (mode === "run" ? 1 : 0)
        if (between !== missed) {
          view.violated(`${job} goes from ${before.at} to ${at} by a ${mode}, and names ${missed} instants as missed`)
        }
      }
      decided.set(job, { at, when })
    }
    return {
      onEvent: (event) => {
        if (event._tag === "Phase" && event.phase === "liveness") { for (const { job } of jobs) waiting.add(job) }
        if (event._tag === "Note" && event.kind === "run") {
          const job = String(event.fields["job"])
          began(job, event.fields, event.at, event.client)
          waiting.delete(job)
        }
        if (event._tag === "Note" && event.kind === "run ended") {
          running.delete(`${event.client} ${event.fields["job"]} ${event.fields["token"]}`)
        }
        if (event._tag !== "Command") return
        const end = endOf(event.command.args)
        const assigned = end === undefined ? undefined : unbegun.get(end.job)
        if (end !== undefined && assigned?.claim === end.claim) {
          unbegun.delete(end.job)
          if (end.outcome !== "unstarted") uncertain.set(`${end.job} of ${assigned.at}`, end.outcome)
        }
        const claim = claimOf(event.command.args)
        const { reply } = event.command
        if (claim === undefined || !Array.isArray(reply) || reply[0] !== "Claimed") return
        decide(claim, event.at)
      },
      isConverged: () => waiting.size === 0,
      onConverged: () => {
        for (const job of waiting) view.violated(`${job} does not run again within ${recovery} ms after the last fault`)
        for (const [run, outcome] of uncertain) view.violated(`${run} never started, and is recorded as ${outcome}`)
        const known = view.hash(key)
        for (const { job } of jobs) if (!known.has(`at:${job}`)) view.violated(`the fleet does not know ${job}`)
      }
    }
  }
})
