/** What the fibers of one layer share that want the same mutex: one place in the fleet's queue, and one line behind it. */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { FencingToken } from "../../FencingToken.ts"
import type { MutexConfig } from "../../MutexConfig.ts"
import * as MutexMetrics from "../../MutexMetrics.ts"
import type { ContenderId, MutexName } from "../../MutexName.ts"
import type { MutexStore, Released, ReleaseRequest } from "../../MutexStore.ts"
import type { BackendError } from "../../SimbaError.ts"
import { type Instant, instant } from "../lease/deadline.ts"
import type { LeaseTable } from "../lease/leaseTable.ts"
import { type Attempt, closed, type Refused, type StoreError } from "./attempt.ts"
import type { HeldLease } from "./heldLease.ts"
import { type QueueContext, QueueEntry, type State } from "./queueEntry.ts"
import { Waiter, WaiterList } from "./waiter.ts"

/** What all places of a layer have in common. */
export interface Layer {
  readonly store: MutexStore["Service"]
  readonly leases: LeaseTable
  readonly config: MutexConfig
  readonly clock: Clock.Clock
  readonly table: Map<MutexName, AcquireQueue>
  readonly nextId: () => ContenderId
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  /** Mutexes that were not free when last asked for: who asks for one of them is queued at once. */
  readonly contended: Set<MutexName>
  isClosed: boolean
}

/** Contended mutexes that are remembered. */
const maxContended = 10_000

export class AcquireQueue implements QueueContext {
  readonly mutex: MutexName
  private readonly layer: Layer
  private readonly line = new WaiterList()
  /** Requests of fibers that ask by themselves. */
  private asking = 0
  /** What one fiber of this layer holds, while the others wait for it. */
  private holding: HeldLease | undefined
  /** How often the lease may still be handed on within this process. */
  private handOvers = 0
  private turn: QueueEntry | undefined
  private outageSince: number | undefined
  private lastOwner: string | undefined

  constructor(layer: Layer, mutex: MutexName) {
    this.layer = layer
    this.mutex = mutex
  }

  get store() {
    return this.layer.store
  }

  get leases() {
    return this.layer.leases
  }

  get confirmTimeout() {
    return this.layer.config.confirmTimeout
  }

  /** Who owns the mutex, as far as is known. */
  get owner(): string | undefined {
    return this.holding?.id ?? this.lastOwner
  }

  first(): Waiter | undefined {
    return this.line.first
  }

  /** Notices that its lease is over before any timer does. A place that nobody needs any more leaves the table then. */
  check(): void {
    if (this.holding !== undefined) this.leases.check(this.holding, instant(this.layer.clock))
  }

  /** Whether nobody of this layer holds the mutex or waits for it, so that there is a point in asking. */
  isOpen(): boolean {
    return this.holding === undefined && this.line.first === undefined
  }

  /** Answers whether the caller is to ask by itself: it is alone, and the mutex may well be free. */
  comesFirst(): boolean {
    const { contended, store } = this.layer
    return this.asking === 0 && this.isOpen() && !(contended.has(this.mutex) && store.isListening === true)
  }

  /** The caller asks, and says how that ended by one of `granted`, `refused` and `gaveUp`. */
  ask(): void {
    this.asking++
  }

  granted(holding: HeldLease, attempt: Attempt): void {
    this.asking--
    this.reached()
    this.layer.contended.delete(this.mutex)
    this.hold(holding, attempt.maxLocalHandOffs)
  }

  refused(refused: Refused): void {
    const { contended } = this.layer
    this.reached()
    contended.add(this.mutex)
    if (contended.size > maxContended) contended.delete(contended.values().next().value!)
    this.lastOwner = refused.ownership._tag === "Held" ? refused.ownership.owner : undefined
  }

  gaveUp(): void {
    this.asking--
    this.advance()
  }

  /** Joins the line: at its head if the caller has asked by itself and was refused. */
  join(attempt: Attempt, fiber: Fiber.Fiber<unknown, unknown>, asked: boolean): Waiter {
    const waiter = new Waiter(attempt, this.layer.clock, fiber.currentDispatcher)
    this.leases.recorder.modify(MutexMetrics.waiters, 1, this.mutex)
    if (asked) {
      this.asking--
      this.line.unshift(waiter)
    } else this.line.push(waiter)
    if (this.layer.isClosed) this.conclude(waiter, Exit.fail(closed()))
    this.advance()
    return waiter
  }

  /** A waiter that does not want the mutex any more, and may have been granted it. */
  leave(waiter: Waiter): Effect.Effect<void> {
    if (waiter.holding !== undefined) return this.leases.undo(waiter.holding, waiter.holding)
    if (waiter.isInLine) {
      this.take(waiter)
      this.advance()
    }
    return Effect.void
  }

  /** Hands the lease on to the next in line without the backend. Whatever its holder protected has ended. */
  pass(holding: HeldLease, now: Instant): boolean {
    const waiter = this.line.first
    if (this.holding !== holding || waiter === undefined || this.handOvers <= 0) return false
    if (!holding.isFresh(now) || !holding.fits(waiter.attempt)) return false
    const heir = waiter.holdingOf(holding.id, holding.token + 1 as FencingToken, now)
    heir.inherit(holding)
    this.leases.recorder.update(MutexMetrics.localHandOffs, 1, this.mutex)
    this.serve(waiter, heir, Math.min(this.handOvers - 1, waiter.attempt.maxLocalHandOffs))
    return true
  }

