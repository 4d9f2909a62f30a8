/** Whether the backend replies to the requests of one queue. */
import * as Duration from "effect/Duration"
import type { BackendError } from "../../SimbaError.ts"
import { noAnswer } from "../lease/storeFailure.ts"

export class Silence {
  /** The first request without a reply: it may be the beginning of an outage. Monotonic milliseconds. */
  since: number | undefined
  /** The last request failed with it. */
  private outage: BackendError | undefined
  private hasReplied = false

  begin(now: number): void {
    this.since = now
  }

  failed(outage: BackendError): void {
    this.outage = outage
  }

  end(): void {
    this.since = undefined
    this.outage = undefined
    this.hasReplied = true
  }

  /** Why a waiter that gives up now, after `timeout`, does not know whether the mutex is taken, if it does not. */
  timedOut(timeout: Duration.Duration, confirm: Duration.Duration, now: number): BackendError | undefined {
    if (this.outage !== undefined || this.since === undefined) return this.outage
    // A request that is just under way, after others had replies, is no outage
    const isSilent = !this.hasReplied || now - this.since >= Duration.toMillis(Duration.min(timeout, confirm))
    return isSilent ? noAnswer("acquire", timeout) : undefined
  }
}
