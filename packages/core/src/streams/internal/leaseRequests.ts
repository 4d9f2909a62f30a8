/**
 * Shared by the requests that handlers make through their leases: the error type, retries during an outage, and the
 * reason of a dead letter. `messageReader`, `messageCommits`, `messageAttempts` and others use it.
 */
import * as Effect from "effect/Effect"
import { isTransient } from "../../internal/lease/storeFailure.ts"
import { retrySchedule } from "../../internal/lease/storeRetries.ts"
import type { LeaseLost, StoreError } from "../../SimbaError.ts"

export type LeaseError = LeaseLost | StoreError

const retry = retrySchedule("20 millis", "500 millis")

/** Retries during an outage. If the request checks the lease, the retries also end when the lease is lost. */
export const retryOutages = <A>(effect: Effect.Effect<A, LeaseError>): Effect.Effect<A, LeaseError> =>
  Effect.retry(effect, { schedule: retry, while: isTransient })

/** Limits the reason of a dead letter to 1,000 characters. */
export const reasonOf = (text: string): string => text.slice(0, 1000)
