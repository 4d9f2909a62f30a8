/**
 * Commits processed messages: after a number of them, after a time, and at the end. `messageLoop` and `concurrentLoop`
 * report what is processed, in order.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { instant } from "../../internal/lease/instant.ts"
import * as log from "../../internal/log.ts"
import type { StreamLease } from "../StreamLease.ts"
import type { EntryId } from "../StreamName.ts"
import { LeaseImpl } from "./leaseHandle.ts"
import { type LeaseError, retryOutages } from "./leaseRequests.ts"

/** What a commit says about the last message that it covers. */
export interface Processed {
  readonly id: EntryId
  readonly offset: number | undefined
  readonly isLast: boolean
}

/**
 * The processed messages that are not committed: the last of them, how many, and since when, in monotonic milliseconds.
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
  private uncommitted: Uncommitted | undefined
  private readonly turn = Semaphore.makeUnsafe(1)

  constructor(lease: StreamLease, clock: Clock.Clock, { commitEvery, commitWithin }: CommitOptions = {}) {
    this.lease = lease
    this.now = () => instant(clock).monotonic
    this.every = commitEvery ?? 1
    this.within = Duration.toMillis(commitWithin ?? Duration.infinity)
  }

  /** Called when a message and all messages before it are processed. Returns whether all others are committed. */
  add(last: Processed): boolean {
    const { count, since } = this.uncommitted ?? { count: 0, since: this.now() }
    this.uncommitted = { last, count: count + 1, since }
    return count === 0
  }

  /** Whether messages are committed after a time. */
  get isTimed(): boolean {
    return this.within !== Infinity
  }

  /** They belong to a data stream that was deleted since. */
  forget(): void {
    this.uncommitted = undefined
  }

  /**
   * Commits if there are enough messages, or if they are old enough. Otherwise reports that the handler is not stalled,
   * but without ending the streak of failures: a message before may fail repeatedly, and only a commit ends a streak.
   */
  get afterMessage(): Effect.Effect<void, LeaseError> {
    return Effect.suspend(() => {
      const isDue = this.uncommitted !== undefined &&
        (this.uncommitted.count >= this.every || this.now() - this.uncommitted.since >= this.within)
      if (isDue) return retryOutages(this.flush)
      return this.lease instanceof LeaseImpl ? this.lease.advance : this.lease.progress
    })
  }

  get flush(): Effect.Effect<void, LeaseError> {
    return this.turn.withPermit(Effect.suspend(() => {
      const sent = this.uncommitted
      if (sent === undefined) return Effect.void
      return Effect.andThen(
        this.lease.commit(sent.last.id, sent.last),
        Effect.sync(() => {
          if (this.uncommitted === sent) this.uncommitted = undefined
          else if (this.uncommitted !== undefined) {
            this.uncommitted = { ...this.uncommitted, count: this.uncommitted.count - sent.count }
          }
        })
      )
    }))
  }

  /** Finishes the commit that is under way, and forgets the rest. */
  get settle(): Effect.Effect<void> {
    return this.turn.withPermit(Effect.sync(() => this.forget()))
  }

  /** Commits uncommitted messages when they are due. */
  get due(): Effect.Effect<void, LeaseError> {
    return Effect.suspend(() =>
      this.uncommitted === undefined
        ? Effect.void
        : Effect.andThen(
          Effect.sleep(Duration.millis(Math.max(0, this.uncommitted.since + this.within - this.now()))),
          retryOutages(this.flush)
        )
    )
  }

  /** For the duration of a wait. */
  get whenDue(): Effect.Effect<never, LeaseError> {
    return Effect.suspend(() =>
      this.uncommitted === undefined || !this.isTimed ? Effect.never : Effect.andThen(this.due, Effect.never)
    )
  }

  /** Uncommitted messages are processed again, so a failure here neither hides the first one nor outlasts the lease. */
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
