/**
 * One mutex in the in-memory store, with the same rules as the Redis scripts. `MutexStore.layerMemory` sets the time
 * with `advance` before each call.
 */
import * as Duration from "effect/Duration"
import type { FencingToken } from "../../FencingToken.ts"
import type { ClaimRequest, ClaimResult, EndRequest, JobOrder, JobsRecord, ReadJobsRequest } from "../../JobStore.ts"
import type { LeaseId } from "../../MutexName.ts"
import type { MutexState, Ownership } from "../../MutexState.ts"
import type {
  AcquireRequest,
  AcquireResult,
  ConfirmRequest,
  GuardResult,
  Released,
  ReleaseRequest,
  Ticket,
  WakeUp
} from "../../MutexStore.ts"
import { MemoryJobs } from "../leadership/memoryJobs.ts"
import type { Instant } from "../lease/instant.ts"
import { spareTokens, tokenStride } from "./tokenStride.ts"

interface Waiter {
  readonly id: LeaseId
  /** When the waiter queued, in microseconds. */
  readonly ticket: number
}

type Listener = (wakeUp: WakeUp) => void

const toTicket = (micros: number) => (micros / 1e6).toFixed(6) as Ticket
const fromTicket = (ticket: Ticket) => Math.round(Number(ticket) * 1e6)

/**
 * The largest token and ticket of all mutexes that have become idle. Idle mutexes are not stored, so each new mutex
 * continues after these values.
 */
export interface Last {
  readonly token: number
  /** In microseconds since 1970. */
  readonly ticket: number
}

export class MemoryMutex {
  private now = 0
  private micros = 0
  private owner: LeaseId | undefined
  /** When the owner's lease ends, in monotonic milliseconds. */
  private deadline = 0
  private token: number
  private ticket: number
  private readonly queue: Array<Waiter> = []
  private readonly listeners = new Map<LeaseId, Listener>()
  private readonly observers = new Set<(owner: string) => void>()
  private readonly jobs = new MemoryJobs()

  constructor(before: Last) {
    this.token = before.token
    this.ticket = before.ticket
  }

  advance({ monotonic, wall }: Instant): void {
    this.now = monotonic
    this.micros = Math.floor(wall * 1000)
    if (this.owner !== undefined && this.now > this.deadline) this.owner = undefined
  }

  /** What to remember about an idle mutex: the maximum of `last` and the mutex's own values. */
  lastOf({ ticket, token }: Last): Last {
    return { token: Math.max(token, this.token + spareTokens(this.token)), ticket: Math.max(ticket, this.ticket) }
  }

  isIdle(): boolean {
    return !this.isWanted() && this.listeners.size === 0 && this.observers.size === 0 && this.jobs.isEmpty()
  }

  isWanted(): boolean {
    return this.owner !== undefined || this.queue.length > 0
  }

  ownership(): Ownership {
    return this.owner === undefined
      ? { _tag: "Free" }
      : { _tag: "Held", owner: this.owner, timeLeft: Duration.millis(this.deadline - this.now) }
  }

  acquire(request: AcquireRequest): AcquireResult {
    const { id } = request
    if (this.owner === undefined) this.handOver(request, request)
    if (this.owner === undefined || this.owner === id) {
      return { _tag: "Granted", token: this.take(id, request.lease) }
    }
    return this.refused(request.mode === "wait" ? this.enter(id, request.ticket) : undefined)
  }

  private refused(queued?: Waiter): AcquireResult {
    return {
      _tag: "Refused",
      ownership: this.ownership(),
      ticket: queued && toTicket(queued.ticket),
      position: queued ? this.queue.indexOf(queued) : 0,
      foreign: false
    }
  }

  guard(id: LeaseId, lease: number): GuardResult {
    if (this.owner !== id) return { _tag: "Lost", ownership: this.ownership() }
    this.deadline = this.now + lease
    return { _tag: "Renewed" }
  }

  confirm({ id, lease, token }: ConfirmRequest): AcquireResult {
    if (this.owner !== id || this.token !== token) return this.refused()
    this.deadline = this.now + Duration.toMillis(lease)
    return { _tag: "Granted", token }
  }

  release({ confirm, id, lease, requeue }: ReleaseRequest): Released {
    const periods = { confirm, lease }
    const place = this.leave(id)
    const queued = requeue === undefined ? undefined : this.enter(requeue.id, undefined)
    // Whether another waiter comes before `queued`
    let isTaken = true
    if (this.owner === id) {
      this.owner = undefined
      isTaken = this.handOver(periods, requeue)
    } else if (this.owner === undefined) {
      isTaken = this.handOver(periods, requeue)
    } else if (place === 0) {
      this.schedulePoll(this.first(), this.deadline - this.now)
    }
    if (requeue === undefined || queued === undefined) return { requeued: undefined }
    const token = !isTaken || this.owner === requeue.id
      ? this.take(requeue.id, requeue.lease)
      : undefined
    const position = Math.max(0, this.queue.indexOf(queued))
    return { requeued: { ownership: this.ownership(), ticket: toTicket(queued.ticket), token, position } }
  }

