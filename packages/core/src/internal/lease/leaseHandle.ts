/**
 * `protect`, which runs work under leases, and `LeaseHandle`, the base class of the lease objects that users see. The
 * `leaseHandle` modules for mutexes and data streams extend it. `service` implements `withLock` with `protect`.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { LeaseLost } from "../../SimbaError.ts"
import { Handle, timeLeft } from "../handleBase.ts"
import type { Instant } from "./instant.ts"
import type { LeaseTable } from "./leaseTable.ts"
import { awaitExit, isolate } from "./observers.ts"
import type { OwnedLease } from "./ownedLease.ts"
import { Containing, type Protection, remains, settle } from "./protectedWork.ts"

export type Table<L extends OwnedLease> = Pick<LeaseTable<L, never>, "now" | "check" | "tasks">

/**
 * Derives the context of protected work from its parent's. `own` identifies the work; `protect` sets its fiber later.
 */
type Inside = (context: Context.Context<never>, own: Protection) => Context.Context<never>

/**
 * Adds the work to `Containing`: an effect inside the work that ends the lease then does not wait for itself. Drops
 * ended work, which a detached fiber may have inherited.
 */
const contain: Inside = (context, own) => {
  const running = Context.get(context, Containing).filter(({ work }) => work?.pollUnsafe() === undefined)
  return Context.add(context, Containing, [...running, own])
}

/** Runs the effect in a separate fiber, which is interrupted when one of the leases ends or is lost. */
export const protect = <L extends OwnedLease, A, E, R>(
  table: Table<L>,
  held: ReadonlyArray<L>,
  effect: Effect.Effect<A, E, R>,
  inside: Inside = contain
): Effect.Effect<A, E | LeaseLost, R> => {
  /** Checks all leases first, because ending one runs finalizers of its work, which may end another. */
  const check = () => {
    const now = table.now()
    for (const lease of held) table.check(lease, now)
  }
  return Effect.uninterruptibleMask((restore) =>
    Effect.withFiber<A, E | LeaseLost, R>((parent) => {
      // Check and start in one step: a lease could end during a yield in between
      check()
      const closed = held.find((lease) => !lease.takesWork)
      if (closed !== undefined) return Effect.fail(closed.over)
      for (const lease of held) lease.work.start()
      const own: Protection = { work: undefined }
      const fiber = own.work = Effect.runForkWith(inside(parent.context, own) as Context.Context<R>)(effect)
      for (const lease of held) lease.work.add(fiber, !lease.isOpen())
      const remove = () => {
        for (const lease of held) lease.work.remove(fiber)
      }
      /** The lease that the work has lost. A lease ended by its owner counts only if that interrupted the work. */
      const lost = () => {
        check()
        return held.find((lease) => lease.loss !== undefined || lease.work.wasEnded(fiber))
      }
      const exit = fiber.pollUnsafe()
      if (exit !== undefined) {
        // The work has already ended, perhaps because `add` interrupted it
        remove()
        return settle(exit, lost())
      }
      // Interrupts in slices: leases lost together interrupt all their work before most of it resumes
      const ended = awaitExit(fiber, parent, (resume) =>
        held.some(({ loss }) => loss !== undefined)
          ? table.tasks.add(resume)
          : resume())
      return restore(ended).pipe(
        Effect.onInterrupt(() => {
          isolate(fiber, () => fiber.interruptUnsafe(parent.id))
          return Effect.flatMap(ended, remains)
        }),
        Effect.ensuring(Effect.sync(remove)),
        Effect.flatMap((exit) => settle(exit, lost()))
      )
    })
  )
}

export abstract class LeaseHandle<L extends OwnedLease> extends Handle {
  protected readonly table: Table<L>
  protected readonly lease: L

  constructor(table: Table<L>, lease: L) {
    super()
    this.table = table
    this.lease = lease
  }

  get token() {
    return this.lease.token
  }

  get isHeld() {
    return Effect.sync(() => this.isHeldAt())
  }

  get ensure() {
    return Effect.suspend(() => this.isHeldAt() ? Effect.void : Effect.fail(this.lease.over))
  }

  get timeLeft() {
    return Effect.sync(() => {
      const now = this.table.now()
      return Duration.millis(this.isHeldAt(now) ? this.lease.left(now) : 0)
    })
  }

  get lost(): Effect.Effect<LeaseLost> {
    return this.lease.onLoss.next(() => this.isHeldAt() ? undefined : Effect.succeed(this.lease.over))
  }

  get protect() {
    return <A, E, R>(effect: Effect.Effect<A, E, R>) => protect(this.table, [this.lease], effect)
  }

  /** For `toJSON`: printing must not end an overdue lease. */
  protected get shownTimeLeft(): string {
    return timeLeft(this.lease.isHeld() ? this.lease.left(this.table.now()) : 0)
  }

  isHeldAt(now: Instant = this.table.now()): boolean {
    this.table.check(this.lease, now)
    return this.lease.isHeld()
  }
}
