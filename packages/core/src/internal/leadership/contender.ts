/**
 * Implements `Mutex.contend`: a loop that acquires the mutex, leads until the lease ends, and acquires the mutex again.
 * It also runs the leader's work, counts the job runs that `jobRunner` starts, and publishes states and events to
 * observers. `leadershipPlan` makes the decisions, and `contention` creates the contender.
 */
import * as Cause from "effect/Cause"
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
import type { Contender, State, WorkOptions } from "../../Contender.ts"
import type { Body, Lease } from "../../Lease.ts"
import * as MutexMetrics from "../../MutexMetrics.ts"
import type { MutexName } from "../../MutexName.ts"
import { inboxOf } from "../../MutexStore.ts"
import type { AcquireError, RequestError } from "../../SimbaError.ts"
import { handle } from "../handleBase.ts"
import type { Instant } from "../lease/instant.ts"
import type { Recorder } from "../lease/metricsRecorder.ts"
import { isTransient } from "../lease/storeFailure.ts"
import { retryPauses } from "../lease/storeRetries.ts"
import * as log from "../log.ts"
import * as ownerWatch from "../mutex/ownerWatch.ts"
import { holds, isLossOf, isSame, observe, stateOf, unobserved } from "./contenderState.ts"
import { type JobHost, register } from "./jobHost.ts"
import * as plan from "./leadershipPlan.ts"

/** The contenders whose work contains the running fiber. Child fibers inherit this set. */
const Inside = Context.Reference<ReadonlySet<object>>("@effect-simba/core/internal/Inside", {
  defaultValue: () => new Set()
})

/** How many states are buffered for a reader. A reader that falls further behind loses the oldest states. */
const capacity = 16

interface Leadership {
  readonly lease: Lease
  /** The value of `Contention.leadership` when this leadership began. */
  readonly number: number
  readonly over: Deferred.Deferred<void>
  /** Completed once this leadership is over, or is resigning and its job runs have ended. */
  readonly drained: Deferred.Deferred<void>
}

