/** Which locks the running fiber is inside of, so that one that would wait for itself can be told so. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { AlreadyHeld } from "../Errors.ts"
import type { MutexName } from "../Names.ts"
import type { Holding } from "./holding.ts"
import type { Leases } from "./leases.ts"

interface Extent {
  readonly leases: Leases
  readonly holding: Holding
  readonly outer: Extent | undefined
}

/** Inherited by child fibers, as their work belongs to the same lock. */
const Current: Context.Reference<Extent | undefined> = Context.Reference<Extent | undefined>(
  "@effect-simba/core/internal/Extent",
  { defaultValue: () => undefined }
)

export const within = <A, E, R>(
  leases: Leases,
  holding: Holding,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => Effect.updateService(effect, Current, (outer) => ({ leases, holding, outer }))

/** A lease that is over keeps nobody waiting, so only open ones count. */
export const refuseNested = (leases: Leases, mutex: MutexName): Effect.Effect<void, AlreadyHeld> =>
  Effect.flatMap(Current, (current) => {
    for (let extent = current; extent !== undefined; extent = extent.outer) {
      const { holding } = extent
      if (extent.leases === leases && holding.mutex === mutex && holding.isOpen()) {
        return Effect.fail(new AlreadyHeld({ mutex, id: holding.id, token: holding.token }))
      }
    }
    return Effect.void
  })
