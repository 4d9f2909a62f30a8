/**
 * Follows the owners of mutexes without contending, for contenders and `Mutex.events`. In a layer, all followers of a
 * mutex share one watch.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { FencingToken } from "../../FencingToken.ts"
import type { EventsOptions } from "../../Mutex.ts"
import type { MutexName } from "../../MutexName.ts"
import type { MutexState } from "../../MutexState.ts"
import type { OwnerEvent } from "../../OwnerEvent.ts"
import type { InvalidConfig, InvalidName, StoreError } from "../../SimbaError.ts"
import { storeTimeout } from "../lease/replyTimeout.ts"
import { isTransient } from "../lease/storeFailure.ts"
import { endlessRetry } from "../lease/storeRetries.ts"
import { checked, mutexProblem } from "../nameRules.ts"
import { positive } from "../optionChecks.ts"
import { type AttemptContext, closed } from "./attempt.ts"
import type { HeldLease } from "./heldLease.ts"
import type { LayerParts } from "./layerParts.ts"

/** The result of one poll. The owner's lease ends at `end`, in milliseconds of the observer's monotonic clock. */
interface Poll {
  readonly owner: string | undefined
  readonly token: FencingToken | undefined
  readonly end: number
}

/** A follower of one mutex's owner. */
interface Follower {
  readonly on: (poll: Poll, events: ReadonlyArray<OwnerEvent>) => Effect.Effect<void>
  /** The backend refused a request. The watch keeps polling. */
  readonly refused: (cause: Cause.Cause<StoreError>) => Effect.Effect<void>
  /** When to poll unless something is published earlier, in monotonic milliseconds. */
  readonly nextPoll: (poll: Poll, now: number) => number
  readonly renewals: boolean
}

const nobody: Poll = { owner: undefined, token: undefined, end: Infinity }

/** A renewal moves the end of the lease by more than this; variation in the round trip moves it by less. */
const jitterMillis = 50

/**
 * Infers the events between two polls. An owner that disappears before the end of its lease counts as having released
 * it.
 */
export const between = (
  mutex: string,
  before: Poll,
  after: Poll,
  now: number,
  renewals: boolean
): ReadonlyArray<OwnerEvent> => {
  const token = after.token === undefined ? {} : { token: after.token }
  if (before.owner === undefined) {
    return after.owner === undefined ? [] : [{ _tag: "Acquired", mutex, owner: after.owner, ...token }]
  }
  if (before.owner === after.owner) {
    return renewals && after.end > before.end + jitterMillis
      ? [{ _tag: "Renewed", mutex, owner: before.owner, ...token }]
      : []
  }
  const expired = now >= before.end
  if (after.owner === undefined) {
    return [{ _tag: expired ? "Expired" : "Released", mutex, owner: before.owner }]
  }
  return expired
    ? [
      { _tag: "Expired", mutex, owner: before.owner },
      { _tag: "Acquired", mutex, owner: after.owner, ...token }
    ]
    : [{ _tag: "HandedOver", mutex, owner: before.owner, successor: after.owner }]
}

/** Polls that are due within this time are sent together. */
const togetherMillis = 250

/**
 * How long before the end of a lease to send the last poll. After an earlier poll, an expiry would look like a renewal
 * followed by a release.
 */
const beforeEndMillis = 100

interface Watch {
  readonly mutex: MutexName
  readonly scope: Scope.Closeable
  /** The followers, each with the last poll result that it received. */
  readonly followers: Map<Follower, Poll>
  state: "idle" | "polling" | "polling, poll again" | "closed"
  cancel: (() => void) | undefined
  /** Maximum time between two polls in milliseconds. Finite if the subscription cannot detect gaps. */
  boundMillis: number
}

/** Follows a mutex until the scope closes. Returns a function that polls immediately. */
export type Follow = (mutex: MutexName, follower: Follower) => Effect.Effect<() => void, never, Scope.Scope>

/**
 * `held` returns the lease held by a fiber in this layer, if any. Scheduled polls then use it instead of asking the
 * backend.
 */
