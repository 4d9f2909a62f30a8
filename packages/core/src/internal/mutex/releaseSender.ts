/**
 * Sends releases, and requests that undo attempts, in the background. Closing the layer waits for them. Called by
 * `heldLeases` after a lease has ended locally. A late release is harmless, because ids are never reused.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { MutexConfig } from "../../MutexConfig.ts"
import { type MutexStore, release, type Released, type ReleaseRequest } from "../../MutexStore.ts"
import type { StoreError } from "../../SimbaError.ts"
import { instant } from "../lease/instant.ts"
import { isTransient, reply, toFailure } from "../lease/storeFailure.ts"
import * as log from "../log.ts"
import type { Parting } from "./heldLease.ts"

export interface Request extends Omit<ReleaseRequest, "confirm" | "lease" | "requeue">, Parting {}

type Failure = Cause.Cause<StoreError | Cause.TimeoutError>

interface ReleaseSender {
  /**
   * Releases within `within` milliseconds. If the store is ready, sends the request before returning, so no later
   * request can overtake it, and does not wait for the reply. Otherwise waits for the first attempt, unless the
   * previous attempt got no reply. Retries in the background.
   */
  readonly now: (request: Request, within: number) => Effect.Effect<void>
  /** Releases a lost lease, or undoes an attempt, without waiting. */
  readonly later: (request: Request) => Effect.Effect<void>
}

/** The first pause between attempts. Doubles after each attempt. */
const pauseMillis = 50

export const make = Effect.fnUntraced(function*(
  store: MutexStore["Service"],
  config: MutexConfig
): Effect.fn.Return<ReleaseSender, never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const background = yield* FiberSet.make()
  const whileOpen = yield* FiberSet.runtime(background)()
  const afterwards = Effect.runForkWith(yield* Effect.context<never>())
  const releaseMillis = Duration.toMillis(config.releaseTimeout)
  /** The lease that a release grants to the next owner: the layer's default, not the lease that is ending. */
  const lease = Duration.sum(config.ttl, config.transition)
  const closing = Latch.makeUnsafe(false)
  let closed = false
  /** The layer has finished closing. A release still gets one attempt, because the store may outlive the layer. */
  let isGone = false
  /** How many releases were sent without a fiber and have no reply yet. */
  let sent = 0
  let onDrained: (() => void) | undefined
  /**
   * Whether the last attempt by a fiber got no reply. If so, callers do not wait, because waits for many leases would
   * add up.
   */
  let isSilent = false

  const inBackground = ({ id, mutex }: Request, effect: Effect.Effect<void>) => {
    const annotated = Effect.annotateLogs(effect, { mutex, lease: id })
    return isGone ? afterwards(annotated) : whileOpen(annotated)
  }

  const requestOf = (request: Request): ReleaseRequest => {
    const { id, mutex, requeue } = request
    return { mutex, id, requeue, lease, confirm: config.confirmTimeout }
  }

  const attempt = (request: Request, within: Duration.Duration) =>
    Effect.exit(Effect.timeout(release(store, requestOf(request)), within))

  const isTimeout = (cause: Failure) => Cause.isTimeoutError(Cause.squash(cause))

  const mayPass = (cause: Failure) => isTimeout(cause) || isTransient(Cause.squash(cause) as StoreError)

  /**
   * `held`, here and below: whether the holder still had the lease. If so, a failure to release it deserves a warning.
   */
  const report = (cause: Failure, held: boolean) =>
    Cause.hasDies(cause)
      ? log.error("A release crashed; the lease will expire", cause)
      : held
      ? log.warning(`A release failed; the lease will expire: ${toFailure("release", cause).message}`)
      : log.debug(`An attempt could not be undone; it will expire: ${toFailure("release", cause).message}`)

  /** Retries until the request succeeds or time runs out. Tries once more when the layer closes. */
  const retry = Effect.fnUntraced(function*(request: Request, until: number, held: boolean) {
    for (let delay = pauseMillis;; delay *= 2) {
      yield* Effect.raceFirst(Effect.sleep(Duration.millis(delay)), closing.await)
      const left = until - instant(clock).monotonic
      const exit = yield* attempt(request, Duration.millis(Math.max(left, Duration.toMillis(config.commandTimeout))))
      if (Exit.isSuccess(exit)) return
      if (closed || left <= delay || !mayPass(exit.cause)) return yield* report(exit.cause, held)
    }
  })

  /** Handles the result of the first attempt. The caller waits only for this attempt. */
  const settle = (
    request: Request,
    exit: Exit.Exit<Released, StoreError | Cause.TimeoutError>,
    until: number,
    held: boolean
  ): void => {
    if (Exit.isSuccess(exit)) return request.settled?.(exit.value)
    request.settled?.(undefined)
    inBackground(
      request,
      closed || instant(clock).monotonic >= until || !mayPass(exit.cause)
        ? report(exit.cause, held)
        // Later attempts do not requeue, because the `FleetPlace` sends a request after the first attempt
        : retry({ ...request, requeue: undefined }, until, held)
    )
  }

  const run = (request: Request, within: number, held: boolean) =>
    Effect.suspend(() => {
      const until = instant(clock).monotonic + within
      return Effect.map(attempt(request, Duration.millis(within)), (exit) => {
        isSilent = Exit.isFailure(exit) && isTimeout(exit.cause)
        settle(request, exit, until, held)
      })
    })

  /**
   * Sends the first attempt without a fiber or a timer, if the store is ready. If the connection breaks, the next
   * attempt may arrive after a new acquire of the mutex. That is harmless, because ids are never reused.
   */
  const send = (request: Request, within: number, held: boolean): boolean => {
    if (!store.isReady()) return false
    const until = instant(clock).monotonic + within
    sent++
    reply<Released>((done) => store.release(requestOf(request), done), (exit) => {
      settle(request, exit, until, held)
      if (--sent === 0) onDrained?.()
    })
    return true
  }

  const hasReplied = Effect.callback<void>((resume) => {
    if (sent === 0) return resume(Effect.void)
    onDrained = () => resume(Effect.void)
  })

  /** Checks twice, because another release may be sent just as a background attempt ends. */
  const atRest: Effect.Effect<void> = Effect.flatMap(
    Effect.andThen(Effect.andThen(hasReplied, FiberSet.awaitEmpty(background)), FiberSet.size(background)),
    (size) => sent + size === 0 ? Effect.void : atRest
  )

  /** Returns the fiber of the first attempt, if there is one. */
  const begin = (request: Request, within: number, held: boolean) =>
    send(request, within, held) ? undefined : inBackground(request, run(request, within, held))

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      closing.openUnsafe()
      return Effect.asVoid(
        Effect.ensuring(
          Effect.timeoutOption(atRest, config.releaseTimeout),
          Effect.sync(() => isGone = true)
        )
      )
    })
  )

  return {
    now: (request, within) => {
      const fiber = begin(request, within, true)
      return fiber === undefined || isSilent ? Effect.void : Effect.asVoid(Fiber.await(fiber))
    },
    later: (request) => Effect.sync(() => void begin(request, releaseMillis, false))
  }
})
