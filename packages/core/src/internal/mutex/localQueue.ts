/**
 * A layer's fibers that want the same mutex share one place in the fleet's queue, and wait in line behind it. `acquire`
 * adds fibers, `heldLeases` reports when leases end, and `linePlan` decides what follows. `localTurn` decides whether a
 * release passes the lease to the next fiber. The glossary in CONTRIBUTING.md defines line, place and turn.
 */
import type * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { FencingToken } from "../../FencingToken.ts"
import * as MutexMetrics from "../../MutexMetrics.ts"
import type { LeaseId, MutexName } from "../../MutexName.ts"
import type { BackendError, StoreError } from "../../SimbaError.ts"
import type { Instant } from "../lease/instant.ts"
import { type AttemptContext, closed, type Refused } from "./attempt.ts"
import { FleetPlace, type QueueContext } from "./fleetPlace.ts"
import { HeldLease, type Parting } from "./heldLease.ts"
import type { HeldLeases } from "./heldLeases.ts"
import type { LatestNames } from "./latestNames.ts"
import * as linePlan from "./linePlan.ts"
import * as localTurn from "./localTurn.ts"
import { type LocalWaiter, LocalWaiterList } from "./localWaiter.ts"
import { SelfDeadlockWarning } from "./selfDeadlock.ts"
import * as silencePlan from "./silencePlan.ts"

/** State shared by all of a layer's queues. */
export interface Layer {
  readonly context: AttemptContext
  readonly leases: HeldLeases
  readonly nextId: () => LeaseId
  readonly queues: Record<MutexName, LocalQueue>
  /** Mutexes that were taken at the last request. For these, the next attempt queues immediately. */
  readonly contended: LatestNames
  /** Mutexes whose self-deadlock warning has already been logged. */
  readonly selfDeadlocks: LatestNames
  isClosed: boolean
}

export class LocalQueue implements QueueContext {
  readonly mutex: MutexName
  private readonly layer: Layer
  private readonly line = linePlan.make()
  private readonly waiters = new LocalWaiterList()
  /** The lease, if a fiber in this layer holds the mutex. The other fibers wait for it. */
  held: HeldLease | undefined
  /** When the turn began: at the backend's grant. Passing the lease on within the process does not change it. */
  private turnBegan = 0
  /** The waiters' place in the fleet's queue. */
  private place: FleetPlace | undefined
  private readonly silence = silencePlan.make()
  /** When the timer for `silence` rings. */
  private ringsAt = Infinity
  private stopTimer: (() => void) | undefined
  private lastOwner: string | undefined
  private selfDeadlock: SelfDeadlockWarning | undefined

  constructor(layer: Layer, mutex: MutexName) {
    this.layer = layer
    this.mutex = mutex
  }

  get context(): AttemptContext {
    return this.layer.context
  }

  /** The last known owner of the mutex, and whether it belongs to this layer. */
  get holder(): { readonly owner?: string; readonly isLocal?: true } {
    if (this.held !== undefined) return { owner: this.held.id, isLocal: true }
    return this.lastOwner === undefined ? {} : { owner: this.lastOwner }
  }

  first(): LocalWaiter | undefined {
    return this.waiters.first
  }

  /** Marks the held lease as lost if its deadline has passed. Its timer may be late. */
  check(): void {
    if (this.held !== undefined) this.layer.leases.check(this.held, this.context.now())
  }

  /** Whether no fiber in this layer holds the mutex or waits for it. */
  isOpen(): boolean {
    return !linePlan.isHeld(this.line) && this.line.waiting === 0
  }

  /** Whether the caller should request the mutex itself: it is alone, and the mutex may be free. */
  comesFirst(): boolean {
    return this.line.phase === "idle" && !this.layer.contended.has(this.mutex)
  }

  /**
   * Records that the caller is sending a request. The caller reports the result with `granted`, `join`, `abandon` or
   * `giveUp`.
   */
  ask(waiter: LocalWaiter, now: number): void {
    this.happens("Asked", waiter)
    this.asked(now)
  }

  granted(waiter: LocalWaiter, lease: HeldLease): void {
    this.reached()
    this.layer.contended.delete(this.mutex)
    this.hold("Granted", waiter, lease, this.context.now().monotonic)
  }

  refused({ ownership }: Refused): void {
    this.reached()
    this.layer.contended.add(this.mutex)
    this.lastOwner = ownership._tag === "Held" ? ownership.owner : undefined
  }

  /** Called when the caller's own request was refused or undone, and the caller does not join the line. */
  abandon(waiter: LocalWaiter): void {
    this.happens("Refused", waiter)
  }

