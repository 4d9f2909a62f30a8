import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Lease } from "../../Lease.ts"
import { LeaseLost } from "../../SimbaError.ts"
import { Handle, LeaseTypeId, timeLeft } from "../handle.ts"
import { awaitExit, isolate } from "../lease/observers.ts"
import type { HeldLease } from "./heldLease.ts"
import type { HeldLeases } from "./heldLeases.ts"

/** The loss of the lease, if it is over at this instant. */
const over = (leases: HeldLeases, holding: HeldLease): LeaseLost | undefined => {
  leases.check(holding, leases.now())
  return holding.state === "held" ? undefined : holding.loss ?? released(holding)
}

/** The same of the first of them that is. */
const anyOver = (leases: HeldLeases, holdings: ReadonlyArray<HeldLease>): LeaseLost | undefined => {
  for (const holding of holdings) {
    const loss = over(leases, holding)
    if (loss !== undefined) return loss
  }
  return undefined
}

const released = ({ id, mutex, token }: HeldLease) => new LeaseLost({ mutex, id, token, reason: "Released" })

/** The loss wins over a success and over the interruption that it caused; a failure of the work stays its own. */
const settle = <A, E>(exit: Exit.Exit<A, E>, loss: LeaseLost | undefined): Effect.Effect<A, E | LeaseLost> => {
  if (loss === undefined || (Exit.isFailure(exit) && (Cause.hasFails(exit.cause) || !Exit.hasInterrupts(exit)))) {
    return exit
  }
  return Exit.isFailure(exit) && Cause.hasDies(exit.cause)
    ? Effect.andThen(Effect.logError("Work that lost its lease died while it was interrupted", exit.cause), loss)
    : Effect.fail(loss)
}

/** Of work that was interrupted from outside: what else it came to, its finalizers above all, is not to be swallowed. */
const remains = <E>(exit: Exit.Exit<unknown, E>): Effect.Effect<void, E> => {
  if (Exit.isSuccess(exit)) return Effect.void
  const reasons = exit.cause.reasons.filter((reason) => !Cause.isInterruptReason(reason))
  return reasons.length === 0 ? Effect.void : Effect.failCause(Cause.fromReasons(reasons))
}

/**
 * In a fiber of its own, which is what a loss interrupts. It is made without more ado than it takes: it inherits the
 * context, and whoever runs this waits for its end in any case. `inside` changes that context.
 */
export const protect = <A, E, R>(
  leases: HeldLeases,
  holdings: ReadonlyArray<HeldLease>,
  effect: Effect.Effect<A, E, R>,
  inside?: (context: Context.Context<never>) => Context.Context<never>
): Effect.Effect<A, E | LeaseLost, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.withFiber<A, E | LeaseLost, R>((parent) => {
      const before = anyOver(leases, holdings)
      if (before !== undefined) return Effect.fail(before)
      const context = inside === undefined ? parent.context : inside(parent.context)
      for (const holding of holdings) holding.startWork()
      const fiber = Effect.runForkWith(context as Context.Context<R>)(effect)
      for (const holding of holdings) holding.addWork(fiber)
      const remove = () => {
        for (const holding of holdings) holding.removeWork(fiber)
      }
      const exit = fiber.pollUnsafe()
      if (exit !== undefined) {
        // Interrupted as it was added, it may have ended by that
        remove()
        return settle(exit, anyOver(leases, holdings))
      }
      const ended = awaitExit(fiber, parent)
      return restore(ended).pipe(
        Effect.onInterrupt(() => {
          isolate(fiber, () => fiber.interruptUnsafe(parent.id))
          return Effect.flatMap(ended, remains)
        }),
        Effect.ensuring(Effect.sync(remove)),
        Effect.flatMap((exit) => settle(exit, anyOver(leases, holdings)))
      )
    })
  )

export class LeaseImpl extends Handle implements Lease {
  // Set below: with a computed field, bundlers keep a class that nobody uses
  declare readonly [LeaseTypeId]: typeof LeaseTypeId
  private readonly leases: HeldLeases
  private readonly holding: HeldLease

  constructor(leases: HeldLeases, holding: HeldLease) {
    super()
    this[LeaseTypeId] = LeaseTypeId
    this.leases = leases
    this.holding = holding
  }

  get mutex() {
    return this.holding.mutex
  }

  get id() {
    return this.holding.id
  }

  get token() {
    return this.holding.token
  }

  get isHeld() {
    return Effect.sync(() => over(this.leases, this.holding) === undefined)
  }

  get ensure() {
    return Effect.suspend(() => {
      const loss = over(this.leases, this.holding)
      return loss === undefined ? Effect.void : Effect.fail(loss)
    })
  }

  get timeLeft() {
    return Effect.sync(() =>
      over(this.leases, this.holding) === undefined
        ? Duration.millis(this.holding.left(this.leases.now()))
        : Duration.zero
    )
  }

  get lost() {
    return Effect.withFiber((waiting) => {
      const loss = over(this.leases, this.holding)
      return loss !== undefined ? Effect.succeed(loss) : Effect.callback<LeaseLost>((resume) => {
        const unlisten = this.holding.onLoss.add((loss) => isolate(waiting, () => resume(Effect.succeed(loss))))
        return Effect.sync(unlisten)
      })
    })
  }

  get protect(): Lease["protect"] {
    return (effect) => protect(this.leases, [this.holding], effect)
  }

  override toJSON() {
    const { id, mutex, state, token } = this.holding
    return { mutex, id, token, timeLeft: timeLeft(state === "held" ? this.holding.left(this.leases.now()) : 0) }
  }
}
