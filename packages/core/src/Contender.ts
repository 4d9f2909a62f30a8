/**
 * A contender for a mutex. It owns the mutex whenever it can, for as long as its scope is open.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as DateTime from "effect/DateTime"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Inspectable } from "effect/Inspectable"
import * as Layer from "effect/Layer"
import type * as LogLevel from "effect/LogLevel"
import type * as Option from "effect/Option"
import type { Pipeable } from "effect/Pipeable"
import type * as Stream from "effect/Stream"
import type { HookServices } from "./internal/hookServices.ts"
import type { Body, Lease } from "./Lease.ts"
import { contend, type LeaseOptions, type Mutex } from "./Mutex.ts"
import type { MutexName } from "./MutexName.ts"
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
 * class Reports extends Contender.Service<Reports>()("app/Reports") {}
 *
 * const ReportsLive = Reports.layer("reports", { ttl: "30 seconds", transition: "15 seconds", pollInterval: "5 seconds" })
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export interface Options<R = never> extends LeaseOptions<R> {
  /**
   * How long after the end of the owner's ttl the contender polls, while nothing is published. If a Simba contender
   * owns the mutex, or nobody, it polls at this interval. Default: 1 second.
   */
  readonly pollInterval?: Duration.Input | undefined
  /**
   * How long a leader that resigns waits for its runs of scheduled jobs: after a failure, or if an operator asks it to
   * step down. Default: 1 minute.
   */
  readonly drainTimeout?: Duration.Input | undefined
  /** The level of the log lines "Leadership begins" and "Leadership ends". Default: `Info`. */
  readonly logLevel?: LogLevel.Severity | undefined
}

interface Observed {
  /** The id of the owner before the last change, `undefined` for nobody. */
  readonly before: string | undefined
  /** The id of the owner since the last change, `undefined` for nobody. */
  readonly after: string | undefined
  /**
   * Whether the owner's lease is in its ttl. Another process's lease is in its ttl while more than the transition
   * remains.
   */
  readonly isInTtl: boolean
  /** Whether the owner's lease is in the transition after its ttl. */
  readonly isInTransition: boolean
}

/**
 * What a contender knows about its mutex.
 *
 * **Details**
 *
 * - `Leading`: this contender owns the mutex, judged by the clock and its own `lease`.
 * - `Following`: `leader` is the id of the owner, whose lease ends at `until` unless it renews. `until` is by the clock
 *   of this process, as of the last poll, and `undefined` for a key without expiry. After a loss, `leader` may be an
 *   earlier lease of this contender.
 * - `Vacant`: no owner is known.
 * - `Stopped`: the contender does not contend, because of `stop` or because its scope has closed.
 *
 * Each case also has the owner before and after the last change, and whether the owner's lease is in its ttl or in its
 * transition.
 *
 * **Example** (What a health check can report)
 *
 * ```ts
 * import { Contender } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Jobs extends Contender.Service<Jobs>()("app/Jobs") {}
 *
 * const health = Effect.gen(function*() {
 *   const jobs = yield* Jobs
 *   const state = yield* jobs.state
 *   return { role: state._tag === "Leading" ? "leader" : "standby", leader: state.after ?? "none" }
 * })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type State = Data.TaggedEnum<{
  Leading: Observed & { readonly lease: Lease }
  Following: Observed & { readonly leader: string; readonly until: DateTime.Utc | undefined }
  Vacant: Observed
  Stopped: Observed
}>

/**
 * Matches and constructs states.
 *
 * **Example** (A line for each change)
 *
 * ```ts
 * import { Contender } from "@effect-simba/core"
 * import { Effect, Stream } from "effect"
 *
 * const describe = Contender.State.$match({
 *   Leading: ({ lease }) => `leads with token ${lease.token}`,
 *   Following: ({ leader }) => `follows ${leader}`,
 *   Vacant: () => "nobody leads",
 *   Stopped: () => "stays away"
 * })
 *
 * const log = (contender: Contender.Contender) =>
 *   Stream.runForEach(contender.changes, (state) => Effect.log(describe(state)))
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export const State = /* @__PURE__ */ Data.taggedEnum<State>()

/**
 * Options of the leader's work.
 *
 * **Example** (Work whose failure ends the program)
 *
 * ```ts
 * import { Contender } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Poller extends Contender.Service<Poller>()("app/Poller") {}
 *
 * const options: Contender.WorkOptions<"fail"> = { onError: "fail" }
 *
 * const program = Poller.use((poller) => poller.whileLeader(Effect.fail("no disk"), options)).pipe(
 *   Effect.catch((reason) => Effect.log(`polling ends: ${reason}`))
 * )
 * // => polling ends: no disk
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export interface WorkOptions<OnError extends "stepDown" | "fail" = "stepDown" | "fail"> {
  /**
   * How to react to a failure or a defect of the work.
   *
   * - `stepDown` (default): logs it and ends the leadership, so that another node can lead. Runs of scheduled jobs end
   *   first, within `drainTimeout`. The contender queues again after a pause: 100 milliseconds, doubling with each
   *   consecutive failure up to 10 seconds. A leadership of a minute resets the pause.
   * - `fail`: ends `whileLeader` with the failure. The leadership continues.
   */
  readonly onError?: OnError | undefined
}

