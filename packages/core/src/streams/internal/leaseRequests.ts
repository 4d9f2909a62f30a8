/**
 * What the requests that handlers make through their leases share: errors, retries in an outage, and the reason of a
 * dead letter. Readers, commits and retries of messages use it.
 */
import * as Effect from "effect/Effect"
import { isTransient, retrySchedule } from "../../internal/lease/storeFailure.ts"
import type { LeaseLost, StoreError } from "../../SimbaError.ts"

export type LeaseError = LeaseLost | StoreError

const retry = retrySchedule("20 millis", "500 millis")

/** Retries through an outage, which ends at the latest with the loss of the lease. */
export const retryOutages = <A>(effect: Effect.Effect<A, LeaseError>): Effect.Effect<A, LeaseError> =>
  Effect.retry(effect, { schedule: retry, while: isTransient })

/** The reason of a dead message or of a dead announcement, as its letter states it. */
export const reasonOf = (text: string): string => text.slice(0, 1000)
