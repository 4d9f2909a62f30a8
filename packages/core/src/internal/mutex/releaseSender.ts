/** Giving back in the background: releases and undos, which closing the layer waits for. */
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
import type { MutexStore, Released, ReleaseRequest } from "../../MutexStore.ts"
import type { BackendError, ProtocolError } from "../../SimbaError.ts"
import { instant } from "../lease/deadline.ts"

export interface Request extends Omit<ReleaseRequest, "confirm"> {
  /** Told what became of `requeue`, once: the answer to the first try, or nothing where there is none. */
  readonly settled?: ((released: Released | undefined) => void) | undefined
}

export interface ReleaseSender {
  /**
   * Gives back within so many milliseconds. Waits for one try, unless the store can do without; what the server refused
   * for the moment is tried again behind it.
   */
  readonly now: (request: Request, within: number) => Effect.Effect<void>
  /** Does not wait at all. */
  readonly later: (request: Request) => Effect.Effect<void>
}

/** Between tries, in milliseconds: doubling. */
const pause = 50

export const make = Effect.fnUntraced(function*(
  store: MutexStore["Service"],
  config: MutexConfig
): Effect.fn.Return<ReleaseSender, never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const background = yield* FiberSet.make()
  const whileOpen = yield* FiberSet.runtime(background)()
  const afterwards = Effect.runForkWith(yield* Effect.context<never>())
  const releaseMillis = Duration.toMillis(config.releaseTimeout)
  const closing = Latch.makeUnsafe(false)
  let closed = false
  /** Nobody waits any more for what is given back. It has one try, since the store may outlive the layer. */
  let isGone = false
  /** How many were sent and are not answered, without a fiber each. */
  let sent = 0
  let onAnswered: (() => void) | undefined
  /** The last try that was waited for had no answer: to wait for each of many leases would take its time each. */
  let isSilent = false

  const inBackground = (effect: Effect.Effect<void>) => isGone ? afterwards(effect) : whileOpen(effect)

  const attempt = ({ id, mutex, requeue, unfair }: Request, within: Duration.Duration) =>
    Effect.exit(Effect.timeout(
      store.release({ mutex, id, unfair, requeue, confirm: config.confirmTimeout }),
      within
    ))

  /** What is sent again queues nobody: who was to be queued goes on by itself after the first try. */
  const again = ({ id, mutex, unfair }: Request): Request => ({ mutex, id, unfair })

  const mayPass = (cause: Cause.Cause<BackendError | ProtocolError | Cause.TimeoutError>) => {
    const error = Cause.squash(cause) as { readonly _tag?: string; readonly retryable?: boolean }
    return error._tag === "TimeoutError" || (error._tag === "BackendError" && error.retryable === true)
  }

  const report = (cause: Cause.Cause<BackendError | ProtocolError | Cause.TimeoutError>, held: boolean) =>
    Cause.hasDies(cause)
      ? Effect.logError("A release died; the lease ends by itself", cause)
      : held
      ? Effect.logWarning(`A release did not come through; the lease ends by itself: ${Cause.squash(cause)}`)
      : Effect.logDebug(`An attempt could not be undone; it ends by itself: ${Cause.squash(cause)}`)

  /** Until it comes through or the time is over; when the layer closes, once more and no longer. */
  const goOn = Effect.fnUntraced(function*(request: Request, until: number, held: boolean) {
    for (let delay = pause;; delay *= 2) {
      yield* Effect.raceFirst(Effect.sleep(Duration.millis(delay)), closing.await)
      const left = until - instant(clock).monotonic
      const exit = yield* attempt(request, Duration.millis(Math.max(left, Duration.toMillis(config.commandTimeout))))
      if (Exit.isSuccess(exit)) return
      if (closed || left <= delay || !mayPass(exit.cause)) return yield* report(exit.cause, held)
    }
  })

  const isTimeout = (cause: Cause.Cause<unknown>) =>
    (Cause.squash(cause) as { readonly _tag?: string })._tag === "TimeoutError"

  /** What becomes of the first try. */
  const settle = (
    request: Request,
    exit: Exit.Exit<Released, BackendError | ProtocolError | Cause.TimeoutError>,
    until: number,
    held: boolean
  ): Effect.Effect<void> => {
    request.settled?.(Exit.isSuccess(exit) ? exit.value : undefined)
    if (Exit.isSuccess(exit)) return Effect.void
    return closed || instant(clock).monotonic >= until || !mayPass(exit.cause)
      ? report(exit.cause, held)
      : goOn(again(request), until, held)
  }

  const run = (request: Request, within: number, held: boolean) =>
    Effect.suspend(() => {
      const until = instant(clock).monotonic + within
      return Effect.flatMap(attempt(request, Duration.millis(within)), (exit) => {
        isSilent = Exit.isFailure(exit) && isTimeout(exit.cause)
        const settling = settle(request, exit, until, held)
        // Whoever waits for this try does not wait for those behind it
        return Exit.isSuccess(exit)
          ? settling
          : Effect.sync(() => void inBackground(annotated(request, settling)))
      })
    })

  /**
   * Without waiting, a fiber or a timer. If the connection breaks before the answer, the release is not sent again on
   * the next one by itself: it fails, and is asked for anew like anything else. That may come behind an acquire of the
   * same mutex, which does not matter: the id of this lease is never used again, so no other can be released by it.
   */
  const send = (request: Request, within: number, held: boolean): boolean => {
    if (store.sendRelease === undefined) return false
    const { id, mutex, requeue, unfair } = request
    const until = instant(clock).monotonic + within
    const isSent = store.sendRelease({ mutex, id, unfair, requeue, confirm: config.confirmTimeout }, (exit) => {
      if (Exit.isFailure(exit)) inBackground(annotated(request, settle(request, exit, until, held)))
      else request.settled?.(exit.value)
      if (--sent === 0) onAnswered?.()
    })
    if (isSent) sent++
    return isSent
  }

  const answered = Effect.callback<void>((resume) => {
    if (sent === 0) return resume(Effect.void)
    onAnswered = () => resume(Effect.void)
  })

  const annotated = <A>(request: Request, effect: Effect.Effect<A>) =>
    Effect.annotateLogs(effect, { mutex: request.mutex, contender: request.id })

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      closing.openUnsafe()
      return Effect.asVoid(
        Effect.ensuring(
          Effect.timeoutOption(Effect.andThen(answered, FiberSet.awaitEmpty(background)), config.releaseTimeout),
          Effect.sync(() => isGone = true)
        )
      )
    })
  )

  return {
    now: (request, within) => {
      if (send(request, within, true)) return Effect.void
      const fiber = inBackground(annotated(request, run(request, within, true)))
      return isSilent ? Effect.void : Effect.asVoid(Fiber.await(fiber))
    },
    later: (request) =>
      Effect.sync(() => {
        if (!send(request, releaseMillis, false)) inBackground(annotated(request, run(request, releaseMillis, false)))
      })
  }
})