export const make = Effect.fnUntraced(function*(options: {
  readonly store: JobHost["store"]
  readonly follow: ownerWatch.Follow
  readonly mutex: MutexName
  readonly transition: Duration.Duration
  readonly margin: Duration.Duration
  readonly pollInterval: Duration.Duration
  readonly drainTimeout: Duration.Duration
  readonly logLevel: LogLevel.Severity
  readonly recorder: Recorder
  readonly now: () => Instant
  readonly acquire: Effect.Effect<Lease, AcquireError, Scope.Scope>
  readonly acquireIfAvailable: Effect.Effect<Option.Option<Lease>, RequestError, Scope.Scope>
}): Effect.fn.Return<Contender, never, Scope.Scope> {
  const { mutex, now, recorder, store } = options
  const every = Duration.toMillis(options.pollInterval)
  const transition = Duration.toMillis(options.transition)
  const margin = Duration.toMillis(options.margin)
  const scope = yield* Effect.scope
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const identity = {}
  const eventReaders = new Set<ownerWatch.Reader>()
  const stateReaders = new Set<Queue.Queue<State, Cause.Done>>()
  let upcoming = Deferred.makeUnsafe<Leadership>()
  const contention = plan.make()
  /** The current leadership. Set between the events `Gained` and `Over`. */
  let present: Leadership | undefined
  /** The loop. It runs unless the plan is `stopped`. */
  let loop: Fiber.Fiber<never> | undefined
  let observation = unobserved

  const current = () => {
    // `holds` comes first: it ends an overdue lease, which changes the state
    if (present !== undefined) holds(present.lease)
    return stateOf(observation, present?.lease, contention.isWanted, { transition, margin })
  }
  let published = current()

  const publish = () => {
    const next = current()
    if (isSame(next, published)) return
    published = next
    stateReaders.forEach((reader) => Queue.offerUnsafe(reader, next))
  }

  /** `end` is when the owner's lease ends, in monotonic milliseconds. */
  const see = (owner: string | undefined, end: number) => {
    observation = observe(observation, owner, end, now(), transition)
    publish()
  }

  /** Marks all work under the lease as this contender's work. */
  const marked = (lease: Lease): Lease => {
    const protect: Lease["protect"] = (effect) =>
      lease.protect(Effect.updateService(effect, Inside, (outer) => new Set(outer).add(identity)))
    return Object.create(lease, { protect: { value: protect } })
  }

  const annotate = Effect.annotateLogs({ mutex })

  const report = (what: string, { id, token }: Lease) =>
    Effect.annotateLogs(log.at(options.logLevel)(what), { lease: id, token })

  /** A leaving contender does not queue, and leads only if nobody else wants to. */
  const acquire: typeof options.acquire = Effect.suspend(() =>
    contention.isLeaving
      ? Effect.flatMap(
        options.acquireIfAvailable,
        (lease) => Option.isSome(lease) ? Effect.succeed(lease.value) : Effect.andThen(Effect.sleep(every), acquire)
      )
      : options.acquire
  )

  const pauses = retryPauses()

  const lead = Effect.scoped(Effect.gen(function*() {
    const lease = marked(yield* acquire)
    // Added to the scope after the lease, so this finalizer runs before the release
    const leadership = yield* Effect.acquireRelease(
      Effect.sync((): Leadership => {
        happens({ _tag: "Gained", now: now().monotonic })
        pauses.succeeded()
        recorder.update(MutexMetrics.leadership.gained, 1, mutex)
        return present = {
          lease,
          number: contention.leadership,
          over: Deferred.makeUnsafe(),
          drained: Deferred.makeUnsafe()
        }
      }),
      (leadership) =>
        Effect.suspend(() => {
          present = undefined
          happens({ _tag: "Over", now: now().monotonic })
          // New work waits for the next leadership, not for the one that has just ended
          if (Deferred.isDoneUnsafe(upcoming)) upcoming = Deferred.makeUnsafe()
          Deferred.doneUnsafe(leadership.over, Exit.void)
          Deferred.doneUnsafe(leadership.drained, Exit.void)
          recorder.update(MutexMetrics.leadership.ended[holds(lease) ? "released" : "lost"], 1, mutex)
          see(observation.after, -Infinity)
          return report("Leadership ends", lease)
        })
    )
    yield* report("Leadership begins", lease)
    // When the lease ends is unknown until the next poll; until then, `stateOf` asks the lease
    see(lease.id, -Infinity)
    yield* Deferred.succeed(upcoming, leadership)
    yield* lease.lost
  }))

  /**
   * Whether the last attempt ended in an outage. If so, the next attempt first probes the backend with one cheap
   * request, because an acquire would repeat its request every second.
   */
  let isOut = false
  const reached = Effect.suspend(() => isOut ? Effect.map(store.owner(mutex), () => void (isOut = false)) : Effect.void)

  // Interrupting the loop itself bypasses this handler
  const attempt = Effect.suspend(() => {
    const began = now().monotonic
    const attempted = Effect.andThen(reached, Effect.ensuring(lead, Effect.sync(() => pollNow())))
    return Effect.catchCause(attempted, (cause) => {
      isOut = Option.exists(Cause.findErrorOption(cause), isTransient)
      const pause = pauses.failed(now().monotonic - began)
      return Effect.andThen(log.warning("Cannot contend; retrying:", log.why(cause)), pause)
    })
  })

  const pausing = Effect.suspend(() => {
    const millis = contention.contendsAt - now().monotonic
    return millis > 0 ? Effect.sleep(millis) : Effect.yieldNow
  })

  const contend = annotate(Effect.forever(Effect.andThen(pausing, attempt)))

  /** Starts the loop in the context that created the contender. */
  const startLoop = () => {
    loop = run(contend)
    loop.addObserver(() => happens({ _tag: "LoopEnded" }))
  }

  /** Waits until a resigning leadership's job runs have ended, for at most `drainTimeout`. */
  const drain = (leadership: Leadership) => {
    const { drained, number } = leadership
    if (contention.runs === 0) Deferred.doneUnsafe(drained, Exit.void)
    const draining = Effect.timeoutOption(Deferred.await(drained), options.drainTimeout)
    const ended = Effect.sync(() => happens({ _tag: "Drained", leadership: number }))
    run(Effect.forkIn(Effect.andThen(draining, ended), scope))
  }

  const leading = (): Leadership => {
    if (present === undefined) throw new Error(`a contender that is ${contention.phase} has no lease`)
    return present
  }

  const happens = (event: plan.Event): void => {
    switch (plan.next(contention, event)) {
      case "nothing":
        return
      case "begin":
        return startLoop()
      case "interrupt":
        return loop?.interruptUnsafe()
      case "drain":
        return drain(leading())
      case "endDrain":
        return void Deferred.doneUnsafe(leading().drained, Exit.void)
    }
  }

  const failed = ({ number }: Leadership) => happens({ _tag: "WorkFailed", leadership: number, now: now().monotonic })

  const begin = Effect.sync(() => {
    happens({ _tag: "Start" })
    publish()
  })

  /** Interrupts the loop, which restarts after `StepDown`. */
  const leave = (asking: Fiber.Fiber<unknown, unknown>, event: "Stop" | "StepDown" | "Close") => {
    const left = plan.next(contention, { _tag: event }) === "interrupt" ? loop : undefined
    publish()
    if (left === undefined) return Effect.void
    // Interrupt in another fiber: work that calls `leave` in its first step is not registered with its lease yet
    run(Effect.andThen(Effect.yieldNow, Fiber.interrupt(left)))
    // Work that ends itself must not wait for its own end. Yield to let the interruption arrive
    return asking.getRef(Inside).has(identity) ? Effect.yieldNow : Effect.asVoid(Fiber.await(left))
  }

  /**
   * Waits until the release has been executed. The backend executes a process's requests in order, so the reply to a
   * later request proves it.
   */
  const released = Effect.ignore(Effect.timeoutOption(store.owner(mutex), "2 seconds"))

  const stop = Effect.withFiber<void>((asking) => {
    const left = leave(asking, "Stop")
    return asking.getRef(Inside).has(identity) ? left : Effect.andThen(left, released)
  })

  const pollNow = yield* options.follow(mutex, {
    on: (poll, events) =>
      Effect.sync(() => {
        see(poll.owner, poll.end)
        eventReaders.forEach((reader) => ownerWatch.serve(reader, events))
      }),
    refused: (cause) =>
      Effect.andThen(
        annotate(log.warning("Cannot read who owns the mutex; polling again:", log.why(cause))),
        Effect.forEach(eventReaders, (reader) => Queue.failCause(reader, cause), { discard: true })
      ),
    // Owners that run this library publish their grants, so polling can wait until the owner's ttl has passed
    nextPoll: ({ end, owner }, now) => {
      const isRenewed = owner !== undefined && inboxOf(owner) !== "" && end !== Infinity
      return (isRenewed ? Math.max(now, end - transition) : now) + every
    },
    renewals: false
  })
  // The fiber that closes the scope may be the leader's work
  yield* Scope.addFinalizer(
    scope,
    Effect.withFiber((closing) =>
      Effect.andThen(
        leave(closing, "Close"),
        Effect.sync(() => {
          eventReaders.forEach(Queue.endUnsafe)
          stateReaders.forEach(Queue.endUnsafe)
        })
      )
    )
  )
  yield* begin

  /** Streams to a new reader until the contender's scope closes. `begin` may offer a first value. */
  const reading = <A, E>(
    readers: Set<Queue.Queue<A, E | Cause.Done>>,
    make: Effect.Effect<Queue.Queue<A, E | Cause.Done>>,
    begin: (reader: Queue.Queue<A, E | Cause.Done>) => void = () => {}
  ): Stream.Stream<A, E> =>
    Stream.unwrap(Effect.gen(function*() {
      const reader = yield* Effect.acquireRelease(
        // Offer the first value and register in one step: a value published in between would be missed
        Effect.tap(make, (reader) =>
          Effect.sync(() => {
            begin(reader)
            readers.add(reader)
          })),
        (reader) => Effect.sync(() => readers.delete(reader))
      )
      if (contention.isClosed) Queue.endUnsafe(reader)
      return Stream.fromQueue(reader)
    }))

  const contender = handle<Contender>({
    mutex,
    state: Effect.sync(current),
    changes: reading<State, never>(stateReaders, Queue.sliding<State, Cause.Done>(capacity), (reader) => {
      publish()
      Queue.offerUnsafe(reader, published)
    }),
    lease: Effect.sync(() =>
      present !== undefined && holds(present.lease) ? Option.some(present.lease) : Option.none()
    ),
    events: reading(eventReaders, ownerWatch.makeReader),
    whileLeader: <A, E, R>(work: Body<A, E, R>, { onError = "stepDown" }: WorkOptions = {}) =>
      Effect.forever(Effect.uninterruptibleMask((restore) =>
        Effect.gen(function*() {
          const leadership = yield* restore(Effect.suspend(() => Deferred.await(upcoming)))
          const { lease, over } = leadership
          const body = Effect.isEffect(work) ? work : Effect.suspend(() => work(lease))
          const exit = yield* Effect.exit(restore(lease.protect(Effect.asVoid(body))))
          if (Exit.isFailure(exit) && !isLossOf(lease, exit.cause)) {
            if (onError === "fail") return yield* Effect.failCause(exit.cause as Cause.Cause<never>)
            // Stops here if the caller was interrupted; otherwise the work has interrupted itself
            if (Cause.hasInterruptsOnly(exit.cause)) yield* restore(Effect.void)
            yield* annotate(log.error("The leader's work failed, so its leadership ends", exit.cause)).pipe(
              Effect.annotateLogs({ token: lease.token })
            )
            failed(leadership)
          }
          yield* restore(Deferred.await(over))
        })
      )),
    leave: Effect.withFiber((asking) => {
      const left = plan.next(contention, { _tag: "Leave" }) === "interrupt" ? loop : undefined
      // Interrupt in the same step: after a yield, this could end a leadership that has just begun
      left?.interruptUnsafe(asking.id)
      // The loop may be waiting for an earlier leadership's work, so such work must not wait for the loop
      return left === undefined || asking.getRef(Inside).has(identity) ? Effect.void : Effect.asVoid(Fiber.await(left))
    }),
    stepDown: Effect.withFiber((asking) => leave(asking, "StepDown")),
    stop,
    start: begin,
    toJSON: () => ({ mutex, ...present?.lease.toJSON() as object | undefined })
  })
  /**
   * Returns the leadership under this lease, unless the lease's deadline has passed or that leadership is about to end.
   */
  const leadingUnder = (lease: Lease) =>
    // `holds` comes first: it ends overdue leases, and that may run finalizers
    holds(lease) && present?.lease.id === lease.id && plan.mayStart(contention) ? present : undefined
  register(contender, {
    store,
    jobs: new Map(),
    claims: 0,
    mayStart: (lease) => leadingUnder(lease) !== undefined,
    startRun: (lease) => {
      const leadership = leadingUnder(lease)
      if (leadership === undefined) return undefined
      happens({ _tag: "RunStarted" })
      return () => happens({ _tag: "RunEnded", leadership: leadership.number })
    },
    resign: ({ id }) => {
      if (present?.lease.id === id) failed(present)
    }
  })
  return contender
})
