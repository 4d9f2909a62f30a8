/** One lease as the table keeps it: plain data, no fiber and no timer of its own. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Pull from "effect/Pull"
import type * as Schedule from "effect/Schedule"
import type { FencingToken } from "../../FencingToken.ts"
import type { ContenderId, MutexName } from "../../MutexName.ts"
import type { guard } from "../../MutexSchedule.ts"
import type { GuardRequest } from "../../MutexStore.ts"
import { LeaseLost, type LossReason } from "../../SimbaError.ts"
import { Deadline, type Instant } from "../lease/deadline.ts"
import type { Item } from "../lease/indexedHeap.ts"
import { awaitExit, isolate } from "../lease/observers.ts"
import { margin } from "../optionChecks.ts"
import type { AcquireQueue } from "./acquirePlace.ts"

export type GuardStep = (
  now: number,
  outcome: Schedule.Input<typeof guard>
) => Pull.Pull<[Duration.Duration, Duration.Duration], never, Duration.Duration>

/** What leases have in common that were asked for with the same options. */
export interface Terms {
  readonly ttl: Duration.Duration
  readonly lease: Duration.Duration
  readonly unfair: boolean
  readonly isAlive: Effect.Effect<boolean, unknown> | undefined
  readonly ttlMillis: number
  /** Milliseconds that are given up at the end of the server's lease. */
  readonly margin: number
  /** What is left of the lease after the safety margin, in milliseconds. */
  readonly usable: number
  /** Milliseconds from the granting request after which it ends, renewed or not. */
  readonly maxHold: number
}

export const termsOf = (options: {
  readonly ttl: Duration.Duration
  readonly transition: Duration.Duration
  readonly maxHold?: Duration.Duration | undefined
  readonly isAlive?: Effect.Effect<boolean, unknown> | undefined
  readonly unfair?: boolean | undefined
}): Terms => {
  const { isAlive, maxHold, transition, ttl, unfair } = options
  const lease = Duration.sum(ttl, transition)
  const lost = Duration.toMillis(margin(Duration.sum(ttl, transition)))
  return {
    ttl,
    lease,
    unfair: unfair === true,
    isAlive,
    ttlMillis: Duration.toMillis(ttl),
    margin: lost,
    usable: Duration.toMillis(lease) - lost,
    maxHold: maxHold === undefined ? Infinity : Duration.toMillis(maxHold)
  }
}

export const annotations = ({ id, mutex, token }: Pick<HeldLease, "mutex" | "id" | "token">) => ({
  mutex,
  contender: id,
  token
})

export class HeldLease extends Deadline implements GuardRequest, Item {
  readonly mutex: MutexName
  readonly id: ContenderId
  readonly token: FencingToken
  private readonly terms: Terms
  /** Just before the granting request was sent. */
  readonly since: Instant
  /** When the last granting or renewing request was sent. Numbers, since a new object in each of thousands costs more. */
  private renewedMonotonic = 0
  private renewedWall = 0
  /** `ending`: its scope is closing, and protected work has not ended yet. Still renewed, no longer handed out. */
  state: "held" | "ending" | "lost" | "released" = "held"
  loss: LeaseLost | undefined
  /** When it is to be renewed, in monotonic milliseconds. */
  key = 0
  position = -1
  before: Item | undefined
  behind: Item | undefined
  renewing = false
  /** The answer of `isAlive` counts for one renewal. */
  probe: "unasked" | "asking" | "alive" = "unasked"
  /** The last answer of `isAlive` was not yes. */
  dead = false
  failing = false
  /** When it was last said to have been taken away by force: the reply to what is sent after that decides. */
  forcedAt: number | undefined
  step: GuardStep | undefined
  /** What it is held for by this layer, if the fibers behind it are to have it next. */
  place: AcquireQueue | undefined
  private listeners: Set<(loss: LeaseLost) => void> | undefined
  private works: Set<Fiber.Fiber<unknown, unknown>> | undefined
  private starting = 0

  constructor(mutex: MutexName, id: ContenderId, token: FencingToken, terms: Terms, sent: Instant) {
    super()
    this.mutex = mutex
    this.id = id
    this.token = token
    this.terms = terms
    this.since = sent
    this.extend(sent)
    this.key = this.renewal(sent.monotonic + terms.ttlMillis)
  }

