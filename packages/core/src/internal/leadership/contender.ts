/** The loop behind `Mutex.contend`: acquire, lead until it is over, again. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import type { Contender, ContenderState } from "../../Contender.ts"
import type { Body, Lease } from "../../Lease.ts"
import * as MutexMetrics from "../../MutexMetrics.ts"
import { inboxOf, type MutexName } from "../../MutexName.ts"
import type { MutexStore } from "../../MutexStore.ts"
import { LeaseLost } from "../../SimbaError.ts"
import type { AcquireError } from "../../SimbaError.ts"
import { handle } from "../handle.ts"
import { instant } from "../lease/instant.ts"
import type { Recorder } from "../lease/metricsRecorder.ts"
import { endlessRetry, isTransient } from "../lease/storeFailure.ts"
import * as log from "../log.ts"
import * as ownerWatch from "../mutex/ownerWatch.ts"

/** One leadership, and the moment at which it is over. */
interface Leadership {
  readonly lease: Lease
  readonly over: Deferred.Deferred<void>
}

/** The contenders whose work the running fiber is part of. Child fibers inherit it. */
const Inside = Context.Reference<ReadonlySet<object>>("@effect-simba/core/internal/Inside", {
  defaultValue: () => new Set()
})

const isLossOf = (lease: Lease, error: unknown) => error instanceof LeaseLost && error.id === lease.id

