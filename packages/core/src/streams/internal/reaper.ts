/** Keeping what is needed for longer, and removing what nobody needs: consumers that are gone, entries that were finished but not deleted. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { persist } from "../../internal/lease/storeFailure.ts"
import type { ClientContext } from "./context.ts"
import { type Fleet, isFirst } from "./members.ts"

/** Of what is owned for long and commits nothing. Backends keep them for a week. */
export const keeping = ({ store, table }: ClientContext): Effect.Effect<never> =>
  Effect.forever(Effect.gen(function*() {
    yield* Effect.sleep("1 day")
    const streams = Array.from(table.all(), ({ stream }) => stream)
    yield* Effect.catch(
      persist("Keeping checkpoints", store.keepCheckpoints(streams)),
      (error) => Effect.logWarning(`Checkpoints cannot be kept: ${error.message}`)
    )
  }))

/** At a slow pace, by one member of the fleet. */
export const loop = ({ config, store }: ClientContext, fleet: Fleet): Effect.Effect<never> =>
  Effect.forever(
    Effect.gen(function*() {
      const factor = yield* Random.nextBetween(0.5, 1)
      yield* Effect.sleep(Duration.times(config.reapAfter, factor))
      if (!isFirst(fleet, config.consumer)) return
      const { consumers, entries } = yield* store.reap(config.reapAfter)
      if (consumers + entries > 0) {
        yield* Effect.logInfo(`Removed ${consumers} silent consumer(s) and ${entries} finished announcement(s)`)
      }
    }).pipe(
      Effect.catch((error) => Effect.logWarning(`Cannot tidy up, and tries again later: ${error.message}`))
    )
  )
