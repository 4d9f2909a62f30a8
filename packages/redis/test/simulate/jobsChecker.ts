/** The checker of jobs: what begins, under which token, and that each instant is given out or named as missed. */
import type { Checker } from "@effect-simba/testkit"

/** `period`: of the instants, which are its multiples. Milliseconds. */
export interface JobRules {
  readonly job: string
  readonly period: number
  readonly attempts: number
}

/** The server forgot what it had given out, or its clock left the leases that it had granted. */
const excuseFor = 10_000

/** Arguments of `claimRun`, behind the command, the script and the keys. */
const claimOf = (args: ReadonlyArray<string>) => {
  if (args.length !== 15 || !args[4]!.endsWith(":jobs")) return undefined
  const [id, token, job, claim, mode, at, missed] = args.slice(5)
  return {
    id: id!,
    token: Number(token),
    job: job!,
    claim: claim!,
    mode: mode!,
    at: Number(at),
    missed: Number(missed)
  }
}

/**
 * - A run begins at most as often as its job allows for each instant, and each attempt begins once.
 * - No run begins under an older token than one that has begun.
 * - Each instant between two that are decided is named as missed.
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
    const waiting = new Set<string>()
    const key = `simba:{${mutex}}:jobs`
    const isExcused = (since: number) => Math.max(view.lossAt(), view.serverStepAt()) >= since
    const began = (job: string, fields: Readonly<Record<string, string | number>>, at: number, client: string) => {
      const [instant, attempt, token] = [Number(fields["instant"]), Number(fields["attempt"]), Number(fields["token"])]
      const run = `${job} of ${instant}, attempt ${attempt}`
      const before = begun.get(run)
      if (before !== undefined && !isExcused(before - excuseFor)) view.violated(`${run} begins twice`)
      begun.set(run, at)
      if (attempt > rules.get(job)!.attempts) view.violated(`${run} begins too often`)
      const last = newest.get(job)
      if (last !== undefined && token < last.token) {
        const excused = isExcused(last.at - excuseFor) || view.clockStepAt(client) >= last.at - excuseFor
        if (!excused) view.violated(`${run} begins under token ${token}, after a run under ${last.token}`)
      } else newest.set(job, { token, at })
    }
    const given = ({ at, claim, job, missed, mode }: NonNullable<ReturnType<typeof claimOf>>, when: number) => {
      // Asked again
      if (claims.has(claim)) return
      claims.add(claim)
      const rule = rules.get(job)
      if (rule === undefined || mode === "manual") return
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
        if (event._tag !== "Command") return
        const claim = claimOf(event.command.args)
        const { reply } = event.command
        if (claim === undefined || !Array.isArray(reply) || reply[0] !== "Claimed") return
        given(claim, event.at)
      },
      isConverged: () => waiting.size === 0,
      onConverged: () => {
        for (const job of waiting) view.violated(`${job} does not run again within ${recovery} ms after the last fault`)
        const known = view.hash(key)
        for (const { job } of jobs) if (!known.has(`at:${job}`)) view.violated(`the fleet does not know ${job}`)
      }
    }
  }
})
