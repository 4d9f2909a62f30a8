/**
 * Detects self-deadlock from the locks that the running fiber already holds, which are in the context of the work that
 * `withLock` runs. `service` checks them before each acquire that may wait.
 */
import * as Context from "effect/Context"
import type * as Fiber from "effect/Fiber"
import { AlreadyHeld } from "../../SimbaError.ts"
import type { HeldLease } from "./heldLease.ts"
import type { HeldLeases } from "./heldLeases.ts"

interface Nesting {
  readonly leases: HeldLeases
  readonly lease: HeldLease
  readonly outer: Nesting | undefined
}

/** The innermost lock around the running fiber. Child fibers inherit it, because they are part of the lock's work. */
const Current: Context.Reference<Nesting | undefined> = Context.Reference<Nesting | undefined>(
  "@effect-simba/core/internal/Nesting",
  { defaultValue: () => undefined }
)

/**
 * Adds the lock to the context of the work inside it. Drops locks that have ended: work that starts its next run in a
 * detached fiber would keep all of them in memory.
 */
export const provide =
  (leases: HeldLeases, lease: HeldLease) => (context: Context.Context<never>): Context.Context<never> => {
    let outer = Context.get(context, Current)
    while (outer?.lease.isOpen() === false) outer = outer.outer
    return Context.add(context, Current, { leases, lease, outer })
  }

/** Returns the error for the enclosing lock that an acquire would wait for. Ignores leases that have ended. */
export const find = (
  fiber: Fiber.Fiber<unknown, unknown>,
  leases: HeldLeases,
  mutex: string
): AlreadyHeld | undefined => {
  for (let nesting = fiber.getRef(Current); nesting !== undefined; nesting = nesting.outer) {
    const { lease } = nesting
    if (nesting.leases === leases && lease.mutex === mutex && lease.isOpen()) {
      return new AlreadyHeld({ mutex: lease.mutex, id: lease.id, token: lease.token })
    }
  }
  return undefined
}
