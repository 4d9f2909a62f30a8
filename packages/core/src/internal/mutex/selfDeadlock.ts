/**
 * Warns about acquires that wait for a lease held by their own process. If a fiber holds a mutex through
 * `Mutex.acquire` and acquires it again, it waits for itself; `nestedLocks` only detects locks taken by `withLock`.
 * `localQueue` creates one warning for each mutex.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { MutexName } from "../../MutexName.ts"
import * as log from "../log.ts"
import type { AttemptContext } from "./attempt.ts"
import type { HeldLease } from "./heldLease.ts"
import type { LatestNames } from "./latestNames.ts"

/**
 * How long a fiber waits before the warning: longer than most work takes, but short enough to help during development.
 */
const patienceMillis = 5000

const report = ({ annotations, mutex, since, token }: HeldLease, now: number) =>
  Effect.annotateLogs(
    log.warning(
      `This process has held mutex "${mutex}" for ${
        Duration.format(Duration.seconds(Math.round((now - since.monotonic) / 1000)))
      } ` +
        `(token ${token}), and another acquire in this process waits for it. ` +
        "If the waiting fiber is the holder, it waits for itself: " +
        "pass the lease on, or release it first. Only work inside withLock fails with AlreadyHeld"
    ),
    annotations
  )

/** The queue of fibers that wait for one mutex. */
interface WaitedFor {
  readonly mutex: MutexName
  readonly context: AttemptContext
  /** The lease held by a fiber in this layer. */
  readonly held: HeldLease | undefined
  readonly first: () => object | undefined
}

/** Sets at most one timer at a time: hand-offs within a process must not add timers. */
export class SelfDeadlockWarning {
  private readonly queue: WaitedFor
  private readonly reports: LatestNames
  private isWatching = false
  private unset: (() => void) | undefined

  constructor(queue: WaitedFor, reports: LatestNames) {
    this.queue = queue
    this.reports = reports
  }

  /** Call this while a fiber waits for a lease held by this layer. */
  watch(): void {
    const { queue, reports } = this
    if (this.isWatching || reports.has(queue.mutex)) return
    const { held, context: { fork, now, timers } } = queue
    this.isWatching = true
    this.unset = timers.at(now().monotonic + patienceMillis, () => {
      this.isWatching = false
      const lease = queue.held
      if (timers.isClosed() || lease === undefined || queue.first() === undefined) return
      if (lease !== held) return this.watch()
      reports.add(queue.mutex)
      fork(report(lease, now().monotonic))
    })
  }

  /** Call this when the queue is no longer used: the timer would keep the queue in memory for seconds. */
  stop(): void {
    this.unset?.()
    this.isWatching = false
  }
}
