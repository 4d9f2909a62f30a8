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

export const annotations = ({ id, mutex, token }: Pick<Holding, "mutex" | "id" | "token">) => ({
  mutex,
  contender: id,
  token
})

export class Holding implements GuardRequest {
  readonly mutex: MutexName
  readonly id: WireId
  readonly token: FencingToken
  readonly ttl: Duration.Duration
  readonly lease: Duration.Duration
  readonly unfair: boolean
  readonly alive: Effect.Effect<boolean, unknown> | undefined
  /** Just before the granting request was sent. */
  readonly since: Instant
  /** Milliseconds that are given up at the end of the server's lease. */
  readonly margin: number
  /** What is left of the lease after the safety margin, in milliseconds. */
  private readonly usable: number
  /** Milliseconds from `since` after which it ends, renewed or not. */
  private readonly maxHold: number
  private monotonicDeadline = 0
  private wallDeadline = 0
  /** When the last granting or renewing request was sent. */
  private renewed: Instant
  /** `ending`: its scope is closing, and protected work has not ended yet. Still renewed, no longer handed out. */
  state: "held" | "ending" | "lost" | "released" = "held"
  loss: LeaseLost | undefined
  /** Monotonic milliseconds. */
  nextRenewal = 0
  renewing = false
  /** The answer of `alive` counts for one renewal. */
  probe: "unasked" | "asking" | "alive" = "unasked"
  /** The last answer of `alive` was not yes. */
  dead = false
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
    readonly maxHold?: Duration.Duration | undefined
    readonly alive?: Effect.Effect<boolean, unknown> | undefined
    readonly unfair?: boolean | undefined
    readonly sent: Instant
  }) {
    this.mutex = fields.mutex
    this.id = fields.id
    this.token = fields.token
    this.ttl = fields.ttl
    this.lease = Duration.sum(fields.ttl, fields.transition)
    this.unfair = fields.unfair === true
    this.alive = fields.alive
    this.since = fields.sent
    this.renewed = fields.sent
    this.margin = Duration.toMillis(margin(fields.ttl, fields.transition))
    this.usable = Duration.toMillis(this.lease) - this.margin
    this.maxHold = fields.maxHold === undefined ? Infinity : Duration.toMillis(fields.maxHold)
    this.extend(fields.sent)
    this.renewAt(fields.sent.monotonic + Duration.toMillis(fields.ttl))
  }

  /** Counts from the instant before the granting or renewing command was sent, never from its reply. */
  extend(sent: Instant): void {
    this.renewed = sent
    this.monotonicDeadline = Math.min(sent.monotonic + this.usable, this.since.monotonic + this.maxHold)
    this.wallDeadline = Math.min(sent.wall + this.usable, this.since.wall + this.maxHold)
  }

  /** A lease that has come to its longest is not renewed any more. */
  renewAt(monotonic: number): void {
    this.nextRenewal = this.monotonicDeadline >= this.since.monotonic + this.maxHold ? Infinity : monotonic
  }

  /** Milliseconds until the server's lease ends, if nothing renews it any more. */
  serverLeft(now: Instant): number {
    const lease = this.usable + this.margin
    return Math.min(this.renewed.monotonic + lease - now.monotonic, this.renewed.wall + lease - now.wall)
  }

  deadline(): number {
    return this.monotonicDeadline
  }

  /** Milliseconds until the local deadline, by whichever clock says less. */
  left(now: Instant): number {
    const monotonic = this.monotonicDeadline - now.monotonic
    const wall = this.wallDeadline - now.wall
    // The wall clock was set back: what is left of the lease has not grown with that
    if (wall > monotonic) this.wallDeadline = now.wall + monotonic
    return Math.min(monotonic, wall)
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
    // It runs before it can be added here, and may have ended the lease by itself
    if (this.state !== "held") work.interruptUnsafe()
    return () => works.delete(work)
  }

  hasWork(): boolean {
    return this.works !== undefined && this.works.size > 0
  }

  endWorks(): Effect.Effect<void> | undefined {
    if (this.works === undefined || this.works.size === 0) return undefined
    if (this.state === "held") this.state = "ending"
    return Fiber.interruptAll(this.works)
  }

  onLoss(listener: (loss: LeaseLost) => void): () => void {
    const listeners = this.listeners ??= new Set()
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
}
