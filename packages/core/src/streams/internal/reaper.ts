/**
 * Keeps checkpoints from expiring (run by `client`), and removes dead consumers and finished entries (run by
 * `consumption`).
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { persist } from "../../internal/lease/storeRetries.ts"
import * as log from "../../internal/log.ts"
import type { ClientContext } from "./context.ts"
import { isFirst } from "./memberOrder.ts"

/**
 * Extends the retention of owned data streams' checkpoints once a day. Otherwise a checkpoint could expire while the
 * stream is owned but has few commits.
 */
export const keepCheckpoints = ({ store, table }: ClientContext): Effect.Effect<never> =>
  Effect.forever(Effect.gen(function*() {
    yield* Effect.sleep("1 day")
    const streams = Array.from(table.all(), ({ stream }) => stream)
    yield* Effect.catch(
      persist("Keeping checkpoints", store.keepCheckpoints(streams)),
      (error) => log.warning(`Cannot keep checkpoints: ${error.message}`)
    )
  }))

/**
 * Removes dead consumers and finished entries, at long intervals. One member does this for the whole fleet. A client
 * without `rebalance` does not know the other members, so it always does this.
 */
export const reap = (client: ClientContext): Effect.Effect<never> =>
  Effect.forever(
    Effect.gen(function*() {
      const { config, store } = client
      const factor = yield* Random.nextBetween(0.5, 1)
      yield* Effect.sleep(Duration.times(config.reapAfter, factor))
      if (!isFirst(client.members, config.consumer)) return
      const { consumers, entries } = yield* store.reap(config.reapAfter)
      if (consumers + entries > 0) {
        yield* log.info(`Removed ${consumers} silent consumer(s) and ${entries} finished announcement(s)`)
      }
    }).pipe(
      Effect.catch((error) => log.warning(`Cannot remove old data; retrying later: ${error.message}`))
    )
  )