export const make = Effect.fnUntraced(function*(options: {
  readonly store: MutexStore["Service"]
  readonly follow: ownerWatch.Follow
  readonly mutex: MutexName
  readonly transition: Duration.Duration
  readonly every: Duration.Duration
  readonly logLevel: LogLevel.Severity
  readonly recorder: Recorder
  readonly acquire: Effect.Effect<Lease, AcquireError, Scope.Scope>
}): Effect.fn.Return<Contender, never, Scope.Scope> {
  const { mutex, recorder, store } = options
  const every = Duration.toMillis(options.every)
  const transition = Duration.toMillis(options.transition)
  const scope = yield* Effect.scope
  const clock = yield* Clock.Clock
  const readers = new Set<ownerWatch.Reader>()
  let upcoming = Deferred.makeUnsafe<Leadership>()
  let present: Leadership | undefined
  const state = yield* SubscriptionRef.make<ContenderState>({
    before: undefined,
    after: undefined,
    isOwner: false,
    isInTtl: false,
    isInTransition: false
  })

  /** Work that the lease protects knows its contender. */
  const marked = (lease: Lease): Lease => {
    const protect: Lease["protect"] = (effect) =>
      lease.protect(Effect.updateService(effect, Inside, (outer) => new Set(outer).add(state)))
    return Object.create(lease, { protect: { value: protect } })
  }

  const annotate = Effect.annotateLogs({ mutex })

  /** The server names the owner; whether this contender may act is judged by its own lease. */
  const see = (owner: string | undefined, end: number) =>
    Effect.flatMap(
      present === undefined ? Effect.succeed(false) : present.lease.isHeld,
      (isOwner) =>
        SubscriptionRef.updateSome(state, (last) => {
          const left = end - instant(clock).monotonic
          const next = {
            before: owner === last.after ? last.before : last.after,
            after: owner,
            isOwner,
            isInTtl: owner !== undefined && left > transition,
            isInTransition: owner !== undefined && left <= transition && left >= 0
          }
          return JSON.stringify(next) === JSON.stringify(last) ? Option.none() : Option.some(next)
        })
    )

  const lead = Effect.scoped(Effect.gen(function*() {
    const lease = marked(yield* options.acquire)
    const leadership: Leadership = { lease, over: Deferred.makeUnsafe() }
    // Registered after the lease, so undone before its release
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        present = leadership
        recorder.update(MutexMetrics.leadershipsGained, 1, mutex)
      }),
      () =>
        Effect.gen(function*() {
          present = undefined
          // A leadership that has ended is not waited for
          if (Deferred.isDoneUnsafe(upcoming)) upcoming = Deferred.makeUnsafe()
          Deferred.doneUnsafe(leadership.over, Exit.void)
          const how = (yield* lease.isHeld) ? "released" : "lost"
          recorder.update(MutexMetrics.leadershipsEnded[how], 1, mutex)
          yield* Effect.annotateLogs(log.at(options.logLevel)("Leadership ends"), { token: lease.token })
          yield* see((yield* SubscriptionRef.get(state)).after, -Infinity)
        })
    )
    yield* Effect.annotateLogs(log.at(options.logLevel)("Leadership begins"), {
      contender: lease.id,
      token: lease.token
    })
    yield* see(lease.id, instant(clock).monotonic + Duration.toMillis(yield* lease.timeLeft) + transition)
    yield* Deferred.succeed(upcoming, leadership)
    yield* lease.lost
  }))

  /** The last attempt ended in an outage: one cheap request comes first, since an acquire repeats its own each second. */
  let isOut = false
  const reached = Effect.suspend(() => isOut ? Effect.map(store.owner(mutex), () => void (isOut = false)) : Effect.void)

  // An interruption of the loop itself does not come here
  const attempt = Effect.catchCause(
    Effect.andThen(reached, Effect.ensuring(lead, Effect.sync(() => lookNow()))),
    (cause) => {
      const error = Cause.findErrorOption(cause)
      isOut = Option.isSome(error) && isTransient(error.value)
      return Effect.andThen(
        log.warning("Cannot contend at present; trying again", cause),
        Effect.fail("again" as const)
      )
    }
  )

  // The schedule does not end, so neither does the retry
  const contend = annotate(Effect.forever(Effect.orDie(Effect.retry(attempt, endlessRetry))))

  const run = Effect.runForkWith(yield* Effect.context<never>())
  let isWanted = false
  let isClosed = false
  let loop: Fiber.Fiber<never> | undefined

  /** Runs in the context that made the contender. It queues again after each end but `stop`. */
  const go = () => {
    if (!isWanted || loop !== undefined) return
    loop = run(Effect.andThen(Effect.yieldNow, contend))
    loop.addObserver(() => {
      loop = undefined
      go()
    })
  }

  const begin = Effect.sync(() => {
    isWanted = !isClosed
    go()
  })

  const leave = (asking: Fiber.Fiber<unknown, unknown>) => {
    if (loop === undefined) return Effect.void
    // Not at once: work that asks as its first act is registered with its lease, and awaited, only after that
    run(Effect.andThen(Effect.yieldNow, Fiber.interrupt(loop)))
    // Work that asks for its own end must not wait for it: it yields to its interruption
    return asking.getRef(Inside).has(state) ? Effect.yieldNow : Effect.asVoid(Fiber.await(loop))
  }

  const lookNow = yield* options.follow(mutex, {
    on: (look, seen) =>
      Effect.andThen(
        see(look.owner, look.end),
        Effect.sync(() => readers.forEach((reader) => ownerWatch.serve(reader, seen)))
      ),
    refused: (cause) =>
      Effect.andThen(
        annotate(log.warning("Cannot see who owns the mutex, and looks again", cause)),
        Effect.forEach(readers, (reader) => Queue.failCause(reader, cause), { discard: true })
      ),
    // Owners of ours are announced; whether one has renewed shows after its ttl
    nextLook: ({ end, owner }, now) => {
      const inTtl = owner !== undefined && inboxOf(owner) !== "" && end !== Infinity ? end - transition : 0
      return Math.max(now, inTtl) + every
    },
    renewals: false
  })
  // The closing fiber may be the work itself
  yield* Scope.addFinalizer(
    scope,
    Effect.withFiber((closing) => {
      isClosed = true
      isWanted = false
      return Effect.andThen(leave(closing), Effect.sync(() => readers.forEach(Queue.endUnsafe)))
    })
  )
  yield* begin

  return handle<Contender>({
    mutex,
    state,
    lease: Effect.suspend(() => {
      const lease = present?.lease
      return lease === undefined
        ? Effect.succeedNone
        : Effect.map(lease.isHeld, (held) => held ? Option.some(lease) : Option.none())
    }),
    changes: Stream.unwrap(Effect.gen(function*() {
      const reader = yield* Effect.acquireRelease(
        Effect.tap(ownerWatch.makeReader, (reader) => Effect.sync(() => readers.add(reader))),
        (reader) => Effect.sync(() => readers.delete(reader))
      )
      if (isClosed) Queue.endUnsafe(reader)
      return Stream.fromQueue(reader)
    })),
    whileLeader: <A, E, R>(work: Body<A, E, R>): Effect.Effect<never, E, R> =>
      Effect.forever(Effect.gen(function*() {
        const { lease, over } = yield* Deferred.await(upcoming)
        const body = Effect.isEffect(work) ? work : Effect.suspend(() => work(lease))
        yield* lease.protect(Effect.asVoid(body)).pipe(
          Effect.catch((error) => isLossOf(lease, error) ? Effect.void : Effect.fail(error as E))
        )
        yield* Deferred.await(over)
      })),
    claimPeriod: (job, period) => store.claimPeriod({ ...period, mutex, job }),
    stepDown: Effect.withFiber(leave),
    stop: Effect.withFiber((asking) => {
      isWanted = false
      return leave(asking)
    }),
    start: begin,
    toJSON: () => ({ mutex, ...present?.lease.toJSON() as object | undefined })
  })
})
