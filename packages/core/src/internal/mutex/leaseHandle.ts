/** What users see of their leases: a handle for one, a handle for several, and protected work. `service` makes them. */
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { FencingToken } from "../../FencingToken.ts"
import type { Lease, LeaseGroup } from "../../Lease.ts"
import type { LeaseLost } from "../../SimbaError.ts"
import { Handle, timeLeft } from "../handleBase.ts"
import { awaitExit, isolate } from "../lease/observers.ts"
import { remains, settle } from "../lease/protectedWork.ts"
import type { HeldLease } from "./heldLease.ts"
import type { HeldLeases } from "./heldLeases.ts"

const lossOf = (lease: HeldLease): LeaseLost | undefined =>
  lease.state === "held" ? undefined : lease.loss ?? lease.lossOf("Released")

/** The loss of the lease, if it is over now. */
const over = (leases: HeldLeases, lease: HeldLease): LeaseLost | undefined => {
  leases.check(lease, leases.now())
  return lossOf(lease)
}

/** The loss of the first lease that is over. Ending one runs finalizers of its work, which may release another. */
const anyOver = (leases: HeldLeases, all: ReadonlyArray<HeldLease>): LeaseLost | undefined => {
  const now = leases.now()
  for (const lease of all) leases.check(lease, now)
  for (const lease of all) {
    const loss = lossOf(lease)
    if (loss !== undefined) return loss
  }
  return undefined
}

/** Runs the effect in a fiber of its own, which a loss interrupts. `inside` changes the context that it inherits. */
export const protect = <A, E, R>(
  leases: HeldLeases,
  held: ReadonlyArray<HeldLease>,
  effect: Effect.Effect<A, E, R>,
  inside?: (context: Context.Context<never>) => Context.Context<never>
): Effect.Effect<A, E | LeaseLost, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.withFiber<A, E | LeaseLost, R>((parent) => {
      const before = anyOver(leases, held)
      if (before !== undefined) return Effect.fail(before)
      const context = inside === undefined ? parent.context : inside(parent.context)
      for (const lease of held) lease.startWork()
      const fiber = Effect.runForkWith(context as Context.Context<R>)(effect)
      for (const lease of held) lease.addWork(fiber)
      const remove = () => {
        for (const lease of held) lease.removeWork(fiber)
      }
      const exit = fiber.pollUnsafe()
      if (exit !== undefined) {
        // An interruption by `addWork` may have ended it
        remove()
        return settle(exit, anyOver(leases, held))
      }
      // Leases that are lost together interrupt all their work before any of it continues
      const ended = awaitExit(fiber, parent, (resume) =>
        held.some(({ state }) => state === "lost")
          ? leases.tasks.add(resume)
          : resume())
      return restore(ended).pipe(
        Effect.onInterrupt(() => {
          isolate(fiber, () => fiber.interruptUnsafe(parent.id))
          return Effect.flatMap(ended, remains)
        }),
        Effect.ensuring(Effect.sync(remove)),
        Effect.flatMap((exit) => settle(exit, anyOver(leases, held)))
      )
    })
  )

export class LeaseImpl extends Handle implements Lease {
  private readonly leases: HeldLeases
  private readonly lease: HeldLease

  constructor(leases: HeldLeases, lease: HeldLease) {
    super()
    this.leases = leases
    this.lease = lease
  }

  get mutex() {
    return this.lease.mutex
  }

  get id() {
    return this.lease.id
  }

  get token() {
    return this.lease.token
  }

  get isHeld() {
    return Effect.sync(() => over(this.leases, this.lease) === undefined)
  }

  get ensure() {
    return Effect.suspend(() => {
      const loss = over(this.leases, this.lease)
      return loss === undefined ? Effect.void : Effect.fail(loss)
    })
  }

  get timeLeft() {
    return Effect.sync(() =>
      over(this.leases, this.lease) === undefined
        ? Duration.millis(this.lease.left(this.leases.now()))
        : Duration.zero
    )
  }

  get lost() {
    return Effect.withFiber((waiting) =>
      // Check and subscribe in one step: a yield in between could miss the loss
      Effect.callback<LeaseLost>((resume) => {
        const loss = over(this.leases, this.lease)
        if (loss !== undefined) return resume(Effect.succeed(loss))
        const unlisten = this.lease.onLoss.add((loss) => isolate(waiting, () => resume(Effect.succeed(loss))))
        return Effect.sync(unlisten)
      })
    )
  }

  get protect(): Lease["protect"] {
    return (effect) => protect(this.leases, [this.lease], effect)
  }

  override toJSON() {
    const { id, mutex, state, token } = this.lease
    return { mutex, id, token, timeLeft: timeLeft(state === "held" ? this.lease.left(this.leases.now()) : 0) }
  }
}

export class LeaseGroupImpl extends Handle implements LeaseGroup {
  readonly leases: ReadonlyArray<Lease>
  readonly tokens: ReadonlyMap<string, FencingToken>
  readonly protect: LeaseGroup["protect"]

  constructor(leases: ReadonlyArray<Lease>, protect: LeaseGroup["protect"]) {
    super()
    this.leases = leases
    this.tokens = new Map(leases.map((lease) => [lease.mutex, lease.token]))
    this.protect = protect
  }

  get isHeld() {
    return Effect.map(Effect.forEach(this.leases, (lease) => lease.isHeld), (held) => held.every(Boolean))
  }

  get ensure() {
    return Effect.forEach(this.leases, (lease) => lease.ensure, { discard: true })
  }

  get timeLeft() {
    return Effect.map(
      Effect.forEach(this.leases, (lease) => lease.timeLeft),
      (left) => left.reduce((a, b) => Duration.min(a, b))
    )
  }

  get lost() {
    return Effect.raceAllFirst(this.leases.map((lease) => lease.lost))
  }

  override toJSON() {
    return { leases: this.leases.map((lease) => lease.toJSON()) }
  }
}
