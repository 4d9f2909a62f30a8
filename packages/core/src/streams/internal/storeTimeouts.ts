/**
 * Adds timeouts to requests from background loops, so that a hanging backend blocks neither retries nor closing.
 * `client` wraps its store with them.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { storeTimeout } from "../../internal/lease/replyTimeout.ts"
import { isTransient, toFailure } from "../../internal/lease/storeFailure.ts"
import * as log from "../../internal/log.ts"
import type { StoreError } from "../../SimbaError.ts"
import type { Service } from "../StreamStore.ts"
import type { StreamConfig } from "./config.ts"

/**
 * Adds a timeout to a leaving consumer's last requests. The fleet does not depend on them, so failures are only logged.
 */
export const leaving = (
  problem: string,
  call: Effect.Effect<unknown, StoreError>,
  limit: Duration.Duration
) =>
  Effect.asVoid(call).pipe(
    Effect.timeout(limit),
    Effect.catchCause((cause) => {
      const error = toFailure("leave", cause)
      const line = `${problem}: ${error.message}`
      return isTransient(error) ? log.debug(line) : log.warning(line)
    })
  )

/**
 * Adds timeouts to requests from background loops, and to `find`. Requests that claim a data stream, or renew or end
 * its lease, have separate timeouts. All other requests, such as those from handlers, have only the store's timeout.
 */
export const make = (store: Service, config: StreamConfig): Service => {
  const within = <A>(operation: string, call: Effect.Effect<A, StoreError>, limit = config.commandTimeout) =>
    storeTimeout(call, operation, limit)
  return {
    ...store,
    prepare: within("prepare", store.prepare),
    paused: within("read the pauses", store.paused),
    read: (options) =>
      within("read", store.read(options), Duration.sum(options.block, Duration.times(config.commandTimeout, 2))),
    pending: (options) => within("pending", store.pending(options)),
    find: (stream) => within("find", store.find(stream)),
    deadLetterMalformed: (entry, consumer, reason) =>
      within("dead-letter", store.deadLetterMalformed(entry, consumer, reason)),
    handedOver: (consumer, session, isAdopted) =>
      within("list hand-overs", store.handedOver(consumer, session, isAdopted)),
    heartbeat: (member, expiry) => within("heartbeat", store.heartbeat(member, expiry)),
    keepCheckpoints: (streams) => within("keep checkpoints", store.keepCheckpoints(streams), config.reapAfter),
    reap: (idle) => within("remove old data", store.reap(idle), config.reapAfter)
  }
}