  inspect(limit: number): MutexState {
    return {
      ownership: this.ownership(),
      token: this.owner === undefined ? undefined : this.token as FencingToken,
      waiting: this.queue.length,
      waiters: this.queue.slice(0, limit).map(({ id, ticket }) => ({
        id,
        waited: Duration.millis(Math.round(Math.max(0, this.micros - ticket) / 1000))
      }))
    }
  }

  /**
   * Takes the mutex from its owner. Mints a token even if nobody is granted the mutex: fenced resources then reject
   * late writes from the old owner. The caller notifies that owner.
   */
  force(confirm: Duration.Duration): Ownership {
    const before = this.ownership()
    this.owner = undefined
    this.mint()
    this.handOver({ confirm })
    return before
  }

  readJobs(request: ReadJobsRequest): JobsRecord {
    return this.jobs.read(request, this.owner, this.millis())
  }

  claimRun(request: ClaimRequest): ClaimResult {
    return this.jobs.claim(request, this.owner, this.millis())
  }

  endRun(request: EndRequest): number {
    return this.jobs.end(request, this.millis())
  }

  steerJobs(order: JobOrder): boolean {
    return this.jobs.steer(order, this.owner, this.millis())
  }

  observe(observer: (owner: string) => void): () => void {
    this.observers.add(observer)
    return () => this.observers.delete(observer)
  }

  listen(id: LeaseId, listener: Listener): () => void {
    this.listeners.set(id, listener)
    return () => this.listeners.delete(id)
  }

  private millis(): number {
    return Math.floor(this.micros / 1000)
  }

  private enter(id: LeaseId, ticket: Ticket | undefined): Waiter {
    const queued = this.queue.find((waiter) => waiter.id === id)
    if (queued !== undefined) return queued
    this.ticket = Math.max(this.micros, this.ticket + 1)
    const micros = ticket === undefined ? this.ticket : Math.min(fromTicket(ticket), this.ticket)
    const waiter = { id, ticket: micros }
    const index = this.queue.findIndex((other) => other.ticket > micros)
    this.queue.splice(index === -1 ? this.queue.length : index, 0, waiter)
    return waiter
  }

  /** Removes the waiter. Returns its position, or -1 if it was not waiting. */
  private leave(id: LeaseId): number {
    const index = this.queue.findIndex((waiter) => waiter.id === id)
    if (index !== -1) this.queue.splice(index, 1)
    return index
  }

  /**
   * Mints a token by the rules of fence.lua: a multiple of `tokenStride` reserves the tokens up to the next multiple.
   */
  private mint(): void {
    const next = (Math.floor(this.micros / tokenStride) + 1) * tokenStride
    const least = this.token + spareTokens(this.token) + 1
    // The last grant was only a moment ago: mint a single token without a stride
    this.token = next >= least ? next : least % tokenStride === 0 ? least + 1 : least
  }

  private grant(id: LeaseId): void {
    this.owner = id
    this.mint()
  }

  /** Makes `id` the owner. An owner that repeats its request keeps its token. */
  private take(id: LeaseId, lease: Duration.Duration): FencingToken {
    if (this.owner !== id) this.grant(id)
    this.deadline = this.now + Duration.toMillis(lease)
    this.leave(id)
    this.observers.forEach((observer) => observer(id))
    return this.token as FencingToken
  }

  /** Returns the first waiter that is listening. Removes the waiters before it, which count as dead. */
  private first(): Waiter | undefined {
    while (this.queue.length > 0 && !this.listeners.has(this.queue[0]!.id)) this.queue.shift()
    return this.queue[0]
  }

  /** Sends the waiter the time of its next poll, in case the owner does not release the mutex. */
  private schedulePoll(waiter: Waiter | undefined, millis: number): void {
    if (waiter !== undefined) {
      this.listeners.get(waiter.id)!({ _tag: "PollAfter", delay: Duration.millis(Math.max(0, millis)) })
    }
  }

  /**
   * Grants the mutex to the first live waiter, unless `newcomer` comes before it. The grant lasts for `lease` if that
   * is set and the waiter queued within the last confirm period, otherwise for `confirm`. Returns whether the mutex was
   * granted.
   */
  private handOver(
    { confirm, lease }: { readonly confirm: Duration.Duration; readonly lease?: Duration.Duration },
    newcomer?: Pick<AcquireRequest, "id" | "ticket">
  ): boolean {
    const next = this.first()
    if (next === undefined || next.id === newcomer?.id) return false
    if (newcomer?.ticket !== undefined && fromTicket(newcomer.ticket) < next.ticket) return false
    this.leave(next.id)
    this.grant(next.id)
    const confirmMillis = Duration.toMillis(confirm)
    const age = (this.micros - next.ticket) / 1000
    const isWhole = lease !== undefined && age >= 0 && age <= confirmMillis
    this.deadline = this.now + (isWhole ? Duration.toMillis(lease) : confirmMillis)
    this.listeners.get(next.id)!({ _tag: "YourTurn" })
    if (!isWhole) this.schedulePoll(this.first(), confirmMillis)
    return true
  }
}
