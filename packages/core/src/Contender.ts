/**
 * A contender for a mutex, which owns it whenever it can, many times over.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { Inspectable } from "effect/Inspectable"
import * as Layer from "effect/Layer"
import type * as LogLevel from "effect/LogLevel"
import type * as Option from "effect/Option"
import type { Pipeable } from "effect/Pipeable"
import type * as Stream from "effect/Stream"
import type * as SubscriptionRef from "effect/SubscriptionRef"
import type { Body, Lease } from "./Lease.ts"
import { type LeaseOptions, Mutex } from "./Mutex.ts"
import type { MutexName } from "./MutexName.ts"
import type { ClaimPeriodRequest, ClaimPeriodResult } from "./MutexStore.ts"
import type { OwnerEvent } from "./OwnerEvent.ts"
import type { InvalidConfig, InvalidName, StoreError } from "./SimbaError.ts"

/**
 * Options of a contender and of its leases.
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
 * @category options
 * @since 0.1.0
 */
export interface ContenderOptions extends LeaseOptions {
  /**
   * How long after the end of its ttl the owner is looked at while nothing is announced. Owners of another implementation,
   * and a mutex that nobody owns, are looked at this often. Default: 1 second.
   */
  readonly every?: Duration.Input | undefined
  /** The level of the log lines "Leadership begins" and "Leadership ends". Default: `Info`. */
  readonly logLevel?: LogLevel.Severity | undefined
}

/**
 * What a contender knows of its mutex.
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
  /** The id of the owner before the last change, `undefined` for nobody. */
  readonly before: string | undefined
  /** The id of the owner since the last change, `undefined` for nobody. */
  readonly after: string | undefined
  /** Whether this contender owns the mutex, judged locally. */
  readonly isOwner: boolean
  /** Whether the owner's lease is in its ttl. A foreign owner's is while more than the transition remains. */
  readonly isInTtl: boolean
  /** Whether the owner's lease is in the transition after its ttl. */
  readonly isInTransition: boolean
}

/**
 * A contender, from `Mutex.contend` or as a Layer from `Contender.Service`.
 *
 * **Details**
 *
 * It contends while its scope is open, and survives outages of the backend. It runs in the context that made it: its logs
 * carry the annotations of that context.
 *
 * Printing a contender shows `mutex` and, while it leads, `id`, `token` and `timeLeft` of its lease.
 *
 * **Example** (Making room for another node after each batch)
 *
 * ```ts
 * import type { Contender } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const inTurns = (contender: Contender.Contender, batch: Effect.Effect<void>) =>
 *   contender.whileLeader((lease) =>
 *     Effect.log(`a batch with token ${lease.token}`).pipe(
 *       Effect.andThen(batch),
 *       Effect.andThen(contender.stepDown)
 *     )
 *   )
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Contender extends Pipeable, Inspectable {
  readonly mutex: MutexName
  /** The present state, and its changes by `SubscriptionRef.changes`. */
  readonly state: SubscriptionRef.SubscriptionRef<ContenderState>
  /** The lease, while this contender leads. */
  readonly lease: Effect.Effect<Option.Option<Lease>>
  /**
   * The changes of ownership of this mutex from now on, by any owner. A slow reader blocks nobody: a `Gap` tells it that
   * it missed something. Fails where the backend refuses or cannot be read, and can then be read again: the contender goes
   * on. Ends with the scope of the contender.
   */
  readonly changes: Stream.Stream<OwnerEvent, StoreError>
  /**
   * Runs `work` from the start at each gain of the leadership, and interrupts it at each loss. Work that ends early is not
   * run again before the next gain. Only a failure of `work` ends `whileLeader`, and it leaves the leadership alone.
   */
  readonly whileLeader: <A, E, R>(work: Body<A, E, R>) => Effect.Effect<never, E, R>
  /**
   * Whether the caller is the first of the fleet in a period of `job`, by the backend's time. It is answered to leaders and
   * others alike. `Leadership.leaderSchedule` asks it for work that runs once per period.
   */
  readonly claimPeriod: (
    job: string,
    period: Pick<ClaimPeriodRequest, "every" | "at" | "onlyIfKnown">
  ) => Effect.Effect<ClaimPeriodResult, StoreError>
  /**
   * Gives up the leadership: interrupts the work, awaits it, releases, and queues again as the last. A contender that was
   * stopped stays away.
   *
   * The work may ask for it, also in finalizers and uninterruptible regions, and is interrupted by it. Inside the work,
   * in what it forked, and in what `lease.protect` runs, `stepDown` and `stop` do not wait: the work would wait for its
   * own end.
   */
  readonly stepDown: Effect.Effect<void>
  /**
   * Leaves the queue and stays away until `start`. A leader's work is interrupted and awaited with its finalizers, then
   * the first waiter gets the mutex. Returns when that is done, inside the work at once. What `whileLeader` runs stays
   * registered.
   */
  readonly stop: Effect.Effect<void>
  /** Contends again after `stop`, but not once its scope has closed. */
  readonly start: Effect.Effect<void>
}

/**
 * Makes a class that is the service of one contender, with its Layer.
 *
 * **Details**
 *
 * The tag carries the name of the mutex, so several contenders can live in one application, on the connections of one
 * `Mutex`.
 *
 * **Gotchas**
 *
 * Two classes with one name are one service to Effect, with the options of one of them: make one class and share it. A
 * leader's work that takes a lock of the same name waits for its own leadership to end.
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
 * @category constructors
 * @since 0.1.0
 */
export const Service = <Self>() =>
<const Name extends string>(
  name: Name,
  options?: ContenderOptions
):
  & Context.ServiceClass<Self, `@effect-simba/core/Contender/${Name}`, Contender>
  & { readonly layer: Layer.Layer<Self, InvalidName | InvalidConfig, Mutex> } =>
  class extends Context.Service<Self, Contender>()(`@effect-simba/core/Contender/${name}`) {
    static readonly layer = Layer.effect(this, Mutex.use((mutex) => mutex.contend(name, options)))
  }
