/** Whether the backend replies to the requests of one queue. */
import * as Duration from "effect/Duration"
import type { BackendError } from "../../SimbaError.ts"
import { noReply } from "../lease/storeFailure.ts"
import type { TimerQueue } from "../lease/timerQueue.ts"

/** The queue whose requests have no reply. */
interface Silenced {
  readonly context: { readonly timers: TimerQueue }
  readonly outage: (error: BackendError) => void
}

export class Silence {
  /** The first request without a reply: possibly the beginning of an outage. Monotonic milliseconds. */
  since: number | undefined
  /** The last request failed with it. */
  private outage: BackendError | undefined
  private hasReplied = false
  private readonly queue: Silenced
  /** When a waiter gives up a request without a reply, which may have the longer limit of another waiter. */
  private patienceEnds = Infinity
  private stopTimer: (() => void) | undefined

  constructor(queue: Silenced) {
    this.queue = queue
  }

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
    this.patienceEnds = Infinity
    this.stopTimer?.()
  }

  /** Reports an outage at this instant, unless a reply or an earlier outage comes first. Monotonic milliseconds. */
  giveUpAt(end: number): void {
    if (end >= this.patienceEnds) return
    const { timers } = this.queue.context
    this.stopTimer?.()
    this.patienceEnds = end
    this.stopTimer = timers.at(end, () => {
      this.patienceEnds = Infinity
      if (timers.isClosed() || this.since === undefined) return
      this.queue.outage(noReply("acquire", Duration.millis(end - this.since)))
    })
  }

  /**
   * Why a waiter that gives up now, after `timeout`, does not know whether the mutex is taken. Undefined if it does.
   */
  timedOut(timeout: Duration.Duration, confirm: Duration.Duration, now: number): BackendError | undefined {
    if (this.outage !== undefined || this.since === undefined) return this.outage
    // A request that was just sent, after others had replies, is not an outage
    const isSilent = !this.hasReplied || now - this.since >= Duration.toMillis(Duration.min(timeout, confirm))
    return isSilent ? noReply("acquire", timeout) : undefined
  }
}
