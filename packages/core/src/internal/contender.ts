/** The loop behind `Mutex.contend`: acquire, lead until it is over, again. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as PubSub from "effect/PubSub"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import type { Contention, ContentionState } from "../Contention.ts"
import { type BackendError, LeaseLost, type ProtocolError } from "../Errors.ts"
import type { Lease } from "../Lease.ts"
import type { AcquireError } from "../Mutex.ts"
import type { MutexStore } from "../MutexStore.ts"
import type { MutexName } from "../Names.ts"
import type { OwnerEvent } from "../OwnerEvent.ts"
import { instant } from "./holding.ts"
import * as observer from "./observer.ts"

/** One leadership, and the moment at which it is over. */
interface Leadership {
  readonly lease: Lease
  readonly over: Deferred.Deferred<void>
}

const isLossOf = (lease: Lease, error: unknown) => error instanceof LeaseLost && error.id === lease.id

/** A contender never gives up: 100 ms after a failure, doubling up to ten seconds. */
const patience = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("10 seconds")]).pipe(
  Schedule.jittered
)

/** How many events a slow reader may be behind before the oldest are dropped. */
const capacity = 128

export const make = Effect.fnUntraced(function*(options: {
  readonly store: MutexStore["Service"]
  readonly mutex: MutexName
  readonly transition: Duration.Duration
  readonly every: Duration.Duration
  readonly acquire: Effect.Effect<Lease, AcquireError, Scope.Scope>
}): Effect.fn.Return<Contention, never, Scope.Scope> {
  const { every, mutex, store } = options
  const transition = Duration.toMillis(options.transition)
  const scope = yield* Effect.scope
  const clock = yield* Clock.Clock
  const events = yield* PubSub.sliding<OwnerEvent>(capacity)
  const failure = yield* Deferred.make<never, BackendError | ProtocolError>()
  let upcoming = Deferred.makeUnsafe<Leadership>()
  let present: Leadership | undefined
  const state = yield* SubscriptionRef.make<ContentionState>({
    before: undefined,
    after: undefined,
    isOwner: false,
    isInTtl: false,
    isInTransition: false
  })

  const annotate = Effect.annotateLogs({ mutex })

  /** The server says who owns it; whether that is us, and may still act, is judged locally. */
  const see = (owner: string | undefined, end: number) =>
    Effect.flatMap(
      present === undefined ? Effect.succeed(false) : present.lease.isHeld,
      (isOwner) =>
        SubscriptionRef.update(state, (last) => {
          const left = end - instant(clock).monotonic
          const next = {
            before: owner === last.after ? last.before : last.after,
            after: owner,
            isOwner,
            isInTtl: owner !== undefined && left > transition,
            isInTransition: owner !== undefined && left <= transition && left >= 0
          }
          return JSON.stringify(next) === JSON.stringify(last) ? last : next
        })
    )

  const lead = Effect.scoped(Effect.gen(function*() {
    const lease = yield* options.acquire
    const leadership: Leadership = { lease, over: Deferred.makeUnsafe() }
    // Registered after the lease, so undone before its release
    yield* Effect.addFinalizer(() =>
      Effect.gen(function*() {
        present = undefined
        upcoming = Deferred.makeUnsafe()
        yield* Effect.annotateLogs(Effect.logInfo("Leadership ends"), { token: lease.token })
        yield* see((yield* SubscriptionRef.get(state)).after, -Infinity)
        yield* Deferred.succeed(leadership.over, undefined)
      })
    )
    present = leadership
    yield* Effect.annotateLogs(Effect.logInfo("Leadership begins"), { contender: lease.id, token: lease.token })
    yield* see(lease.id, instant(clock).monotonic + Duration.toMillis(yield* lease.timeLeft) + transition)
    yield* Deferred.succeed(upcoming, leadership)
    yield* lease.lost
  }))

  const attempt = Effect.catchCause(lead, (cause) =>
    Cause.hasInterruptsOnly(cause)
      ? Effect.failCause(cause as Cause.Cause<never>)
      : Effect.andThen(
        Effect.logWarning("Cannot contend at present, and tries again", cause),
        Effect.fail("again" as const)
      ))

  // The schedule does not end, so neither does the retry
  const contend = annotate(Effect.forever(Effect.orDie(Effect.retry(attempt, patience))))

  const turns = Semaphore.makeUnsafe(1)
  let loop: Fiber.Fiber<never> | undefined
  const begin = turns.withPermit(Effect.gen(function*() {
    loop ??= yield* Effect.forkIn(contend, scope)
  }))
  const end = turns.withPermit(Effect.suspend(() => {
    const fiber = loop
    loop = undefined
    return fiber === undefined ? Effect.void : Fiber.interrupt(fiber)
  }))

  yield* observer.watch(
    store,
    mutex,
    { every, renewals: false },
    (look, seen) => Effect.andThen(see(look.owner, look.end), PubSub.publishAll(events, seen))
  ).pipe(
    Effect.catchCause((cause) => Deferred.failCause(failure, cause)),
    Effect.forkIn(scope)
  )
  yield* begin

  return {
    mutex,
    state,
    lease: Effect.sync(() => present === undefined ? Option.none() : Option.some(present.lease)),
    changes: Stream.merge(
      Stream.fromPubSub(events),
      Stream.fromEffectDrain(Deferred.await(failure))
    ),
    whileLeader: <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<never, E, R> =>
      Effect.forever(Effect.gen(function*() {
        const { lease, over } = yield* Deferred.await(upcoming)
        yield* lease.protect(Effect.asVoid(work)).pipe(
          Effect.catch((error) => isLossOf(lease, error) ? Effect.void : Effect.fail(error as E))
        )
        yield* Deferred.await(over)
      })),
    stepDown: Effect.andThen(end, begin),
    stop: end,
    start: begin
  }
})