export const make = Effect.fnUntraced(function*(
  { lease, now, store, timers }: Pick<AttemptContext, "lease" | "now" | "store" | "timers">,
  held: (mutex: MutexName) => HeldLease | undefined
): Effect.fn.Return<Follow, never, Scope.Scope> {
  const layer = yield* Effect.scope
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const watches = new Map<MutexName, Watch>()

  /** Notifies the followers one by one. A follower may be removed in the meantime. */
  const notify = ({ followers }: Watch, f: (follower: Follower, last: Poll) => Effect.Effect<void>) =>
    Effect.suspend(() =>
      Effect.forEach([...followers.keys()], (follower) => {
        const last = followers.get(follower)
        return last === undefined ? Effect.void : f(follower, last)
      }, { discard: true })
    )

  const gap = (watch: Watch) =>
    notify(watch, (follower, last) => follower.on(last, [{ _tag: "Gap", mutex: watch.mutex }]))

  /** Repeats the request until it gets a reply. */
  const persist = <A, R>(watch: Watch, request: Effect.Effect<A, StoreError, R>): Effect.Effect<A, never, R> =>
    request.pipe(
      Effect.catchCause((cause) => {
        const error = Cause.findErrorOption(cause)
        const isOutage = Option.isSome(error) && isTransient(error.value)
        return Effect.andThen(
          isOutage ? gap(watch) : notify(watch, (follower) => follower.refused(cause)),
          Effect.fail("retry" as const)
        )
      }),
      Effect.retry(endlessRetry),
      Effect.orDie
    )

  const pollOf = ({ ownership, token }: Pick<MutexState, "ownership" | "token">): Poll =>
    ownership._tag === "Free" ? nobody : {
      owner: ownership.owner,
      token,
      end: ownership.timeLeft === undefined ? Infinity : now().monotonic + Duration.toMillis(ownership.timeLeft)
    }

  const ownPoll = (mutex: MutexName): Poll | undefined => {
    const lease = held(mutex)
    const instant = now()
    return lease?.isOpen() === true
      ? { owner: lease.id, token: lease.token, end: instant.monotonic + lease.serverLeft(instant) }
      : undefined
  }

  const saw = (watch: Watch, poll: Poll) =>
    notify(watch, (follower, last) => {
      watch.followers.set(follower, poll)
      return follower.on(poll, between(watch.mutex, last, poll, now().monotonic, follower.renewals))
    })

  const rest = (watch: Watch) => {
    watch.state = "idle"
    const { monotonic } = now()
    let next = monotonic + watch.boundMillis
    // A key disappears one millisecond after its remaining time has reached zero
    let end = Infinity
    for (const [follower, poll] of watch.followers) {
      next = Math.min(next, follower.nextPoll(poll, monotonic))
      end = Math.min(end, poll.end + 1)
    }
    const shared = Math.floor(next / togetherMillis) * togetherMillis
    const last = end - beforeEndMillis
    const at = Math.min(shared > monotonic ? shared : next, monotonic < last ? last : Math.max(end, monotonic + 1))
    watch.cancel = at === Infinity ? undefined : timers.pollAt(at, () => poll(watch, ownPoll(watch.mutex)))
  }

  /** Polls. If the result is `known`, no request is sent. */
  const poll = (watch: Watch, known?: Poll): void => {
    if (timers.isClosed() || watch.state === "closed") return
    watch.cancel?.()
    if (watch.state !== "idle") return void (watch.state = "polling, poll again")
    watch.state = "polling"
    const asked: Effect.Effect<void> = Effect.suspend(() => {
      const { mutex } = watch
      const isKnown = known !== undefined && watch.state === "polling"
      if (watch.state !== "closed") watch.state = "polling"
      const polling = isKnown
        ? Effect.succeed(known)
        : Effect.map(persist(watch, storeTimeout(store.inspect(mutex, 0), "inspect", lease)), pollOf)
      return Effect.flatMap(Effect.flatMap(polling, (poll) => saw(watch, poll)), () => {
        if (watch.state === "polling, poll again") return asked
        // Go idle in the same step as the check: a change published later then starts the next poll
        if (watch.state === "polling") rest(watch)
        return Effect.void
      })
    })
    run(Effect.forkIn(asked, watch.scope, { startImmediately: true }))
  }

  /** Subscribes before the first poll, or a change could be missed. */
  const hear = (watch: Watch) =>
    Effect.gen(function*() {
      const changes = yield* persist(watch, store.changes(watch.mutex))
      if (changes.bound !== undefined) watch.boundMillis = Duration.toMillis(changes.bound)
      poll(watch)
      return yield* Effect.forever(Effect.flatMap(changes.next, (change) => {
        if (change._tag === "Gap") return Effect.andThen(gap(watch), Effect.sync(() => poll(watch)))
        // Check and poll in one step: during a yield, the lease may end, and another poll may report that
        const own = ownPoll(watch.mutex)
        poll(watch, own?.owner === change.owner ? own : undefined)
        return Effect.void
      }))
    })

  const open = (mutex: MutexName): Watch => {
    const scope = Scope.forkUnsafe(layer)
    const watch: Watch = {
      mutex,
      scope,
      followers: new Map(),
      state: "idle",
      cancel: undefined,
      boundMillis: Infinity
    }
    watches.set(mutex, watch)
    return watch
  }

  return (mutex, follower) =>
    Effect.uninterruptible(Effect.gen(function*() {
      // Check and create in one step: a yield in between could open a second watch
      const known = watches.get(mutex)
      const watch = known ?? open(mutex)
      watch.followers.set(follower, nobody)
      yield* Effect.addFinalizer(() =>
        Effect.suspend(() => {
          watch.followers.delete(follower)
          if (watch.followers.size > 0) return Effect.void
          watches.delete(mutex)
          watch.state = "closed"
          watch.cancel?.()
          return Scope.close(watch.scope, Exit.void)
        })
      )
      if (known === undefined) {
        yield* Effect.forkIn(Scope.provide(hear(watch), watch.scope), watch.scope, { startImmediately: true })
      } else poll(watch, ownPoll(mutex))
      return () => poll(watch)
    }))
})

