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
import type { BackendError, ProtocolError } from "../Errors.ts"
import type { MutexConfig } from "../MutexConfig.ts"
import type { MutexStore, ReleaseRequest } from "../MutexStore.ts"
import { instant } from "./holding.ts"

export type Request = Omit<ReleaseRequest, "confirm">

export interface Releases {
  /** Waits for one try, within the given time. What the server refused for the moment is tried again behind it. */
  readonly now: (request: Request, within: Duration.Duration) => Effect.Effect<void>
  /** Does not wait at all. */
  readonly later: (request: Request) => Effect.Effect<void>
}

/** Between tries, in milliseconds: doubling. */
const pause = 50

export const make = Effect.fnUntraced(function*(
  store: MutexStore["Service"],
  config: MutexConfig
): Effect.fn.Return<Releases, never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const background = yield* FiberSet.make()
  const closing = Latch.makeUnsafe(false)
  let closed = false

  const attempt = (request: Request, within: Duration.Duration) =>
    Effect.exit(Effect.timeout(
      store.release({ mutex: request.mutex, id: request.id, unfair: request.unfair, confirm: config.confirm }),
      within
    ))

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

  const run = (request: Request, within: Duration.Duration, held: boolean) =>
    Effect.gen(function*() {
      const until = instant(clock).monotonic + Duration.toMillis(within)
      const exit = yield* attempt(request, within)
      if (Exit.isSuccess(exit)) return
      if (closed || instant(clock).monotonic >= until || !mayPass(exit.cause)) return yield* report(exit.cause, held)
      yield* FiberSet.run(background, annotated(request, goOn(request, until, held)))
    })

  const annotated = <A>(request: Request, effect: Effect.Effect<A>) =>
    Effect.annotateLogs(effect, { mutex: request.mutex, contender: request.id })

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      closing.openUnsafe()
      return Effect.asVoid(Effect.timeoutOption(FiberSet.awaitEmpty(background), config.releaseTimeout))
    })
  )

  return {
    now: (request, within) =>
      Effect.flatMap(
        FiberSet.run(background, annotated(request, run(request, within, true))),
        (fiber) => Effect.asVoid(Fiber.await(fiber))
      ),
    later: (request) =>
      Effect.asVoid(FiberSet.run(background, annotated(request, run(request, config.releaseTimeout, false))))
  }
})
