/**
 * Commits processed messages: after every `commitEvery` messages, after `commitWithin`, and at the end. `messageLoop`
 * and `concurrentLoop` report the processed messages in order.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import { instant } from "../../internal/lease/instant.ts"
import * as log from "../../internal/log.ts"
import type { StreamLease } from "../StreamLease.ts"
import type { EntryId } from "../StreamName.ts"
import { LeaseImpl } from "./leaseHandle.ts"
import { type LeaseError, retryOutages } from "./leaseRequests.ts"

/** The last message covered by a commit. */
export interface Processed {
  readonly id: EntryId
  readonly offset: number | undefined
  readonly isLast: boolean
}

/**
 * The messages that have been processed but not committed: the last one, their count, and the monotonic time in
 * milliseconds when the first one was processed.
 */
interface Uncommitted {
  readonly last: Processed
  readonly count: number
  readonly since: number
}

interface CommitOptions {
  readonly commitEvery?: number | undefined
  readonly commitWithin?: Duration.Input | undefined
}

export class MessageCommits {
  private readonly lease: StreamLease
  private readonly now: () => number
  private readonly every: number
  private readonly within: number
  /** Excludes messages covered by a commit in flight. */
  private uncommitted: Uncommitted | undefined
  private readonly turn = Semaphore.makeUnsafe(1)
  /** Opened when a message is added. Closed by `whenDue` when nothing is uncommitted. */
  private readonly added = Latch.makeUnsafe(false)

  constructor(lease: StreamLease, clock: Clock.Clock, { commitEvery, commitWithin }: CommitOptions = {}) {
    this.lease = lease
    this.now = () => instant(clock).monotonic
    this.every = commitEvery ?? 1
    this.within = Duration.toMillis(commitWithin ?? Duration.infinity)
  }

  /** Called when a message and all messages before it have been processed. */
  add(last: Processed): void {
    const { count, since } = this.uncommitted ?? { count: 0, since: this.now() }
    this.uncommitted = { last, count: count + 1, since }
    this.added.openUnsafe()
  }

  /**
   * Commits if enough messages are uncommitted, or if the oldest one has waited long enough. Otherwise only restarts
   * the progress timeout, and keeps the failure count: an earlier message may be failing repeatedly, and only a commit
   * proves progress.
   */
  get afterMessage(): Effect.Effect<void, LeaseError> {
    return Effect.suspend(() => {
      const isDue = this.uncommitted !== undefined &&
        (this.uncommitted.count >= this.every || this.now() - this.uncommitted.since >= this.within)
      if (isDue) return retryOutages(this.flush)
      // `progress` would reset the failure count. Other implementations of the `StreamLease` service, in tests or
      // applications, have only `progress`
      return this.lease instanceof LeaseImpl ? this.lease.advance : this.lease.progress
    })
  }

  /** Commits all uncommitted messages. Only one commit is in flight at a time. */
  get flush(): Effect.Effect<void, LeaseError> {
    return this.turn.withPermit(Effect.suspend(() => {
      const sent = this.uncommitted
      if (sent === undefined) return Effect.void
      this.uncommitted = undefined
      return Effect.onExit(
        this.lease.commit(sent.last.id, sent.last),
        (exit) => Effect.sync(() => Exit.isFailure(exit) && this.restore(sent))
      )
    }))
  }

  /** Called after a failed commit. The next commit then covers its messages too. */
  private restore(sent: Uncommitted): void {
    const { uncommitted } = this
    this.uncommitted = uncommitted === undefined
      ? sent
      : { last: uncommitted.last, count: sent.count + uncommitted.count, since: sent.since }
    this.added.openUnsafe()
  }

  /**
   * Waits for the commit in flight, and forgets the messages that are still uncommitted: the reader is about to move
   * back and read them again.
   */
  get settle(): Effect.Effect<void> {
    return this.turn.withPermit(Effect.sync(() => {
      this.uncommitted = undefined
    }))
  }

  /**
   * Commits messages once `commitWithin` has passed. One loop serves all messages: it sleeps until the oldest
   * uncommitted message is due. If a commit by count comes first, it goes back to sleep.
   */
  get whenDue(): Effect.Effect<never, LeaseError> {
    if (this.within === Infinity) return Effect.never
    return Effect.forever(Effect.suspend(() => {
      if (this.uncommitted === undefined) {
        this.added.closeUnsafe()
        return this.added.await
      }
      const left = this.uncommitted.since + this.within - this.now()
      // Timers have a resolution of one millisecond. If rounded down, the sleep would end too early
      return left > 0 ? Effect.sleep(Duration.millis(Math.ceil(left))) : retryOutages(this.flush)
    }))
  }

  /** The last commit. It never fails, because it must not hide another failure, and does not outlast the lease. */
  get atLast(): Effect.Effect<void> {
    return Effect.flatMap(
      this.lease.timeLeft,
      (left) => Duration.isPositive(left) ? Effect.timeout(this.flush, left) : Effect.void
    ).pipe(
      Effect.catchCause((cause) =>
        log.debug("Processed messages could not be committed, and will be processed again", cause)
      )
    )
  }
}
