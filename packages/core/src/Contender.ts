/**
 * A contender competes for a mutex until its scope closes, and leads while it holds the mutex.
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
 * Options for a contender and its leases.
 *
 * **Example** (Longer leases and less frequent polling)
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
   * Time between polls while no ownership change is published. If the owner runs this library, the first poll comes one
   * interval after the owner's ttl has ended. Default: 1 second.
   */
  readonly pollInterval?: Duration.Input | undefined
  /**
   * How long a leader waits for running jobs before it steps down because of a failure, an operator's request or a
   * wrong clock. Default: 1 minute.
   */
  readonly drainTimeout?: Duration.Input | undefined
  /** Log level for the messages "Leadership begins" and "Leadership ends". Default: `Info`. */
  readonly logLevel?: LogLevel.Severity | undefined
}

interface Observed {
  /** The id of the owner before the last change; `undefined` if there was no owner. */
  readonly before: string | undefined
  /** The id of the owner since the last change; `undefined` if there is no owner. */
  readonly after: string | undefined
  /**
   * Whether the owner's lease is within its ttl. For another process's lease: whether more than the transition remains.
   */
  readonly isInTtl: boolean
  /** Whether the owner's lease is in the transition that follows its ttl. */
  readonly isInTransition: boolean
}

/**
 * What a contender knows about its mutex.
 *
 * **Details**
 *
 * - `Leading`: this contender owns the mutex, according to its `lease` and the local clock.
 * - `Following`: the owner's id is `leader`. The owner's lease ends at `until` unless it is renewed. `until` is a time
 *   on the local clock, computed at the last poll. It is `undefined` if the key has no expiry, and right after a loss,
 *   when `leader` may be an earlier lease of this contender.
 * - `Vacant`: no owner is known.
 * - `Stopped`: the contender does not contend, because `stop` was called or its scope has closed.
 *
 * Every state contains the owners before and after the last change, and whether the owner's lease is in its ttl or in
 * its transition.
 *
 * **Example** (Reporting the role in a health check)
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
 * Constructors and matchers for `State`.
 *
 * **Example** (Logging each change)
 *
 * ```ts
 * import { Contender } from "@effect-simba/core"
 * import { Effect, Stream } from "effect"
 *
 * const describe = Contender.State.$match({
 *   Leading: ({ lease }) => `leads with token ${lease.token}`,
 *   Following: ({ leader }) => `follows ${leader}`,
 *   Vacant: () => "nobody leads",
 *   Stopped: () => "does not contend"
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
 * Options for `whileLeader`.
 *
 * **Example** (Ending the program when the work fails)
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
 *   Effect.catch((reason) => Effect.log(`polling stopped: ${reason}`))
 * )
 * // => polling stopped: no disk
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export interface WorkOptions<OnError extends "stepDown" | "fail" = "stepDown" | "fail"> {
  /**
   * What happens when the work fails or dies.
   *
   * - `stepDown` (default): the failure is logged and leadership ends, so another node can lead. Running jobs may
   *   finish first, within `drainTimeout`. The contender rejoins the queue after a pause of 100 milliseconds, which
   *   doubles with each consecutive failure up to 10 seconds. A leadership that lasts a minute resets the pause.
   * - `fail`: `whileLeader` fails with the error. The leadership continues.
   */
  readonly onError?: OnError | undefined
}

/**
 * A contender for a mutex, created by `Mutex.contend` or by a Layer from `Contender.Service`.
 *
 * **Details**
 *
 * It contends while its scope is open, and keeps trying during backend outages. It runs in the context in which it was
 * created, so its log messages carry that context's annotations.
 *
 * A printed contender shows `mutex` and, while it leads, its lease's `id`, `token` and `timeLeft`.
 *
 * **Example** (Stepping down after each batch)
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
  /** The current state, according to the clock at the time of the call. */
  readonly state: Effect.Effect<State>
  /**
   * The current state, followed by each change. A slow reader may miss older changes, but never the latest one.
   * Renewals by the leader do not count as changes. Ends when the contender's scope closes.
   */
  readonly changes: Stream.Stream<State>
  /** The lease if this contender leads, otherwise `None`. */
  readonly lease: Effect.Effect<Option.Option<Lease>>
  /**
   * All changes in this mutex's ownership from now on. A slow reader does not block anyone, and receives a `Gap` if it
   * missed events. Fails if the backend refuses a request or sends an unreadable reply. The contender is not affected,
   * and the stream can be run again. Ends when the contender's scope closes.
   */
  readonly events: Stream.Stream<OwnerEvent, StoreError>
  /**
   * Runs `work` from the start each time this contender becomes the leader, and interrupts it when its leadership ends.
   * Work that succeeds does not run again until this contender next becomes the leader. Work that fails ends its
   * leadership, unless `onError` is `"fail"`. To retry without losing leadership, retry inside the work.
   */
  readonly whileLeader: <A, E, R, const OnError extends "stepDown" | "fail" = "stepDown">(
    work: Body<A, E, R>,
    options?: WorkOptions<OnError>
  ) => Effect.Effect<never, "fail" extends OnError ? E : never, R>
  /**
   * Gives up leadership: interrupts the work, waits for it to end, releases the mutex, and queues again behind all
   * waiters. A stopped contender does not queue again.
   *
   * The work may call `stepDown` itself, even in finalizers and uninterruptible regions; it is then interrupted. When
   * called from the work, from fibers that it forked, or from effects in `lease.protect`, `stepDown` and `stop` do not
   * wait, because the work would be waiting for its own end.
   */
  readonly stepDown: Effect.Effect<void>
  /**
   * Leaves the queue and does not contend until `start` is called. If the contender leads, its work is interrupted, and
   * the first waiter gets the mutex once the work and its finalizers have ended. Returns after that, or immediately if
   * called inside the work. Effects passed to `whileLeader` stay registered.
   */
  readonly stop: Effect.Effect<void>
  /**
   * Marks this node as leaving until `start` is called. The contender leaves the queue, so hand-offs skip it, but a
   * leader continues to lead. If nobody else wants the mutex, this node still becomes the leader, within
   * `pollInterval`. Mark the nodes with the old version before a rolling update: leadership then moves only once.
   */
  readonly leave: Effect.Effect<void>
  /** Resumes contending after `stop` or `leave`, unless the contender's scope has closed. */
  readonly start: Effect.Effect<void>
}

/**
 * Creates a service class for one contender, with its layers.
 *
 * **Details**
 *
 * `layer` takes the mutex's name and the options; `layerConfig` reads them from `Config`. All contenders in an
 * application share the connections of one `Mutex`.
 *
 * **Gotchas**
 *
 * Each call to `layer` creates a contender, so bind the layer to a constant and share it. The leader's work must not
 * acquire the same mutex: it would wait for its own leadership to end.
 *
 * **Example** (A background service that runs on the leader)
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
 * **Example** (Reading the mutex and its ttl from the environment)
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
