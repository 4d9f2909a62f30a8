import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { LeaseLost } from "../Errors.ts"
import { type Lease, TypeId } from "../Lease.ts"
import { type Holding, instant } from "./holding.ts"
import type { Leases } from "./leases.ts"

/** The loss of the lease, if it is over at this instant. */
const over = (leases: Leases, holding: Holding): Effect.Effect<LeaseLost | undefined> =>
  Clock.clockWith((clock) =>
    Effect.sync(() => {
      leases.check(holding, instant(clock))
      return holding.state === "held" ? undefined : holding.loss ?? released(holding)
    })
  )

const released = ({ id, mutex, token }: Holding) => new LeaseLost({ mutex, id, token, reason: "Released" })

/** The loss wins over a success and over the interruption that it caused; a failure of the work stays its own. */
const settle = <A, E>(exit: Exit.Exit<A, E>, loss: LeaseLost | undefined): Effect.Effect<A, E | LeaseLost> => {
  if (loss === undefined || (Exit.isFailure(exit) && (Cause.hasFails(exit.cause) || !Exit.hasInterrupts(exit)))) {
    return exit
  }
  return Exit.isFailure(exit) && Cause.hasDies(exit.cause)
    ? Effect.andThen(Effect.logError("Work that lost its lease died while it was interrupted", exit.cause), loss)
    : Effect.fail(loss)
}

export const protect = <A, E, R>(
  leases: Leases,
  holding: Holding,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | LeaseLost, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(over(leases, holding), (before) => {
      if (before !== undefined) return Effect.fail(before)
      return Effect.flatMap(Effect.forkChild(effect, { startImmediately: true }), (fiber) => {
        const ended = holding.addWork(fiber)
        return restore(Fiber.await(fiber)).pipe(
          Effect.onInterrupt(() => Fiber.interrupt(fiber)),
          Effect.ensuring(Effect.sync(ended)),
          Effect.flatMap((exit) => Effect.flatMap(over(leases, holding), (loss) => settle(exit, loss)))
        )
      })
    })
  )

export class LeaseImpl implements Lease {
  readonly [TypeId] = TypeId
  private readonly leases: Leases
  private readonly holding: Holding

  constructor(leases: Leases, holding: Holding) {
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
    return Effect.map(over(this.leases, this.holding), (loss) => loss === undefined)
  }

  get ensure() {
    return Effect.flatMap(
      over(this.leases, this.holding),
      (loss) => loss === undefined ? Effect.void : Effect.fail(loss)
    )
  }

  get timeLeft() {
    return Effect.flatMap(
      this.isHeld,
      (held) =>
        Clock.clockWith((clock) =>
          Effect.succeed(held ? Duration.millis(this.holding.left(instant(clock))) : Duration.zero)
        )
    )
  }

  get lost() {
    return Effect.flatMap(
      over(this.leases, this.holding),
      (loss) =>
        loss !== undefined ? Effect.succeed(loss) : Effect.callback<LeaseLost>((resume) => {
          const unlisten = this.holding.onLoss((loss) => resume(Effect.succeed(loss)))
          return Effect.sync(unlisten)
        })
    )
  }

  readonly protect: Lease["protect"] = (effect) => protect(this.leases, this.holding, effect)
}
