/**
 * Shared by the requests that handlers make through their leases: the error type, retries during an outage, and the
 * reason for a dead letter. Used by `messageReader`, `messageCommits`, `messageAttempts` and others.
 */
import * as Effect from "effect/Effect"
import { isTransient } from "../../internal/lease/storeFailure.ts"
import { retrySchedule } from "../../internal/lease/storeRetries.ts"
import type { LeaseLost, StoreError } from "../../SimbaError.ts"
import type { StreamLease } from "../StreamLease.ts"
import type { EntryId } from "../StreamName.ts"
import type { RawMessage } from "../StreamState.ts"

export type LeaseError = LeaseLost | StoreError

const retry = retrySchedule("20 millis", "500 millis")

/** Retries during an outage. If the request checks the lease, the retries also end when the lease is lost. */
export const retryOutages = <A>(effect: Effect.Effect<A, LeaseError>): Effect.Effect<A, LeaseError> =>
  Effect.retry(effect, { schedule: retry, while: isTransient })

/**
 * Reads messages that may have been deleted. Returns none if the read still has no reply one second after the backend
 * has replied to another request. An outage therefore does not count as a lack of messages.
 */
export const messagesIfAny = (
  lease: StreamLease,
  after: EntryId,
  count: number
): Effect.Effect<ReadonlyArray<RawMessage>, LeaseError> =>
  Effect.raceFirst(
    retryOutages(lease.messagesAfter(after, count)),
    Effect.as(Effect.andThen(retryOutages(lease.extent), Effect.sleep("1 second")), [])
  )

/** Limits the reason for a dead letter to 1,000 characters. */
export const reasonOf = (text: string): string => text.slice(0, 1000)