  /** Waits in line, at its head if the caller's own request was refused. */
  join(waiter: LocalWaiter): Effect.Effect<HeldLease, StoreError> {
    const hasAsked = waiter.phase === "asking"
    if (this.layer.isClosed) {
      if (hasAsked) this.abandon(waiter)
      return Effect.fail(closed())
    }
    const now = waiter.since = this.context.now().monotonic
    const { leaseMillis } = waiter.attempt.settings
    silencePlan.joined(this.silence, now, leaseMillis, this.waiters.first === undefined)
    this.setTimer()
    this.context.recorder.modify(MutexMetrics.mutex.waiters, 1, this.mutex)
    if (hasAsked) this.waiters.unshift(waiter)
    else this.waiters.push(waiter)
    this.happens(hasAsked ? "JoinedFirst" : "Joined", waiter)
    return waiter.await()
  }

  /**
   * Cleans up after an acquire that failed or was interrupted. Chooses how and leaves the line in one step: during a
   * yield, the caller could be granted the mutex.
   */
  giveUp(waiter: LocalWaiter): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { layer: { leases }, mutex } = this
      switch (linePlan.undoOf(waiter)) {
        case "nothing":
          return Effect.void
        case "undo":
          return Effect.map(leases.undo({ mutex, id: waiter.attempt.id }), () => this.abandon(waiter))
        case "leave":
          this.take(waiter)
          this.happens("Left", waiter)
          return Effect.void
        case "release":
          return leases.giveUp(waiter.lease)
      }
    })
  }

  lost(lease: HeldLease): void {
    if (this.held !== lease) return
    this.held = undefined
    this.carryOut(linePlan.ended(this.line, "Lost"))
  }

  /**
   * Called by `heldLeases` before a release. Returns undefined if the next fiber in line now has the lease and nothing
   * must be sent. Returns `{}` for a plain release; otherwise the release also queues the waiters' place.
   */
  released(lease: HeldLease, now: Instant): Parting | undefined {
    if (this.held !== lease) return {}
    const waiter = this.waiters.first
    if (waiter !== undefined && this.handOn(lease, waiter, now)) return undefined
    this.held = undefined
    const command = linePlan.ended(this.line, "Released")
    this.carryOut(command)
    if (command !== "requeue") return {}
    if (waiter === undefined) throw new Error("a release queued a place without a waiter")
    return this.ownPlace().requeue(waiter, now)
  }

  /** Passes the lease to the next waiter without a request, if possible. The last holder's work has ended. */
  private handOn(lease: HeldLease, waiter: LocalWaiter, now: Instant): boolean {
    const { settings } = waiter.attempt
    if (!localTurn.continues(this.turnBegan, lease, settings, now)) return false
    // No other grant has this token: `isFresh` requires a spare one, and the grant has reserved its whole stride
    const heir = new HeldLease(this.mutex, lease.id, lease.token + 1 as FencingToken, settings, now)
    heir.inherit(lease)
    this.context.recorder.update(MutexMetrics.mutex.localHandOffs, 1, this.mutex)
    this.serve("HandedOn", waiter, heir, this.turnBegan)
    return true
  }

  won(place: FleetPlace, lease: HeldLease, isHandOff: boolean): void {
    this.end(place)
    this.reached()
    if (place.state.wasFree) this.layer.contended.delete(this.mutex)
    if (isHandOff) this.context.recorder.update(MutexMetrics.mutex.handOffs, 1, this.mutex)
    const waiter = this.waiters.first
    if (waiter === undefined) throw new Error("a place without a waiter was granted the mutex")
    this.serve("Won", waiter, lease, this.context.now().monotonic)
  }

  asked(now: number): void {
    silencePlan.asked(this.silence, now, this.waiters.first !== undefined)
    this.setTimer()
  }

  reached(): void {
    silencePlan.replied(this.silence)
    this.setTimer()
  }

  /**
   * Returns the outage if, because of it, a waiter that gives up after `timeout` cannot know whether the mutex is
   * taken.
   */
  problemOf(timeout: Duration.Duration): BackendError | undefined {
    const { confirmTimeout, now } = this.context
    return silencePlan.problemOf(this.silence, timeout, confirmTimeout, now().monotonic)
  }

  /** Sets the timer to `silence.giveUpAt`. For most requests of a turn, it is already set. */
  private setTimer(): void {
    const { giveUpAt } = this.silence
    if (giveUpAt === this.ringsAt) return
    const { timers } = this.context
    this.ringsAt = giveUpAt
    this.stopTimer?.()
    this.stopTimer = giveUpAt === Infinity ? undefined : timers.at(giveUpAt, () => {
      this.ringsAt = Infinity
      const outage = silencePlan.rang(this.silence)
      if (outage !== undefined && !timers.isClosed()) this.outage(outage)
    })
  }

  /** Fails the waiters that have waited for a whole lease since the outage began. */
  outage(error: BackendError): void {
    const now = this.context.now().monotonic
    const began = silencePlan.failed(this.silence, now, error)
    let next = Infinity
    for (let waiter = this.waiters.first; waiter !== undefined;) {
      const { attempt, next: behind, since } = waiter
      const end = Math.max(began, since) + attempt.settings.leaseMillis
      if (now >= end) this.conclude(waiter, Exit.fail(error))
      else next = Math.min(next, end)
      waiter = behind
    }
    silencePlan.waits(this.silence, next)
    this.setTimer()
  }

  failed(error: StoreError): void {
    this.reached()
    if (this.waiters.first !== undefined) this.conclude(this.waiters.first, Exit.fail(error))
  }

  /** Fails all waiters. */
  close(): void {
    while (this.waiters.first !== undefined) this.conclude(this.waiters.first, Exit.fail(closed()))
  }

  private hold(
    event: "Granted" | "Won" | "HandedOn",
    waiter: LocalWaiter,
    lease: HeldLease,
    turnBegan: number
  ): void {
    waiter.lease = this.held = lease
    this.turnBegan = turnBegan
    this.happens(event, waiter)
    this.layer.leases.add(lease)
  }

  private serve(event: "Won" | "HandedOn", waiter: LocalWaiter, lease: HeldLease, turnBegan: number): void {
    this.take(waiter)
    this.hold(event, waiter, lease, turnBegan)
    // A grant by message may last for only a confirm period, but work that blocks the event loop needs the whole lease
    if (lease.isUnconfirmed) this.layer.leases.confirm(lease)
    waiter.conclude(Exit.succeed(lease))
  }

  private conclude(waiter: LocalWaiter, exit: Parameters<LocalWaiter["conclude"]>[0]): void {
    this.take(waiter)
    this.happens("Left", waiter)
    waiter.conclude(exit)
  }

  private take(waiter: LocalWaiter): void {
    const { recorder } = this.context
    this.waiters.remove(waiter)
    recorder.modify(MutexMetrics.mutex.waiters, -1, this.mutex)
    recorder.update(MutexMetrics.mutex.waitTime, this.context.now().monotonic - waiter.since, this.mutex)
  }

  private happens(event: linePlan.FiberEvent, waiter: LocalWaiter): void {
    this.carryOut(linePlan.next(this.line, event, waiter))
  }

  /** Executes a command. `requeue` is left to the release that it belongs to. */
  private carryOut(command: linePlan.Command): void {
    if (command === "listen") this.begin()
    else if (command === "contend") (this.place ?? this.begin()).contend()
    else if (command === "abandon") this.abandonPlace(this.ownPlace())
    const { layer: { queues, selfDeadlocks }, line: { phase } } = this
    if (phase === "awaited") (this.selfDeadlock ??= new SelfDeadlockWarning(this, selfDeadlocks)).watch()
    else if (phase === "idle" && queues[this.mutex] === this) {
      delete queues[this.mutex]
      this.selfDeadlock?.stop()
      this.stopTimer?.()
    }
  }

  private ownPlace(): FleetPlace {
    if (this.place === undefined) throw new Error(`the line is ${this.line.phase} but has no place`)
    return this.place
  }

  private begin(): FleetPlace {
    return this.place = new FleetPlace(this, this.layer.nextId())
  }

  private end(place: FleetPlace): void {
    this.place = undefined
    place.end()
  }

  /**
   * Ends the place. If the backend may know about the place, undoes its requests in the background (H7,
   * docs/protocol.md).
   */
  private abandonPlace(place: FleetPlace): void {
    const { id, isKnown } = place
    this.end(place)
    if (isKnown) this.context.fork(this.layer.leases.undo({ mutex: this.mutex, id }))
  }

  /** The place crashed. Its first waiter fails too, and the others continue. */
  crashed(place: FleetPlace, cause: Cause.Cause<StoreError>): void {
    if (place.isOver) return
    this.abandonPlace(place)
    const waiter = this.waiters.first
    if (waiter !== undefined) this.take(waiter)
    this.carryOut(linePlan.crashed(this.line, waiter))
    waiter?.conclude(Exit.failCause(cause))
  }
}