  /** What a release of this lease is to take along: the next turn, if somebody waits for it. */
  parting(holding: HeldLease, now: Instant): Pick<ReleaseRequest, "requeue"> & {
    readonly settled?: ((released: Released | undefined) => void) | undefined
  } {
    if (this.holding !== holding) return {}
    this.holding = undefined
    const waiter = this.line.first
    if (waiter === undefined) {
      this.advance()
      return {}
    }
    const turn = this.turn ?? this.begin("requeueing")
    if (turn.isOver) return {}
    turn.requeueing(waiter, now)
    return {
      requeue: {
        id: turn.id,
        lease: Duration.sum(waiter.attempt.ttl, waiter.attempt.transition),
        reserve: waiter.attempt.maxLocalHandOffs
      },
      settled: (released) => {
        const next = turn.settled(released, instant(this.layer.clock))
        if (next !== undefined) this.won(turn, next, true)
      }
    }
  }

  lost(holding: HeldLease): void {
    if (this.holding !== holding) return
    this.holding = undefined
    this.advance()
  }

  won(turn: QueueEntry, holding: HeldLease, handedOff: boolean): void {
    this.end(turn)
    if (turn.wasFree) this.layer.contended.delete(this.mutex)
    if (handedOff) this.leases.recorder.update(MutexMetrics.handOffs, 1, this.mutex)
    const waiter = this.line.first!
    this.serve(waiter, holding, waiter.attempt.maxLocalHandOffs)
  }

  reached(): void {
    this.outageSince = undefined
  }

  /** Each waiter fails by itself, once it has seen nothing but the outage for as long as its lease would last. */
  outage(error: BackendError, since?: number): void {
    const now = instant(this.layer.clock).monotonic
    const began = this.outageSince ??= since ?? now
    for (let waiter = this.line.first; waiter !== undefined;) {
      const { attempt, next, since } = waiter
      if (now - Math.max(began, since) >= Duration.toMillis(Duration.sum(attempt.ttl, attempt.transition))) {
        this.conclude(waiter, Exit.fail(error))
      }
      waiter = next
    }
    if (this.line.first === undefined) this.advance()
  }

  failed(error: StoreError): void {
    const waiter = this.line.first
    if (waiter !== undefined) this.conclude(waiter, Exit.fail(error))
    if (this.line.first === undefined) this.advance()
  }

  /** The layer is closed: nobody contends any more. */
  close(): Fiber.Fiber<unknown, unknown> | undefined {
    for (let waiter = this.line.first; waiter !== undefined; waiter = this.line.first) {
      this.conclude(waiter, Exit.fail(closed()))
    }
    const fiber = this.turn?.fiber
    this.holding = undefined
    this.advance()
    return fiber
  }

  private hold(holding: HeldLease, handOvers: number): void {
    holding.place = this
    this.holding = holding
    this.handOvers = handOvers
    this.leases.add(holding)
    this.advance()
  }

  private serve(waiter: Waiter, holding: HeldLease, handOvers: number): void {
    waiter.holding = holding
    this.take(waiter)
    this.hold(holding, handOvers)
    waiter.conclude(Exit.succeed(holding))
  }

  private conclude(waiter: Waiter, exit: Parameters<Waiter["conclude"]>[0]): void {
    this.take(waiter)
    waiter.conclude(exit)
  }

  private take(waiter: Waiter): void {
    const { recorder } = this.leases
    this.line.remove(waiter)
    recorder.modify(MutexMetrics.waiters, -1, this.mutex)
    recorder.update(MutexMetrics.waitTime, instant(this.layer.clock).monotonic - waiter.since, this.mutex)
  }

  /** Does what there is to do for those in line, if it is not being done already. */
  private advance(): void {
    const waiter = this.line.first
    if (this.holding !== undefined) {
      // H4: who cannot have the lease from hand to hand will be queued by its release, and must be able to hear then
      if (waiter !== undefined && this.turn === undefined && this.handOvers === 0) this.begin("prepared")
      return
    }
    if (waiter === undefined) {
      if (this.turn !== undefined) this.abandon(this.turn)
      if (this.asking === 0 && this.layer.table.get(this.mutex) === this) this.layer.table.delete(this.mutex)
      return
    }
    if (this.asking > 0) return
    if (this.turn === undefined) this.begin("contending")
    else if (this.turn.state === "prepared") this.turn.contend()
  }

  private begin(state: State): QueueEntry {
    const turn = this.turn = new QueueEntry(this, this.layer.nextId(), state)
    turn.fiber = this.layer.run(turn.run)
    turn.fiber.addObserver((exit) => this.died(turn, exit))
    return turn
  }

  private end(turn: QueueEntry): void {
    turn.state = "over"
    this.turn = undefined
    turn.fiber?.interruptUnsafe()
  }

  /** H7: what the backend may know of it is undone in the background. */
  private abandon(turn: QueueEntry): void {
    const { isKnown } = turn
    this.end(turn)
    if (isKnown) this.layer.run(this.leases.undo({ mutex: this.mutex, id: turn.id }))
  }

  /** A turn does not end by itself; if it dies, it does so for the first, and the others go on without it. */
  private died(turn: QueueEntry, exit: Exit.Exit<void, StoreError>): void {
    if (turn.isOver) return
    this.abandon(turn)
    const waiter = this.line.first
    if (waiter !== undefined && Exit.isFailure(exit)) this.conclude(waiter, Exit.failCause(exit.cause))
    this.advance()
  }
}
