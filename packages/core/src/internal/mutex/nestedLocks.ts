/**
 * Detects self-deadlock from the locks that the running fiber already holds. `withLock` records them in the context of
 * its work. `service` checks them before each acquire that may wait.
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

/** The innermost lock around the running fiber. Child fibers inherit it: they are part of the lock's work. */
const Current: Context.Reference<Nesting | undefined> = Context.Reference<Nesting | undefined>(
  "@effect-simba/core/internal/Nesting",
  { defaultValue: () => undefined }
)

/** Returns the locks that have not ended. */
const open = (nesting: Nesting | undefined): Nesting | undefined => {
  if (nesting === undefined) return undefined
  const outer = open(nesting.outer)
  return nesting.lease.isOpen() ? { ...nesting, outer } : outer
}

/**
 * Adds the lock to the context of the work inside it. Drops locks that have ended: if each run started the next one in
 * a detached fiber, all their locks would stay in memory.
 */
export const provide =
  (leases: HeldLeases, lease: HeldLease) => (context: Context.Context<never>): Context.Context<never> =>
    Context.add(context, Current, { leases, lease, outer: open(Context.get(context, Current)) })

/** Returns an error if an acquire would wait for an enclosing lock. Ignores leases that have ended. */
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