/**
 * A contender, from `Mutex.contend` or as a Layer from `Contender.Service`.
 *
 * **Details**
 *
 * It contends while its scope is open, and survives outages of the backend. It runs in the context in which it was
 * created, so its logs carry the annotations of that context.
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
  /** The current state, by the clock at the time of the call. */
  readonly state: Effect.Effect<State>
  /**
   * The current state, then each change of it. A slow reader misses older changes, but never the last one. Renewals of
   * a leader are not changes. Ends with the scope of the contender.
   */
  readonly changes: Stream.Stream<State>
  /** The lease, while this contender leads. */
  readonly lease: Effect.Effect<Option.Option<Lease>>
  /**
   * The changes of ownership of this mutex from now on, by any owner. A slow reader blocks nobody, and gets a `Gap` if
   * it missed something. Fails if the backend refuses or its reply cannot be read; the contender itself continues, and
   * the stream can be run again. Ends with the scope of the contender.
   */
  readonly events: Stream.Stream<OwnerEvent, StoreError>
  /**
   * Runs `work` from the start whenever this contender gains the leadership, and interrupts it on each loss. Work that
   * succeeds does not run again until the next leadership. Work that fails ends the leadership, unless `onError` is
   * `"fail"`. Put retries inside the work.
   */
  readonly whileLeader: <A, E, R, const OnError extends "stepDown" | "fail" = "stepDown">(
    work: Body<A, E, R>,
    options?: WorkOptions<OnError>
  ) => Effect.Effect<never, "fail" extends OnError ? E : never, R>
  /**
   * Gives up the leadership: interrupts the work, waits for it, releases, and queues again, behind all waiters. A
   * stopped contender does not queue.
   *
   * The work itself may call it, even in finalizers and uninterruptible regions, and is interrupted by it. Inside the
   * work, in fibers that it forked, and in effects of `lease.protect`, `stepDown` and `stop` do not wait, because the
   * work would wait for its own end.
   */
  readonly stepDown: Effect.Effect<void>
  /**
   * Leaves the queue and does not contend until `start`. The work of a leader is interrupted; when it and its
   * finalizers have ended, the first waiter gets the mutex. Returns when that is done, or at once inside the work.
   * Effects of `whileLeader` stay registered.
   */
  readonly stop: Effect.Effect<void>
  /**
   * Marks this node as leaving, until `start`: it leaves the queue, so that a release skips it, but continues to lead
   * if it leads. If nobody else wants the mutex, it leads after all, within `pollInterval`. Mark the nodes of the old
   * version before a rolling update, so that the leadership moves only once.
   */
  readonly leave: Effect.Effect<void>
  /** Contends again after `stop` or `leave`, unless the contender's scope has closed. */
  readonly start: Effect.Effect<void>
}

/**
 * Creates a class that is the service of one contender, with its layers.
 *
 * **Details**
 *
 * The class has its own key. `layer` names the mutex and its options; `layerConfig` reads them from `Config`. All
 * contenders of an application share the connections of one `Mutex`.
 *
 * **Gotchas**
 *
 * Each call of `layer` creates a contender: bind the layer to a constant and share it. A leader's work that acquires
 * the same mutex waits for its own leadership to end.
 *
 * **Example** (A service built on being the leader)
 *
 * ```ts
 * import { Contender } from "@effect-simba/core"
 * import { Effect, Layer, Schedule } from "effect"
 *
 * class Cleaning extends Contender.Service<Cleaning>()("app/Cleaning") {}
 *
 * const Cleaner = Layer.effectDiscard(Effect.gen(function*() {
 *   const cleaning = yield* Cleaning
 *   const work = Effect.repeat(Effect.log("cleaning"), Schedule.fixed("1 minute"))
 *   yield* Effect.forkScoped(cleaning.whileLeader(work))
 * })).pipe(Layer.provide(Cleaning.layer("cleaning", { ttl: "5 seconds" })))
 * ```
 *
 * **Example** (The mutex and its ttl from the environment)
 *
 * ```ts
 * import { Contender } from "@effect-simba/core"
 * import { Config } from "effect"
 *
 * class Cleaning extends Contender.Service<Cleaning>()("app/Cleaning") {}
 *
 * const CleaningLive = Cleaning.layerConfig({ mutex: Config.String("MUTEX"), ttl: Config.Duration("TTL") })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const Service = <Self>() =>
<const Key extends string>(
  key: Key
):
  & Context.ServiceClass<Self, Key, Contender>
  & {
    readonly layer: <R = never>(
      mutex: string,
      options?: Options<R>
    ) => Layer.Layer<Self, InvalidName | InvalidConfig, Mutex | HookServices<R>>
    readonly layerConfig: (
      options: Config.Wrap<Options & { readonly mutex: string }>
    ) => Layer.Layer<Self, InvalidName | InvalidConfig | Config.ConfigError, Mutex>
  } =>
  class extends Context.Service<Self, Contender>()(key) {
    static readonly layer = <R = never>(name: string, options?: Options<R>): Layer.Layer<
      Self,
      InvalidName | InvalidConfig,
      Mutex | HookServices<R>
    > => Layer.effect(this, contend(name, options))
    static readonly layerConfig = (wrapped: Config.Wrap<Options & { readonly mutex: string }>) =>
      Layer.effect(
        this,
        Effect.flatMap(
          Config.unwrap(wrapped),
          ({ mutex: name, ...options }) => contend(name, options)
        )
      )
  }
