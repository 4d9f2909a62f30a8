/** A checker for operators' requests: pauses, runs and lists of jobs. */
import type { Checker } from "@effect-simba/testkit"
import { claimOf, endOf, isForgetting, orderOf } from "./jobsChecker.ts"

/**
 * - No run is claimed for a scheduled time while its job is paused. A resumed job skips the times scheduled during the
 *   pause.
 * - Each requested run starts once, unless its leader is lost. A request is not forgotten.
 * - An operator can read all jobs.
 * - After the last fault, no job stays paused, and each requested run starts.
 */
export const ordersAreFollowed = (
  { jobs, mutex }: { readonly mutex: string; readonly jobs: ReadonlyArray<{ readonly job: string }> }
): Checker.Checker => ({
  name: "orders are followed",
  start: (view) => {
    const key = `simba:{${mutex}}:jobs`
    /** Each job's unclaimed request for a run, and when it was made. */
    const requested = new Map<string, { readonly instant: string; readonly at: number }>()
    /** Each job's last requested run that was claimed. */
    const claimed = new Map<string, { readonly claim: string; readonly instant: string; readonly at: number }>()
    const claims = new Set<string>()
    let forgottenAt = -Infinity
    const isExcused = (since: number) => Math.max(view.lossAt(), forgottenAt) >= since
    const isPaused = (job: string) =>
      view.field(key, "paused") !== undefined || view.field(key, `paused:${job}`) !== undefined
    /** The jobs that operators have paused; `""` stands for all jobs. Read from the server after data loss. */
    const paused = new Set<string>()
    let readAt = -Infinity
    const readPaused = () => {
      if (view.lossAt() <= readAt) return
      readAt = view.lossAt()
      paused.clear()
      for (const field of view.hash(key).keys()) {
        if (field === "paused" || field.startsWith("paused:")) paused.add(field.slice("paused:".length))
      }
    }
    const begin = ({ at, claim, job, mode }: NonNullable<ReturnType<typeof claimOf>>, when: number) => {
      // Ignore repeated requests
      if (claims.has(claim)) return
      claims.add(claim)
      if (mode === "run" && (paused.has(job) || paused.has(""))) {
        view.violated(`a run of ${job} for ${at} is claimed while it is paused`)
      }
      // A later leader starts another run only if the leader of the requested one is lost
      if (mode === "run") claimed.delete(job)
      if (mode !== "manual") return
      const request = requested.get(job)
      if (request?.instant !== String(at) && view.lossAt() < 0) {
        view.violated(`a run of ${job} that was requested at ${at} is claimed again`)
      }
      claimed.set(job, { claim, instant: String(at), at: when })
      requested.delete(job)
    }
    const checkResumed = (job: string) => {
      const at = Number(view.field(key, `at:${job}`) ?? Infinity)
      if (at < Math.floor(view.serverNow())) {
        view.violated(`${job} is resumed, but may catch up on instants after ${at}`)
      }
    }
    const isOpen = (job: string) => isPaused(job) || view.field(key, `wanted:${job}`) !== undefined
    return {
      onEvent: (event) => {
        if (event._tag === "Note" && event.kind === "malformed") {
          view.violated(`an operator cannot read ${event.fields["job"]}: ${event.fields["problem"]}`)
        }
        if (event._tag !== "Command") return
        const { args, reply } = event.command
        readPaused()
        if (isForgetting(event.command, key)) {
          forgottenAt = event.at
          requested.clear()
          paused.clear()
        }
        const order = orderOf(args)
        if (order?.order === "Run" && reply === "1") {
          requested.set(order.job, { instant: view.field(key, `wanted:${order.job}`)!, at: event.at })
        }
        if (order?.order === "Pause" && reply === "1") paused.add(order.job)
        if (order?.order === "Resume" && reply === "1" && paused.delete(order.job)) {
          for (const { job } of jobs) if (order.job === "" || order.job === job) checkResumed(job)
        }
        const end = endOf(args)
        const last = end === undefined ? undefined : claimed.get(end.job)
        if (end?.outcome === "unstarted" && last?.claim === end.claim && !requested.has(end.job)) {
          if (view.field(key, `wanted:${end.job}`) !== undefined) requested.set(end.job, last)
          else if (!isExcused(last.at)) {
            view.violated(`the request for a run of ${end.job}, which did not start, is forgotten`)
          }
        }
        const claim = claimOf(args)
        if (claim !== undefined && Array.isArray(reply) && reply[0] === "Claimed") begin(claim, event.at)
      },
      isConverged: () => !jobs.some(({ job }) => isOpen(job)),
      onConverged: () => {
        for (const { job } of jobs) {
          if (isPaused(job)) view.violated(`${job} is still paused`)
          const isWanted = view.field(key, `wanted:${job}`) !== undefined
          if (isWanted) view.violated(`a requested run of ${job} has not started`)
          const request = requested.get(job)
          if (request !== undefined && !isWanted && !isExcused(request.at)) {
            view.violated(`the request for a run of ${job} is forgotten`)
          }
        }
      }
    }
  }
})