  get ttl() {
    return this.terms.ttl
  }

  get ttlMillis() {
    return this.terms.ttlMillis
  }

  get lease() {
    return this.terms.lease
  }

  get unfair() {
    return this.terms.unfair
  }

  get isAlive() {
    return this.terms.isAlive
  }

  get margin() {
    return this.terms.margin
  }

  /** Counts from the instant before the granting or renewing command was sent, never from its reply. */
  extend(sent: Instant): void {
    const { maxHold, usable } = this.terms
    this.renewedMonotonic = sent.monotonic
    this.renewedWall = sent.wall
    this.endAt(
      Math.min(sent.monotonic + usable, this.since.monotonic + maxHold),
      Math.min(sent.wall + usable, this.since.wall + maxHold)
    )
  }

  /** A lease that has come to its longest is not renewed any more. */
  renewal(monotonic: number): number {
    return this.deadline() >= this.since.monotonic + this.terms.maxHold ? Infinity : monotonic
  }

  /** Renewed in time, and not due yet: what is left is at least the transition less the margin. */
  isFresh(now: Instant): boolean {
    return !this.renewing && !this.failing && !this.dead && this.forcedAt === undefined && this.probe === "unasked" &&
      now.monotonic < this.renewedMonotonic + this.terms.ttlMillis && this.left(now) > this.margin
  }

  fits({ transition, ttl }: { readonly ttl: Duration.Duration; readonly transition: Duration.Duration }): boolean {
    return Duration.equals(ttl, this.ttl) && Duration.equals(Duration.sum(ttl, transition), this.lease)
  }

  /** The server's lease goes on as it is: it ends no later, and is renewed no later. */
  inherit(previous: HeldLease): void {
    this.extend({ monotonic: previous.renewedMonotonic, wall: previous.renewedWall })
    this.key = this.renewal(previous.renewedMonotonic + this.terms.ttlMillis)
  }

  /** Milliseconds until the server's lease ends, if nothing renews it any more. */
  serverLeft(now: Instant): number {
    const lease = this.terms.usable + this.terms.margin
    return Math.min(this.renewedMonotonic + lease - now.monotonic, this.renewedWall + lease - now.wall)
  }

  lose(reason: LossReason, owner?: string): LeaseLost {
    if (this.loss !== undefined) return this.loss
    const { id, mutex, token } = this
    this.loss = new LeaseLost({ mutex, id, token, reason, ...(owner === undefined ? {} : { owner }) })
    if (this.isOpen()) {
      this.state = "lost"
      this.works?.forEach((work) => isolate(work, () => work.interruptUnsafe()))
      const listeners = this.listeners
      this.listeners = undefined
      listeners?.forEach((listener) => listener(this.loss!))
    }
    return this.loss
  }

  isOpen(): boolean {
    return this.state === "held" || this.state === "ending"
  }

  /** Protected work is about to run up to where it first waits; `addWork` follows in the same turn. */
  startWork(): void {
    this.starting++
  }

  /** Protected work: interrupted at a loss, and interrupted and awaited before a release. */
  addWork(work: Fiber.Fiber<unknown, unknown>): void {
    this.starting--
    if (work.pollUnsafe() !== undefined) return
    const works = this.works ??= new Set()
    works.add(work)
    // Its first part may have ended the lease by itself
    if (this.state !== "held") work.interruptUnsafe()
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
    // Who releases may have been resumed by work that is only starting: its fiber is known as soon as that can go on
    return this.starting > 0 ? Effect.andThen(Effect.yieldNow, this.interruptWorks()) : this.interruptWorks()
  }

  private interruptWorks(): Effect.Effect<void> {
    return Effect.withFiber((releasing) => {
      const others: Array<Fiber.Fiber<unknown, unknown>> = []
      this.works?.forEach((work) => {
        isolate(work, () => work.interruptUnsafe(releasing.id))
        // Work that closes the scope of its own lease cannot wait for itself: its interruption comes after the release
        if (work !== releasing) others.push(work)
      })
      return Effect.forEach(others, (work) => awaitExit(work, releasing), { discard: true })
    })
  }

  /** A listener does not throw. */
  onLoss(listener: (loss: LeaseLost) => void): () => void {
    const listeners = this.listeners ??= new Set()
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
}
