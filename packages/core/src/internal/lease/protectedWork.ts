/**
 * The work that a lease protects: how it is interrupted, awaited, and what it results in. Leases of mutexes and of data
 * streams have it; `protect`, `withLock` and handlers run in it.
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

type Contained = ReadonlyArray<{ readonly work: Work | undefined }>

/** Protected work that contains the running fiber, once its fiber is known. Child fibers inherit it. */
export const Containing: Context.Reference<Contained> = Context.Reference<Contained>(
  "@effect-simba/core/internal/Containing",
  { defaultValue: () => [] }
)

/** The fibers of one lease. They are interrupted together at its loss, and awaited before its release. */
export class ProtectedWork {
  private readonly fibers = new Set<Work>()
  /** Interrupted by `end`. */
  private ended: WeakSet<Work> | undefined
  private starting = 0
  private readonly onStarted = new Listeners<void>()

  get isEmpty(): boolean {
    return this.starting === 0 && this.fibers.size === 0
  }

  /** Work starts, and runs until it first waits. `add` follows in the same task. */
  start(): void {
    this.starting++
  }

  /** `isOver`: the synchronous part of the work may have ended the lease. */
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

  /** Whether it was interrupted because its lease was about to end as its owner asked. */
  wasEnded(work: Work): boolean {
    return this.ended?.has(work) === true
  }

  /** Does not wait. */
  interrupt(): void {
    this.fibers.forEach((work) => isolate(work, () => work.interruptUnsafe()))
  }

  /** Interrupts the work, and waits until it has ended. `spares` selects work that continues. */
  end(spares: (work: Work) => boolean = () => false): Effect.Effect<void> {
    if (this.starting === 0) return this.interruptAndAwait(spares)
    // The work has not reached its first wait, so its fiber is not known yet. It resumed the releasing fiber itself
    return Effect.withFiber((releasing) =>
      Effect.andThen(
        Effect.callback<void>((resume) => {
          if (this.starting === 0) return resume(Effect.void)
          return Effect.sync(this.onStarted.add(() => isolate(releasing, () => resume(Effect.void))))
        }),
        this.interruptAndAwait(spares)
      )
    )
  }

  private interruptAndAwait(spares: (work: Work) => boolean): Effect.Effect<void> {
    return Effect.withFiber((releasing) => {
      const others: Array<Work> = []
      this.fibers.forEach((work) => {
        if (spares(work)) return
        const ended = this.ended ??= new WeakSet()
        ended.add(work)
        isolate(work, () => work.interruptUnsafe(releasing.id))
        // Work that closes the scope of its own lease cannot wait for itself: its interruption comes after the release
        if (work !== releasing) others.push(work)
      })
      return Effect.forEach(others, (work) => awaitExit(work, releasing), { discard: true })
    })
  }
}

/** The loss replaces a success and the interruption that it caused; a failure of the work is kept. */
export const settle = <A, E>(exit: Exit.Exit<A, E>, loss: LeaseLost | undefined): Effect.Effect<A, E | LeaseLost> => {
  if (loss === undefined || (Exit.isFailure(exit) && (Cause.hasFails(exit.cause) || !Exit.hasInterrupts(exit)))) {
    return exit
  }
  if (Exit.isSuccess(exit) || !Cause.hasDies(exit.cause)) return Effect.fail(loss)
  const { id, kind, resource, token } = loss
  return log.error("Work that lost its lease crashed while it was interrupted", exit.cause).pipe(
    Effect.annotateLogs(
      kind === "mutex" ? { mutex: resource, lease: id, token } : { stream: resource, entry: id, token }
    ),
    Effect.andThen(loss)
  )
}

/** Keeps the failures of finalizers of work that was interrupted from outside. */
export const remains = <E>(exit: Exit.Exit<unknown, E>): Effect.Effect<void, E> => {
  if (Exit.isSuccess(exit)) return Effect.void
  const reasons = exit.cause.reasons.filter((reason) => !Cause.isInterruptReason(reason))
  return reasons.length === 0 ? Effect.void : Effect.failCause(Cause.fromReasons(reasons))
}
