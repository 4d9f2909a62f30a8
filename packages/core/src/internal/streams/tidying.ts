/** Removing what nobody needs: consumers that are gone, entries that were finished but not deleted. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { Client } from "./client.ts"
import { type Fleet, isFirst } from "./fleet.ts"

/** At a slow pace, by one member of the fleet. */
export const loop = ({ config, store }: Client, fleet: Fleet): Effect.Effect<never> =>
  Effect.forever(
    Effect.gen(function*() {
      const factor = yield* Random.nextBetween(0.5, 1)
      yield* Effect.sleep(Duration.times(config.reapAfter, factor))
      if (!isFirst(fleet, config.consumer)) return
      const { consumers, entries } = yield* store.tidy(config.reapAfter)
      if (consumers + entries > 0) {
        yield* Effect.logInfo(`Removed ${consumers} silent consumer(s) and ${entries} finished announcement(s)`)
      }
    }).pipe(
      Effect.catch((error) => Effect.logWarning(`Cannot tidy up, and tries again later: ${error.message}`))
    )
  )
