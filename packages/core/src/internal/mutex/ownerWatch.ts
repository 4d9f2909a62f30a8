/** Follows the owner of a mutex without contending: looks at each announcement, and often enough without any. */
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { FencingToken } from "../../FencingToken.ts"
import type { MutexName } from "../../MutexName.ts"
import * as MutexSchedule from "../../MutexSchedule.ts"
import type { Change, MutexStore } from "../../MutexStore.ts"
import type { OwnerEvent } from "../../OwnerEvent.ts"
import type { StoreError } from "../../SimbaError.ts"
import type { Subscription } from "../../Subscriber.ts"
import { instant } from "../lease/instant.ts"
import { isTransient } from "../lease/storeFailure.ts"

/** The answer to one look. The owner's lease ends at `end`, in milliseconds of the observer's monotonic clock. */
export interface Look {
  readonly owner: string | undefined
  readonly token: FencingToken | undefined
  readonly end: number
}

export interface Options {
  /** The longest time between two looks. */
  readonly every: Duration.Duration
  readonly renewals: boolean
}

const nobody: Look = { owner: undefined, token: undefined, end: Infinity }

/** A renewal moves the end by more than round trips vary. Milliseconds. */
const jitter = 50

/** The events between two looks. An owner that left before the end of its lease has released. */
export const between = (
  mutex: string,
  before: Look,
  after: Look,
  now: number,
  renewals: boolean
): ReadonlyArray<OwnerEvent> => {
  const token = after.token === undefined ? {} : { token: after.token }
  if (before.owner === undefined) {
    return after.owner === undefined ? [] : [{ _tag: "Acquired", mutex, owner: after.owner, ...token }]
  }
  if (before.owner === after.owner) {
    return renewals && after.end > before.end + jitter
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

/** Looks until it is interrupted. An outage is a gap; a refusal is a failure. */
export const watch = Effect.fnUntraced(function*(
  store: MutexStore["Service"],
  mutex: MutexName,
  options: Options,
  on: (look: Look, events: ReadonlyArray<OwnerEvent>) => Effect.Effect<void>
) {
  const clock = yield* Clock.Clock
  const now = () => instant(clock).monotonic
  let last = nobody

  const look = Effect.flatMap(store.inspect(mutex, 0), ({ ownership, token }) => {
    const next: Look = ownership._tag === "Free"
      ? nobody
      : {
        owner: ownership.owner,
        token,
        end: ownership.remaining === undefined ? Infinity : now() + Duration.toMillis(ownership.remaining)
      }
    const events = between(mutex, last, next, now(), options.renewals)
    last = next
    return on(next, events)
  })

  const gap = Effect.suspend(() => on(last, [{ _tag: "Gap", mutex }]))

  const follow = (changes: Subscription<Change>) =>
    Effect.forever(Effect.gen(function*() {
      yield* look
      const every = Math.min(
        Duration.toMillis(options.every),
        changes.bound === undefined ? Infinity : Duration.toMillis(changes.bound),
        // A key is gone one millisecond after its remaining time has reached zero
        Math.max(0, last.end - now()) + 1
      )
      const change = yield* Effect.timeoutOption(changes.next, Duration.millis(every))
      if (Option.isSome(change) && change.value._tag === "Gap") yield* gap
    }))

  const attempt: Effect.Effect<never, StoreError> = Effect.scoped(Effect.flatMap(store.changes(mutex), follow)).pipe(
    Effect.tapError((error) => isTransient(error) ? gap : Effect.void)
  )
  return yield* Effect.retry(attempt, { schedule: MutexSchedule.outage, while: isTransient })
})

/** A reader that is further behind loses the oldest events, and gets a gap instead. */
const capacity = 128

export type Reader = Queue.Queue<OwnerEvent, StoreError | Cause.Done>

export const makeReader: Effect.Effect<Reader> = Queue.sliding<OwnerEvent, StoreError | Cause.Done>(capacity)

export const serve = (reader: Reader, mutex: MutexName, events: ReadonlyArray<OwnerEvent>): void => {
  for (const event of events) {
    if (Queue.sizeUnsafe(reader) >= capacity - 1) Queue.offerUnsafe(reader, { _tag: "Gap", mutex })
    Queue.offerUnsafe(reader, event)
  }
}

export const events = (
  store: MutexStore["Service"],
  mutex: MutexName,
  options: Options
): Stream.Stream<OwnerEvent, StoreError> =>
  Stream.unwrap(Effect.gen(function*() {
    const reader = yield* makeReader
    yield* watch(store, mutex, options, (_, events) => Effect.sync(() => serve(reader, mutex, events))).pipe(
      Effect.catchCause((cause) => Queue.failCause(reader, cause)),
      Effect.forkScoped
    )
    return Stream.fromQueue(reader)
  }))
