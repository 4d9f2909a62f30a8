/** The fixture for the contract suite: one mutex under test, and the attempts to acquire it. */
import { LeaseId, MutexName } from "@effect-simba/core/MutexName"
import type { Ownership } from "@effect-simba/core/MutexState"
import {
  acquire,
  type AcquireResult,
  guard,
  type GuardResult,
  inboxOf,
  MutexStore,
  release,
  type Ticket,
  type WakeUp,
  wakeUps
} from "@effect-simba/core/MutexStore"
import type { Subscription } from "@effect-simba/core/Subscriber"
import { assert, type Vitest } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as suiteTime from "./time.ts"

export type Granted = Extract<AcquireResult, { readonly _tag: "Granted" }>
export type Refused = Extract<AcquireResult, { readonly _tag: "Refused" }>

export interface Periods {
  readonly lease: Duration.Duration
  readonly confirm: Duration.Duration
}

/** Periods longer than any test. */
export const long: Periods = { lease: Duration.minutes(2), confirm: Duration.minutes(1) }

/** A confirm period that is short enough to wait for, but longer than the steps that must happen within it. */
export const shortConfirm: Periods = { lease: long.lease, confirm: Duration.millis(1500) }

export const granted = (result: AcquireResult): Granted => {
  assert.strictEqual(result._tag, "Granted", `expected a grant: ${JSON.stringify(result)}`)
  return result as Granted
}

export const refused = (result: AcquireResult): Refused => {
  assert.strictEqual(result._tag, "Refused", `expected a refusal: ${JSON.stringify(result)}`)
  return result as Refused
}

export const ownerOf = (ownership: Ownership): string | undefined =>
  ownership._tag === "Held" ? ownership.owner : undefined

export const timeLeftOf = (ownership: Ownership): number => {
  assert.isTrue(ownership._tag === "Held" && ownership.timeLeft !== undefined, "expected an owner with an expiry")
  return ownership._tag === "Held" ? Duration.toMillis(ownership.timeLeft!) : NaN
}

export const tagOf = (result: GuardResult) => result._tag

/** One attempt to acquire the mutex, with its lease id and its wake-ups. */
export class Party {
  readonly id: LeaseId
  ticket: Ticket | undefined
  wakeUps: Subscription<WakeUp> | undefined
  private subscription: Scope.Closeable | undefined
  private readonly bench: Bench

  constructor(bench: Bench, id: LeaseId) {
    this.bench = bench
    this.id = id
  }

  ask(mode: "try" | "wait", ticket: Ticket | undefined = this.ticket) {
    const { confirm, lease, mutex, store } = this.bench
    return Effect.tap(
      acquire(store, { mutex, id: this.id, mode, lease, confirm, ticket }),
      (result) =>
        Effect.sync(() => {
          if (result._tag === "Refused") this.ticket = result.ticket ?? this.ticket
        })
    )
  }

  readonly tryIt = Effect.suspend(() => this.ask("try"))

  /** Subscribes and queues, as a waiter does. */
  readonly queue = Effect.suspend(() => Effect.andThen(this.subscribe, Effect.map(this.ask("wait"), refused)))

  /** Waits for a confirm period, after which a waiter is no longer fresh. */
  readonly growStale = Effect.suspend(() => this.bench.pass(this.bench.confirm))

  readonly own = Effect.suspend(() => Effect.map(this.ask("try"), granted))

  readonly confirm = Effect.suspend(() => Effect.map(this.ask("wait"), granted))

  readonly release = Effect.suspend(() => this.leave())

  /** Releases, and returns the ownership afterwards. */
  leave() {
    const { confirm, lease, mutex, store } = this.bench
    return Effect.andThen(release(store, { mutex, id: this.id, confirm, lease }), store.owner(mutex))
  }

  /** Releases, and queues `next` in the same request. */
  requeue(next: Party) {
    const { confirm, lease, mutex, store } = this.bench
    return Effect.map(
      release(store, { mutex, id: this.id, confirm, lease, requeue: { id: next.id, lease } }),
      ({ requeued }) => {
        assert.isDefined(requeued)
        next.ticket = requeued!.ticket
        return requeued!
      }
    )
  }

  readonly guard = Effect.suspend(() => this.renew(this.bench.lease))

  renew(lease: Duration.Duration) {
    const { mutex, store } = this.bench
    return Effect.map(guard(store, [{ mutex, id: this.id, lease }]), (results) => results[0]!)
  }

