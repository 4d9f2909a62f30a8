/**
 * Taking part in the contention for a mutex over a long time: owning it whenever it can be had, many times over.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import type * as SubscriptionRef from "effect/SubscriptionRef"
import type { Body, Lease } from "./Lease.ts"
import { type LeaseOptions, Mutex } from "./Mutex.ts"
import type { MutexName } from "./MutexName.ts"
import type { ClaimPeriodRequest, ClaimPeriodResult } from "./MutexStore.ts"
import type { OwnerEvent } from "./OwnerEvent.ts"
import type { InvalidConfig, InvalidName, StoreError } from "./SimbaError.ts"

/**
 * Options of a contender: those of its leases, and `every` (default 1 second), the longest time between two looks at
 * who owns the mutex while nothing is announced.
 *
 * **Example** (A contender that may stay away for a while)
 *
 * ```ts
 * import { Contender } from "@effect-simba/core"
 *
 * const options: Contender.ContenderOptions = { ttl: "30 seconds", transition: "15 seconds", every: "5 seconds" }
 *
 * class Reports extends Contender.Service<Reports>()("reports", options) {}
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface ContenderOptions extends LeaseOptions {
  readonly every?: Duration.Input | undefined
}

/**
 * What a contender knows of the mutex.
 *
 * - `before`, `after`: the wire id of the owner before and after the last change; `undefined` is nobody.
 * - `isOwner`: this contender holds it, judged locally.
 * - `isInTtl`, `isInTransition`: whether the owner's lease is in its ttl, or in the grace after it. Of a foreign owner
 *   only the remaining time is known: it is in its ttl while more than the transition remains.
 *
 * **Example** (What a health check may say)
 *
 * ```ts
 * import { Contender } from "@effect-simba/core"
 * import { Effect, SubscriptionRef } from "effect"
 *
 * class Jobs extends Contender.Service<Jobs>()("jobs") {}
 *
 * const health = Effect.gen(function*() {
 *   const { state } = yield* Jobs
 *   const { after, isOwner } = yield* SubscriptionRef.get(state)
 *   return { role: isOwner ? "leader" : "standby", leader: after ?? "none" }
 * })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface ContenderState {
  readonly before: string | undefined
  readonly after: string | undefined
  readonly isOwner: boolean
  readonly isInTtl: boolean
  readonly isInTransition: boolean
}

/**
 * A contender, from `Mutex.contend` or as a Layer from `Contender.Service`. It contends as long as its scope is open, and
 * survives whatever happens to the backend. It does so in the context in which it was made: what it logs has the
 * annotations of that, whoever starts it or makes it step down.
 *
 * **Example** (Making room for another node after each batch)
 *
 * ```ts
 * import type { Contender } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const inTurns = (contention: Contender.Contender, batch: Effect.Effect<void>) =>
 *   contention.whileLeader((lease) =>
 *     Effect.log(`a batch with token ${lease.token}`).pipe(
 *       Effect.andThen(batch),
 *       Effect.andThen(contention.stepDown)
 *     )
 *   )
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Contender {
  readonly mutex: MutexName
  /** The present state, and its changes by `SubscriptionRef.changes`. */
  readonly state: SubscriptionRef.SubscriptionRef<ContenderState>
  /** The lease, while this contender leads. */
  readonly lease: Effect.Effect<Option.Option<Lease>>
  /**
   * The changes of ownership of this mutex, also of foreign owners, from now on. A slow reader blocks nobody: a `Gap`
   * tells it that it missed something. Fails where the backend answers what cannot be read or will not pass; the
   * contender itself goes on, and the changes can be read again. Ends when the scope of the contender closes.
   */
  readonly changes: Stream.Stream<OwnerEvent, StoreError>
  /**
   * Runs `work` whenever this contender leads: from the start at each gain, interrupted at each loss. When `work` ends
   * before the leadership does, it is not run again until the next gain. A failure of `work` ends `whileLeader` with
   * it, and leaves the leadership alone. Never ends by itself, not even with the scope of the contender. `work` may be
   * a function: it is given the lease.
   */
  readonly whileLeader: <A, E, R>(work: Body<A, E, R>) => Effect.Effect<never, E, R>
  /**
   * Whether the caller is the first of the fleet in a period of `job`, by the backend's own time: see `TickRequest`.
   * `Leadership.leaderSchedule` asks it for work that is to run once per period. It is answered whoever leads.
   */
  readonly claimPeriod: (
    job: string,
    period: Pick<ClaimPeriodRequest, "every" | "at">
  ) => Effect.Effect<ClaimPeriodResult, StoreError>
  /**
   * Gives the leadership up, if it has it: interrupts the work, awaits it, releases, and queues again as the last. A
   * contender that was stopped stays away.
   *
   * The work itself may ask for it, from wherever it is, finalizers and uninterruptible regions included, and is
   * interrupted by that. Inside the work, which is also what was forked there and what `lease.protect` runs, neither
   * this nor `stop` waits, nor does the end of the scope: the work would wait for its own end.
   */
  readonly stepDown: Effect.Effect<void>
  /**
   * Drains this contender: it asks no more, and gives up its place in the queue. If it leads, the work is interrupted
   * and awaited with its finalizers, then the leadership is handed over to the first who waits. Returns when that is
   * done (inside the work at once), and stays away until `start`, whatever else was under way. What `whileLeader` runs
   * stays registered.
   */
  readonly stop: Effect.Effect<void>
  /** Contends again after `stop`, but not once its scope has closed. */
  readonly start: Effect.Effect<void>
}

/**
 * What `Contender.Service` makes: the tag of a contender, and its Layer.
 *
 * @see {@link Contender.Service}
 * @category models
 * @since 0.1.0
 */
export interface ContenderClass<in out Self, Name extends string>
  extends Context.ServiceClass<Self, `@effect-simba/core/Contender/${Name}`, Contender>
{
  readonly layer: Layer.Layer<Self, InvalidName | InvalidConfig, Mutex>
}

/**
 * A contender as a class: a service that is a `Contention`, with the Layer that makes it. The tag carries the name of
 * the mutex, so that several contenders live in one application, on the connections of one `Mutex`.
 *
 * Two classes with one name are one service to Effect: whoever asks for either gets the same contender, with the options of
 * one of them. Make one class, and share it. The name is that of a mutex like any other: work of the leader that takes a
 * lock of that name waits for its own leadership to end.
 *
 * **Example** (A service built on being the leader)
 *
 * ```ts
 * import { Contender } from "@effect-simba/core"
 * import { Effect, Layer } from "effect"
 *
 * class Jobs extends Contender.Service<Jobs>()("jobs", { ttl: "5 seconds" }) {}
 *
 * const Cleaner = Layer.effectDiscard(Effect.gen(function*() {
 *   const jobs = yield* Jobs
 *   yield* Effect.forkScoped(jobs.whileLeader(Effect.log("cleaning")))
 * })).pipe(Layer.provide(Jobs.layer))
 * ```
 *
 * @category contention
 * @since 0.1.0
 */
export const Service =
  <Self>() => <const Name extends string>(name: Name, options?: ContenderOptions): ContenderClass<Self, Name> =>
    class extends Context.Service<Self, Contender>()(`@effect-simba/core/Contender/${name}`) {
      static readonly layer = Layer.effect(this, Mutex.use((mutex) => mutex.contend(name, options)))
    } as unknown as ContenderClass<Self, Name>
