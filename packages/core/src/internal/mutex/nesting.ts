/** Which locks the running fiber is inside of, so that one that would wait for itself can be told so. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { MutexName } from "../../MutexName.ts"
import { AlreadyHeld } from "../../SimbaError.ts"
import type { LeaseTable } from "../lease/leaseTable.ts"
import type { HeldLease } from "./heldLease.ts"

interface Extent {
  readonly leases: LeaseTable
  readonly holding: HeldLease
  readonly outer: Extent | undefined
}

/** Inherited by child fibers, as their work belongs to the same lock. */
const Current: Context.Reference<Extent | undefined> = Context.Reference<Extent | undefined>(
  "@effect-simba/core/internal/Extent",
  { defaultValue: () => undefined }
)

/** The context of what runs inside the lock. */
export const provide =
  (leases: LeaseTable, holding: HeldLease) => (context: Context.Context<never>): Context.Context<never> =>
    Context.add(context, Current, { leases, holding, outer: Context.get(context, Current) })

/** What an acquire would wait for that `fiber` holds itself. A lease that is over keeps nobody waiting. */
export const find = (
  fiber: Fiber.Fiber<unknown, unknown>,
  leases: LeaseTable,
  mutex: string
): AlreadyHeld | undefined => {
  for (let extent = fiber.getRef(Current); extent !== undefined; extent = extent.outer) {
    const { holding } = extent
    if (extent.leases === leases && holding.mutex === mutex && holding.isOpen()) {
      return new AlreadyHeld({ mutex: holding.mutex, id: holding.id, token: holding.token })
    }
  }
  return undefined
}

export const refuseNested = (leases: LeaseTable, mutex: MutexName): Effect.Effect<void, AlreadyHeld> =>
  Effect.withFiber((fiber) => {
    const held = find(fiber, leases, mutex)
    return held === undefined ? Effect.void : Effect.fail(held)
  })
