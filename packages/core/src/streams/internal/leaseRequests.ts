/** Requests of a handler to its lease: their errors, their outages, and the text of a dead letter. */
import * as Effect from "effect/Effect"
import { isTransient, retrySchedule } from "../../internal/lease/storeFailure.ts"
import type { LeaseLost, StoreError } from "../../SimbaError.ts"

export type LeaseError = LeaseLost | StoreError

const retry = retrySchedule("20 millis", "500 millis")

/** Retries through an outage. The loss of the lease ends it at the latest. */
export const retryOutages = <A>(effect: Effect.Effect<A, LeaseError>): Effect.Effect<A, LeaseError> =>
  Effect.retry(effect, { schedule: retry, while: isTransient })

/** Why a message is dead, as its letter says it. */
export const reasonOf = (text: string): string => text.slice(0, 1000)
