/** One lease of a mutex: plain data, the work that it protects, and the ends of both. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { FencingToken } from "../../FencingToken.ts"
import type { LeaseId, MutexName } from "../../MutexName.ts"
import type { GuardRequest, Released, ReleaseRequest } from "../../MutexStore.ts"
import { LeaseLost, type LossReason } from "../../SimbaError.ts"
import type { Instant } from "../lease/instant.ts"
import { awaitExit, isolate, Listeners } from "../lease/observers.ts"
import { TrackedLease } from "../lease/trackedLease.ts"
import type { LeaseSettings } from "./leaseOptions.ts"
import { spareTokens } from "./tokenStride.ts"

/** What else a release does, for the fibers that wait for the same mutex. */
export interface Parting {
  readonly requeue?: ReleaseRequest["requeue"]
  /** Called once with the outcome of `requeue`: the reply to the first attempt, or undefined. */
  readonly settled?: ((released: Released | undefined) => void) | undefined
}

/** Names a line of waiting fibers: that of a mutex, or that of one unfair attempt. */
export type LineKey = MutexName | object

export class HeldLease extends TrackedLease<LeaseSettings> implements GuardRequest {
  readonly mutex: MutexName
  readonly id: LeaseId
  readonly token: FencingToken
  /** The line whose first fiber it was granted to. */
  readonly line: LineKey
  /** `ending`: its scope is closing, and protected work has not ended yet. Still renewed, no longer handed out. */
  state: "held" | "ending" | "lost" | "released" = "held"
  loss: LeaseLost | undefined
  readonly onLoss = new Listeners<LeaseLost>()
  /** The result of `isAlive` applies to one renewal. */
  probe: "unasked" | "asking" | "alive" = "unasked"
  /** The last result of `isAlive` was not `true`. */
  dead = false
  /** When it was last reported as forced: the reply to the next request decides. */
  forcedAt: number | undefined
  /** Tokens of its grant after its own, for the next holders in this process. */
  private spare: number
  /** Its grant does not cover its whole lease, and no reply has extended it yet. */
  isUnconfirmed = false
  private works: Set<Fiber.Fiber<unknown, unknown>> | undefined
  private starting = 0
  private readonly onStarted = new Listeners<void>()

  constructor(
    mutex: MutexName,
    id: LeaseId,
    token: FencingToken,
    options: LeaseSettings,
    sent: Instant,
    line: LineKey = mutex
  ) {
    super(options, sent)
    this.mutex = mutex
    this.id = id
    this.token = token
    this.line = line
    this.spare = spareTokens(token)
  }

  /** For the renewing request. */
  get lease(): Duration.Duration {
    return this.options.lease
  }

  get annotations() {
    return { mutex: this.mutex, lease: this.id, token: this.token }
  }

  /** It counts from the message of its grant, which lasts `period`, of which `usable` can be used. Milliseconds. */
  grantedFor(period: number, usable: number): void {
    this.isUnconfirmed = period !== this.options.leaseMillis
    this.shorten(usable, this.isUnconfirmed ? usable * 0.75 : Infinity)
  }

  override extend(sent: Instant): void {
    super.extend(sent)
    this.isUnconfirmed = false
    // A renewal that was sent before the report may have been executed before the force
    if (this.forcedAt !== undefined && this.forcedAt > sent.monotonic) this.nextRenewal = -Infinity
    else this.forcedAt = undefined
  }

  override expiry() {
    return this.dead ? "Expired" : this.isUnconfirmed ? "BackendGone" : super.expiry()
  }

  /** Whether it can go to the next holder unchanged: granted or renewed in time, and not due yet. */
  isFresh(now: Instant): boolean {
    const { margin, renewAfter } = this.options
    return this.spare > 0 && !this.isUnconfirmed && !this.renewing && !this.isFailing && !this.dead &&
      this.forcedAt === undefined && this.probe === "unasked" &&
      now.monotonic < this.renewed.monotonic + renewAfter && this.left(now) > margin
  }

  fits({ lease, ttl }: LeaseSettings): boolean {
    return Duration.equals(ttl, this.options.ttl) && Duration.equals(lease, this.options.lease)
  }

  /** The server's lease stays the same: it ends no later, and is renewed no later. */
  inherit(previous: HeldLease): void {
    this.spare = previous.spare - 1
    this.extend(previous.adjustedRenewal)
  }

  /** Milliseconds until the server's lease ends without another renewal. */
  serverLeft(now: Instant): number {
    const { leaseMillis } = this.options
    return Math.min(
      this.renewed.monotonic + leaseMillis - now.monotonic,
      this.renewed.wall + leaseMillis - now.wall
    )
  }

  lossOf(reason: LossReason["_tag"], owner?: string): LeaseLost {
    const { id, mutex, token } = this
    // Only reasons that name another owner have one
    const why = { _tag: reason, ...(owner === undefined ? this.problemOf(reason) : { owner }) } as LossReason
    return new LeaseLost({ kind: "mutex", resource: mutex, id, token, reason: why })
  }

  /** Interrupts the work. `notifyLoss` follows. */
  lose(reason: LossReason["_tag"], owner?: string): LeaseLost {
    const loss = this.loss ??= this.lossOf(reason, owner)
    if (this.isOpen()) {
      this.state = "lost"
      this.works?.forEach((work) => isolate(work, () => work.interruptUnsafe()))
    }
    return loss
  }

  notifyLoss(): void {
    if (this.loss !== undefined) this.onLoss.notify(this.loss)
  }

  isOpen(): boolean {
    return this.state === "held" || this.state === "ending"
  }

  /** Protected work is about to run until it first waits; `addWork` follows in the same task. */
  startWork(): void {
    this.starting++
  }

  /** Protected work: interrupted by a loss, and interrupted and awaited before a release. */
  addWork(work: Fiber.Fiber<unknown, unknown>): void {
    this.starting--
    if (work.pollUnsafe() === undefined) {
      const works = this.works ??= new Set()
      works.add(work)
      // Its synchronous part may have ended the lease
      if (this.state !== "held") work.interruptUnsafe()
    }
    if (this.starting === 0) this.onStarted.notify()
  }

  removeWork(work: Fiber.Fiber<unknown, unknown>): void {
    this.works?.delete(work)
  }

  hasWork(): boolean {
    return this.starting > 0 || (this.works !== undefined && this.works.size > 0)
  }

  endWorks(): Effect.Effect<void> | undefined {
    if (!this.hasWork()) return undefined
    if (this.state === "held") this.state = "ending"
    if (this.starting === 0) return this.interruptWorks()
    // Work that is only starting has resumed the releasing fiber: its own fiber is not known yet
    return Effect.withFiber((releasing) =>
      Effect.andThen(
        Effect.callback<void>((resume) => {
          if (this.starting === 0) return resume(Effect.void)
          return Effect.sync(this.onStarted.add(() => isolate(releasing, () => resume(Effect.void))))
        }),
        this.interruptWorks()
      )
    )
  }

  private interruptWorks(): Effect.Effect<void> {
    return Effect.withFiber((releasing) => {
      const others: Array<Fiber.Fiber<unknown, unknown>> = []
      this.works?.forEach((work) => {
        isolate(work, () => work.interruptUnsafe(releasing.id))
        // Work that closes the scope of its own lease cannot wait for itself: it is interrupted after the release
        if (work !== releasing) others.push(work)
      })
      return Effect.forEach(others, (work) => awaitExit(work, releasing), { discard: true })
    })
  }
}
