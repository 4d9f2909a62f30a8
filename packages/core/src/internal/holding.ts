/** One lease as the table keeps it: plain data, no fiber and no timer of its own. */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Pull from "effect/Pull"
import { LeaseLost, type LossReason } from "../Errors.ts"
import { margin } from "../MutexConfig.ts"
import type { GuardOutcome } from "../MutexSchedule.ts"
import type { GuardRequest } from "../MutexStore.ts"
import type { MutexName, WireId } from "../Names.ts"
import type { FencingToken } from "../Ownership.ts"

/** An instant on both clocks, in milliseconds: the monotonic one stands still while a machine is suspended. */
export interface Instant {
  readonly monotonic: number
  readonly wall: number
}

export const instant = (clock: Clock.Clock): Instant => ({
  monotonic: Number(clock.monotonicTimeNanosUnsafe()) / 1e6,
  wall: clock.currentTimeMillisUnsafe()
})

export type GuardStep = (
  now: number,
  outcome: GuardOutcome
) => Pull.Pull<[Duration.Duration, Duration.Duration], never, Duration.Duration>

export class Holding implements GuardRequest {
  readonly mutex: MutexName
  readonly id: WireId
  readonly token: FencingToken
  readonly ttl: Duration.Duration
  readonly lease: Duration.Duration
  /** What is left of the lease after the safety margin, in milliseconds. */
  private readonly usable: number
  private monotonicDeadline = 0
  private wallDeadline = 0
  /** `ending`: its scope is closing, and protected work has not ended yet. Still renewed, no longer handed out. */
  state: "held" | "ending" | "lost" | "released" = "held"
  loss: LeaseLost | undefined
  /** Monotonic milliseconds. */
  nextRenewal = 0
  renewing = false
  failing = false
  /** Said to have been taken away by force; the next reply decides. */
  forced = false
  step: GuardStep | undefined
  private listeners: Set<(loss: LeaseLost) => void> | undefined
  private works: Set<Fiber.Fiber<unknown, unknown>> | undefined

  constructor(fields: {
    readonly mutex: MutexName
    readonly id: WireId
    readonly token: FencingToken
    readonly ttl: Duration.Duration
    readonly transition: Duration.Duration
    readonly sent: Instant
  }) {
    this.mutex = fields.mutex
    this.id = fields.id
    this.token = fields.token
    this.ttl = fields.ttl
    this.lease = Duration.sum(fields.ttl, fields.transition)
    this.usable = Duration.toMillis(this.lease) - Duration.toMillis(margin(fields.ttl, fields.transition))
    this.nextRenewal = fields.sent.monotonic + Duration.toMillis(fields.ttl)
    this.extend(fields.sent)
  }

  /** Counts from the instant before the granting or renewing command was sent, never from its reply. */
  extend(sent: Instant): void {
    this.monotonicDeadline = sent.monotonic + this.usable
    this.wallDeadline = sent.wall + this.usable
  }

  deadline(): number {
    return this.monotonicDeadline
  }

  /** Milliseconds until the local deadline, by whichever clock says less. */
  left(now: Instant): number {
    return Math.min(this.monotonicDeadline - now.monotonic, this.wallDeadline - now.wall)
  }

  lose(reason: LossReason, owner?: string): LeaseLost {
    if (this.loss !== undefined) return this.loss
    const { id, mutex, token } = this
    this.loss = new LeaseLost({ mutex, id, token, reason, ...(owner === undefined ? {} : { owner }) })
    if (this.isOpen()) {
      this.state = "lost"
      this.works?.forEach((work) => work.interruptUnsafe())
      const listeners = this.listeners
      this.listeners = undefined
      listeners?.forEach((listener) => listener(this.loss!))
    }
    return this.loss
  }

  isOpen(): boolean {
    return this.state === "held" || this.state === "ending"
  }

  /** Protected work: interrupted at a loss, and interrupted and awaited before a release. */
  addWork(work: Fiber.Fiber<unknown, unknown>): () => void {
    const works = this.works ??= new Set()
    works.add(work)
    return () => works.delete(work)
  }

  endWorks(): Effect.Effect<void> | undefined {
    if (this.works === undefined || this.works.size === 0) return undefined
    this.state = "ending"
    return Fiber.interruptAll(this.works)
  }

  onLoss(listener: (loss: LeaseLost) => void): () => void {
    const listeners = this.listeners ??= new Set()
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
}
