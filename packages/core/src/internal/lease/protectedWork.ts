/**
 * The work protected by a mutex or data-stream lease: interrupts it, awaits it, and computes its result. Protected work
 * runs in `protect` and `withLock`. It does not include a data stream's handler, which `ownedStream` interrupts.
 * `ownedLease` creates a `ProtectedWork`, and `leaseHandle` adds fibers to it.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { LeaseLost } from "../../SimbaError.ts"
import * as log from "../log.ts"
import { awaitExit, isolate, Listeners } from "./observers.ts"

type Work = Fiber.Fiber<unknown, unknown>

/** Identifies protected work. `fiber` is set after the work has started. */
export interface Protection {
  work: Work | undefined
}

/** The protected work that contains the running fiber. Child fibers inherit this set. */
export const Containing: Context.Reference<ReadonlyArray<Protection>> = Context.Reference<ReadonlyArray<Protection>>(
  "@effect-simba/core/internal/Containing",
  { defaultValue: () => [] }
)

/** One lease's fibers. They are interrupted together when the lease is lost, and awaited before it is released. */
export class ProtectedWork {
  private readonly fibers = new Set<Work>()
  /** The work that `end` has interrupted. */
  private ended: WeakSet<Work> | undefined
  private starting = 0
  private readonly onStarted = new Listeners<void>()

  get isEmpty(): boolean {
    return this.starting === 0 && this.fibers.size === 0
  }

  /** Called before work starts. The work then runs until it first suspends, and `add` is called in the same task. */
  start(): void {
    this.starting++
  }

  /** `isOver`: whether the lease has ended, perhaps by the synchronous part of this work. */
  add(work: Work, isOver: boolean): void {
    this.starting--
    if (work.pollUnsafe() === undefined) {
      this.fibers.add(work)
      if (isOver) work.interruptUnsafe()
    }
    if (this.starting === 0) this.onStarted.notify()
  }

  remove(work: Work): void {
    this.fibers.delete(work)
  }

  /** Whether the work was interrupted because its owner ended the lease. */
  wasEnded(work: Work): boolean {
    return this.ended?.has(work) === true
  }

  /** Interrupts the work without waiting for it to end. */
  interrupt(): void {
    this.fibers.forEach((work) => isolate(work, () => work.interruptUnsafe()))
  }

  /**
   * Interrupts the work and waits until it has ended. Work that contains the caller cannot be awaited: it is only
   * interrupted, or continues if `spared` is set.
   */
  end({ spared = false } = {}): Effect.Effect<void> {
    // Work that has not suspended yet has no fiber, and may have resumed the caller
    const started = this.onStarted.next(() => this.starting === 0 ? Effect.void : undefined)
    return Effect.andThen(started, this.interruptAndAwait(spared))
  }

  private interruptAndAwait(spared: boolean): Effect.Effect<void> {
    return Effect.withFiber((caller) => {
      const containing = caller.getRef(Containing)
      const others: Array<Work> = []
      this.fibers.forEach((work) => {
        const containsCaller = work === caller || containing.some((one) => one.work === work)
        if (containsCaller && spared) return
        const ended = this.ended ??= new WeakSet()
        ended.add(work)
        isolate(work, () => work.interruptUnsafe(caller.id))
        if (!containsCaller) others.push(work)
      })
      return Effect.forEach(others, (work) => awaitExit(work, caller), { discard: true })
    })
  }
}

/** The result of work: `LeaseLost` if the lease was lost, unless the work itself failed. */
export const settle = <A, E>(
  exit: Exit.Exit<A, E>,
  lost: { readonly over: LeaseLost; readonly annotations: Record<string, unknown> } | undefined
): Effect.Effect<A, E | LeaseLost> => {
  if (lost === undefined || (Exit.isFailure(exit) && (Cause.hasFails(exit.cause) || !Exit.hasInterrupts(exit)))) {
    return exit
  }
  if (Exit.isSuccess(exit) || !Cause.hasDies(exit.cause)) return Effect.fail(lost.over)
  return log.error("Work that lost its lease crashed while it was interrupted", exit.cause).pipe(
    Effect.annotateLogs(lost.annotations),
    Effect.andThen(lost.over)
  )
}

/** Finalizer failures in work that was interrupted from outside. */
export const remains = <E>(exit: Exit.Exit<unknown, E>): Effect.Effect<void, E> =>
  Exit.isSuccess(exit)
    ? Effect.void
    : Effect.failCause(Cause.fromReasons(exit.cause.reasons.filter((reason) => !Cause.isInterruptReason(reason))))
