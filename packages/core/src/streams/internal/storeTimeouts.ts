/** A service whose calls end: a backend that hangs holds up neither a retry nor closing. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { noAnswer } from "../../internal/lease/storeFailure.ts"
import type { StoreError } from "../../SimbaError.ts"
import type { StreamConfig } from "../StreamConfig.ts"
import type { Service } from "../StreamStore.ts"

/** For the requests of loops. Taking and ending data streams have limits of their own; subscriptions have none. */
export const make = (store: Service, config: StreamConfig): Service => {
  const within = <A>(operation: string, call: Effect.Effect<A, StoreError>, limit = config.commandTimeout) =>
    Effect.timeoutOrElse(call, { duration: limit, orElse: () => Effect.fail(noAnswer(operation, limit)) })
  return {
    ...store,
    prepare: within("prepare", store.prepare),
    read: (options) =>
      within("read", store.read(options), Duration.sum(options.block, Duration.times(config.commandTimeout, 2))),
    pending: (options) => within("pending", store.pending(options)),
    find: (stream) => within("find", store.find(stream)),
    deadLetterMalformed: (entry, consumer, reason) =>
      within("dead-letter", store.deadLetterMalformed(entry, consumer, reason)),
    handedOver: (consumer, session) => within("given", store.handedOver(consumer, session)),
    heartbeat: (member, expiry) => within("beat", store.heartbeat(member, expiry)),
    keepCheckpoints: (streams) => within("keep checkpoints", store.keepCheckpoints(streams), config.reapAfter),
    reap: (idle) => within("tidy", store.reap(idle), config.reapAfter)
  }
}
