/** A service whose calls end: what a hanging backend holds up is tried again, and keeps nobody from closing. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { BackendError } from "../../SimbaError.ts"
import type { StreamConfig } from "../StreamConfig.ts"
import type { Service } from "../StreamStore.ts"
import type { StoreError } from "./storeFailure.ts"

/**
 * What the loops of a client ask. What its user asks is bounded by the client of the backend, and by who calls; what
 * takes and ends holdings has bounds of its own; subscriptions have none.
 */
export const make = (store: Service, config: StreamConfig): Service => {
  const within = <A>(operation: string, call: Effect.Effect<A, StoreError>, limit = config.commandTimeout) =>
    Effect.timeoutOrElse(call, {
      duration: limit,
      orElse: () =>
        Effect.fail(
          new BackendError({
            operation,
            retryable: true,
            cause: new Error(`no answer within ${Duration.format(limit)}`)
          })
        )
    })
  return {
    ...store,
    prepare: within("prepare", store.prepare),
    read: (options) =>
      within("read", store.read(options), Duration.sum(options.block, Duration.times(config.commandTimeout, 2))),
    pending: (options) => within("pending", store.pending(options)),
    find: (stream) => within("find", store.find(stream)),
    deadLetterMalformed: (entry, consumer, reason) =>
      within("bury", store.deadLetterMalformed(entry, consumer, reason)),
    handedOver: (consumer, session) => within("given", store.handedOver(consumer, session)),
    heartbeat: (member, expiry) => within("beat", store.heartbeat(member, expiry)),
    keepCheckpoints: (streams) => within("keep checkpoints", store.keepCheckpoints(streams), config.reapAfter),
    reap: (idle) => within("tidy", store.reap(idle), config.reapAfter)
  }
}