/** A layer's watches. The first follower creates them. */
export const ofLayer = (parts: LayerParts): Effect.Effect<Follow> =>
  Effect.suspend(() =>
    parts.follow !== undefined
      ? Effect.succeed(parts.follow)
      // Another fiber may have created them in the meantime
      : Effect.map(Scope.provide(make(parts, parts.held), parts.scope), (follow) => parts.follow ??= follow)
  ).pipe(Effect.provideContext(parts.services))

/**
 * How many events are buffered for a reader. A reader that falls further behind receives a `Gap` instead of the
 * buffered events.
 */
const capacity = 128

export type Reader = Queue.Queue<OwnerEvent, StoreError | Cause.Done>

export const makeReader: Effect.Effect<Reader> = Queue.bounded<OwnerEvent, StoreError | Cause.Done>(capacity)

export const serve = (reader: Reader, events: ReadonlyArray<OwnerEvent>): void => {
  for (const event of events) {
    // A reader that has failed does not accept any more events, but still has those from before its failure
    if (reader.state._tag !== "Open") return
    if (Queue.isFullUnsafe(reader)) {
      while (Queue.sizeUnsafe(reader) > 0) Queue.takeUnsafe(reader)
      Queue.offerUnsafe(reader, { _tag: "Gap", mutex: event.mutex })
    }
    Queue.offerUnsafe(reader, event)
  }
}

/** Implements `Mutex.events`. */
export const events = (
  parts: LayerParts,
  name: string,
  options: EventsOptions = {}
): Stream.Stream<OwnerEvent, StoreError | InvalidName | InvalidConfig> =>
  Stream.unwrap(Effect.gen(function*() {
    const mutex = yield* checked<MutexName>("mutex", mutexProblem)(name)
    const every = Duration.toMillis(yield* positive("pollInterval", options.pollInterval ?? "1 second"))
    const follow = yield* ofLayer(parts)
    const reader = yield* makeReader
    // Closes with the layer or the stream; already closed if the layer has closed
    const open = yield* Effect.acquireRelease(Scope.fork(parts.scope), Scope.close)
    yield* Scope.addFinalizer(open, Queue.fail(reader, closed("events")))
    yield* follow(mutex, {
      on: (_, events) => Effect.sync(() => serve(reader, events)),
      refused: (cause) => Effect.asVoid(Queue.failCause(reader, cause)),
      nextPoll: (_, now) => now + every,
      renewals: options.renewals ?? false
    })
    return Stream.fromQueue(reader)
  }))
