/**
 * One mutex's jobs in the in-memory store, with the same rules as the Redis scripts. `memoryStore` creates an instance
 * for each mutex, and serializes the calls.
 */
import * as Duration from "effect/Duration"
import * as Struct from "effect/Struct"
import type { Mutable } from "effect/Types"
import type {
  ClaimRequest,
  ClaimResult,
  EndRequest,
  JobOrder,
  JobRecord,
  JobsRecord,
  ReadJobsRequest
} from "../../JobStore.ts"

interface Entry extends Mutable<JobRecord> {
  /** When to forget the job. */
  until: number
  /** The time of the operator's request that started the last run; undefined if the run was scheduled. */
  requested: number | undefined
}

/** Maximum number of former schedules, as in jobs.lua. */
const mostFormer = 8

const inForce = (entry: JobRecord) => entry.override ?? entry.schedule

export class MemoryJobs {
  private readonly entries = new Map<string, Entry>()
  private isPaused = false
  private leaving: string | undefined

  isEmpty(): boolean {
    return this.entries.size === 0 && !this.isPaused && this.leaving === undefined
  }

  read({ id, jobs }: ReadJobsRequest, owner: string | undefined, now: number): JobsRecord {
    for (const [name, entry] of this.entries) {
      if (entry.until < now && !entry.isPaused && !this.isPaused) this.entries.delete(name)
    }
    if (this.entries.size === 0 && !this.isPaused) this.leaving = undefined
    for (const { every, keep, name, schedule } of jobs) {
      const entry = this.entry(name, every === undefined ? now : Math.floor(now / every) * every - 1)
      entry.until = Math.max(entry.until, now + Duration.toMillis(keep))
      if (id !== undefined && id === owner && entry.schedule !== schedule) {
        this.change(entry, now, () => entry.schedule = schedule)
      }
    }
    const copies = [...this.entries].map(([name, entry]) => [name, Struct.omit(entry, ["until", "requested"])] as const)
    return { now, isPaused: this.isPaused, leaving: this.leaving, jobs: new Map(copies), malformed: new Map() }
  }

  claim(request: ClaimRequest, owner: string | undefined, now: number): ClaimResult {
    const { at, attempts, claim, id, mode, token } = request
    const reply = (_tag: ClaimResult["_tag"], attempt = 0, wait = 0): ClaimResult => ({ _tag, now, attempt, wait })
    const entry = this.entry(request.job, now)
    const { run } = entry
    if (owner !== id || (run !== undefined && run.token > token)) return reply("NotOwner")
    const isRunning = run !== undefined && run.end === undefined
    // A repeated request or, if the run has ended, a late copy
    if (run?.claim === claim) return isRunning ? reply("Claimed", run.attempt) : reply("Taken")
    if (isRunning && run.token === token) return reply("Running")
    let attempt = 1
    if (mode === "manual") {
      if (entry.wanted !== at) return reply("Taken")
    } else {
      // The caller's schedule is outdated
      if ((entry.former.at(-1)?.until ?? 0) !== request.changed) return reply("Taken")
      if (at > now) return reply("Early", 0, at - now)
      const isRepeated = mode === "run" && run?.scheduledAt === at && run.outcome !== "success" &&
        run.attempt < attempts
      if (entry.at !== request.after || at < entry.at || (at === entry.at && !isRepeated)) return reply("Taken")
      if (isRepeated) attempt = run.attempt + 1
      if (mode === "run" && (this.isPaused || entry.isPaused)) return reply("Paused")
    }
    const since = run === undefined || run.outcome === "unstarted" ? Infinity : now - run.start
    const least = Duration.toMillis(request.minInterval)
    if (mode !== "miss" && since >= 0 && since < least) return reply("Early", 0, least - since)
    if (request.missed > 0) {
      entry.missed += request.missed
      entry.cause = request.cause
    }
    if (mode !== "manual") entry.at = at
    if (mode === "miss") return reply("Claimed")
    entry.requested = mode === "manual" ? at : undefined
    if (mode === "manual") entry.wanted = undefined
    entry.run = { id, claim, token, scheduledAt: at, attempt, start: now, end: undefined, outcome: undefined }
    return reply("Claimed", attempt)
  }

  end({ claim, job, outcome }: EndRequest, now: number): number {
    const entry = this.entries.get(job)
    if (entry?.run?.claim !== claim || entry.run.end !== undefined) return now
    const attempt = entry.run.attempt - (outcome === "unstarted" ? 1 : 0)
    entry.run = { ...entry.run, attempt, end: now, outcome }
    if (outcome === "success") entry.success = now
    if (outcome === "unstarted") entry.wanted ??= entry.requested
    return now
  }

  steer(order: JobOrder, owner: string | undefined, now: number): boolean {
    if (this.isEmpty()) return false
    if (order._tag === "StepDown") {
      if (owner === undefined) return false
      this.leaving = owner
      return true
    }
    if (order.job === undefined) {
      const wasPaused = this.isPaused
      this.isPaused = order._tag === "Pause"
      if (wasPaused && !this.isPaused) { for (const entry of this.entries.values()) this.resume(entry, now) }
      return true
    }
    const entry = this.entries.get(order.job)
    if (entry === undefined) return false
    if (order._tag === "Run") entry.wanted = now
    else if (order._tag === "Pause") entry.isPaused = true
    else if (order._tag === "Resume" && entry.isPaused) {
      entry.isPaused = false
      this.resume(entry, now)
    } else if (order._tag === "Reschedule") this.change(entry, now, () => entry.override = order.schedule)
    return true
  }

  private entry(name: string, at: number): Entry {
    const found = this.entries.get(name)
    if (found !== undefined) return found
    const entry: Entry = {
      at,
      schedule: undefined,
      override: undefined,
      former: [],
      isPaused: false,
      wanted: undefined,
      run: undefined,
      success: undefined,
      missed: 0,
      cause: undefined,
      until: 0,
      requested: undefined
    }
    this.entries.set(name, entry)
    return entry
  }

  /** Ends a pause. Scheduled times that passed during the pause are not caught up on. */
  private resume(entry: Entry, now: number): void {
    entry.at = Math.max(entry.at, now)
  }

  private change(entry: Entry, now: number, set: () => void): void {
    const before = inForce(entry)
    set()
    if (before === undefined || before === inForce(entry)) return
    const unsettled = entry.former.filter(({ until }) => until > entry.at)
    entry.former = [...unsettled.slice(0, mostFormer - 1), { schedule: before, until: now }]
  }
}