  /**
   * Shortens the lease to a moment, and waits until it has expired. Before this call, the lease is too long to expire.
   */
  readonly lapse = Effect.suspend(() => {
    const lease = Duration.millis(50)
    return Effect.andThen(
      Effect.map(this.renew(lease), (result) => assert.deepStrictEqual(result, { _tag: "Renewed" })),
      this.bench.pass(lease)
    )
  })

  get subscribed(): boolean {
    return this.subscription !== undefined
  }

  readonly subscribe = Effect.suspend(() => {
    const { mutex, scope, store } = this.bench
    return Effect.gen({ self: this }, function*() {
      this.subscription = yield* Scope.fork(scope)
      this.wakeUps = yield* Scope.provide(wakeUps(store, mutex, this.id), this.subscription)
    })
  })

  /** Subscribes like a waiter in a layer whose inbox outlives the waiter. */
  readonly listen = Effect.suspend(() =>
    Effect.andThen(this.bench.store.inbox(inboxOf(this.id), () => undefined), this.subscribe)
  )

  /** Unsubscribes, and waits until the backend has processed the request. */
  readonly unsubscribe = Effect.suspend(() => {
    const { mutex, newId, store } = this.bench
    return Effect.gen({ self: this }, function*() {
      if (this.subscription === undefined) return
      yield* Scope.close(this.subscription, Exit.void)
      this.subscription = undefined
      yield* Effect.scoped(wakeUps(store, mutex, newId()))
    })
  })

  /** Returns the next wake-up. Fails the test if none arrives. */
  get wakeUp(): Effect.Effect<WakeUp> {
    return this.bench.next(this.wakeUps!)
  }

  /** Fails the test if a wake-up arrives. */
  get noWakeUp(): Effect.Effect<void> {
    return this.bench.nothing(this.wakeUps!)
  }

  readonly expectTurn = Effect.suspend(() =>
    Effect.map(this.wakeUp, (wakeUp) => assert.strictEqual(wakeUp._tag, "YourTurn"))
  )

  readonly expectPoll = Effect.suspend(() =>
    Effect.map(this.wakeUp, (wakeUp) => {
      assert.strictEqual(wakeUp._tag, "PollAfter")
      return wakeUp._tag === "PollAfter" ? Duration.toMillis(wakeUp.delay) : NaN
    })
  )
}

export interface Bench extends Periods, suiteTime.SuiteTime {
  readonly store: MutexStore["Service"]
  readonly scope: Scope.Scope
  readonly mutex: MutexName
  readonly newId: () => LeaseId
  readonly party: () => Party
  readonly parties: (count: number) => ReadonlyArray<Party>
  /** Parties that share a layer. */
  readonly siblings: (count: number) => ReadonlyArray<Party>
  /** The current time, in microseconds. */
  readonly micros: Effect.Effect<number>
  readonly owner: Effect.Effect<Ownership, Effect.Error<ReturnType<MutexStore["Service"]["owner"]>>>
}

export const makeBench = Effect.fnUntraced(function*(
  options: { readonly live: boolean },
  label: string,
  periods: Periods = long
) {
  const store = yield* MutexStore
  const scope = yield* Effect.scope
  const unique = (yield* Random.nextIntBetween(0, 36 ** 8)).toString(36).padStart(12, "0")
  const mutex = MutexName.make(`${label} ${unique}`)
  // Count down: ids must never sort in order of arrival
  let counter = 100_000
  // To the store, each party is a separate layer, and siblings share a layer
  const newId = (sibling?: LeaseId) => {
    const own = `${unique.slice(4)}${(--counter).toString(36).padStart(4, "0")}`
    return LeaseId.make(`${counter}-${sibling === undefined ? own : inboxOf(sibling)}:suite@host`)
  }
  const party = () => new Party(bench, newId())
  const bench: Bench = {
    ...periods,
    ...suiteTime.make(options),
    store,
    scope,
    mutex,
    newId,
    party,
    parties: (count) => Array.from({ length: count }, party),
    siblings: (count) => {
      const first = party()
      return [first, ...Array.from({ length: count - 1 }, () => new Party(bench, newId(first.id)))]
    },
    micros: Effect.map(Clock.currentTimeMillis, (millis) => millis * 1000),
    owner: store.owner(mutex)
  }
  return bench
})

/** What the test cases share: how to register a test, how to make a bench, and what the store can do. */
export interface Cases {
  readonly it: Vitest.MethodsNonLive<MutexStore>
  readonly bench: (label: string, periods?: Periods) => ReturnType<typeof makeBench>
  /** Whether the store can count subscribers, and so skips dead waiters. */
  readonly countsSubscribers: boolean
}
