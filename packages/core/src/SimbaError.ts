/**
 * This library's errors. Each has a tag, says whether a retry can help, and suggests a remedy in its message.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import { FencingToken } from "./FencingToken.ts"
import { excerpt } from "./internal/excerpt.ts"
import { phraseOf } from "./internal/operationPhrases.ts"

/**
 * The mutex did not become free within `timeout`: try again later, or skip the work.
 *
 * **Details**
 *
 * Nothing is held, and the place in the queue is released. If the last request failed or got no reply, a timeout fails
 * with `BackendError` instead, because it is unknown whether the mutex is taken.
 *
 * **Example** (Reporting that the mutex is busy)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.as(Effect.log("closing the books"), "done").pipe(
 *   Mutex.withLock("books", { timeout: "2 seconds" }),
 *   Effect.catchTag("AcquireTimeout", ({ owner }) => Effect.succeed(`busy: held by ${owner ?? "another process"}`))
 * )
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class AcquireTimeout extends Schema.TaggedError<AcquireTimeout>("@effect-simba/core/AcquireTimeout")(
  "AcquireTimeout",
  {
    mutex: Schema.String,
    timeout: Schema.Duration,
    /** The last known owner, if any. */
    owner: Schema.optionalKey(Schema.String),
    /** Whether that owner is another fiber in the same layer. */
    isLocal: Schema.optionalKey(Schema.Boolean)
  }
) {
  /** Always true, because a later attempt may find the mutex free. */
  get isRetryable(): boolean {
    return true
  }
  override get message(): string {
    const where = this.isLocal === true ? ", in this process" : ""
    const owner = this.owner === undefined ? "" : `; last known owner: ${this.owner}${where}`
    return `Mutex "${this.mutex}" was not free within ${Duration.format(this.timeout)}${owner}. ` +
      (this.isLocal === true
        ? "If the caller holds that lease itself, it must release it first or pass it on."
        : "Wait longer, or shorten the work under it.")
  }
}

/**
 * Why a lease ended.
 *
 * **Details**
 *
 * - `Expired`: the local deadline passed without a renewal (an event-loop stall, a suspended process, an `isAlive` that
 *   did not return `true`), or `maxHold` was reached.
 * - `TakenOver`: the server reports another owner.
 * - `Vanished`: the server reports no owner (expiry, eviction, a flush, a lost write, a forced `seek`), or the data
 *   stream's announcement is gone.
 * - `BackendGone`: no renewal succeeded before the local deadline, or the layer was closed.
 * - `ForcedRelease`: an operator took the mutex away.
 * - `Stalled`: a data stream's handler reported neither a commit nor progress within `progressTimeout`, or its fiber
 *   died, for example in its `retry` schedule.
 * - `Released`: the holder released the lease and then used it.
 *
 * **Example** (Matching on the reason)
 *
 * ```ts
 * import { SimbaError } from "@effect-simba/core"
 *
 * const advice = (loss: SimbaError.LeaseLost) =>
 *   SimbaError.LossReason.matchOrElse(loss.reason, {
 *     ForcedRelease: () => "an operator stopped this work",
 *     TakenOver: ({ owner }) => `${owner ?? "another owner"} continues`
 *   }, ({ _tag }) => _tag)
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const LossReason = Schema.TaggedUnion({
  Expired: {},
  TakenOver: {
    /** The current owner, if the server reported one. */
    owner: Schema.optionalKey(Schema.String)
  },
  Vanished: {},
  BackendGone: {
    /** Why the backend refused the last renewal. Absent after an outage. */
    problem: Schema.optionalKey(Schema.String)
  },
  ForcedRelease: {
    /** The current owner, if the server reported one. */
    owner: Schema.optionalKey(Schema.String)
  },
  Stalled: {},
  Released: {}
})

/**
 * Why a lease ended.
 *
 * @see {@link LeaseLost}
 * @category models
 * @since 0.1.0
 */
export type LossReason = typeof LossReason.Type

const lossText: Record<LossReason["_tag"], string> = {
  Expired: "its deadline passed: it was not renewed in time, or maxHold was reached",
  TakenOver: "another owner has it now",
  Vanished: "the server reports no owner",
  BackendGone: "no renewal succeeded before its deadline, or its layer was closed",
  ForcedRelease: "it was released by force",
  Stalled: "its handler made no progress in time",
  Released: "it was already released"
}

/**
 * The lease of a mutex or data stream has ended: stop, do not touch the resource, and acquire it again.
 *
 * **Details**
 *
 * Protected work was interrupted. `reason` says why the lease ended. Another process may already own the resource.
 *
 * **Example** (Retrying unless an operator took the mutex)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.log("importing from the last checkpoint").pipe(
 *   Mutex.withLock("import"),
 *   Effect.catchReason("LeaseLost", "ForcedRelease", () => Effect.log("stopped by an operator")),
 *   Effect.retry({ while: (error) => error.isRetryable, times: 3 })
 * )
 * // => importing from the last checkpoint
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class LeaseLost extends Schema.TaggedError<LeaseLost>("@effect-simba/core/LeaseLost")("LeaseLost", {
  kind: Schema.Literals(["mutex", "stream"]),
  /** The name of the mutex or data stream. */
  resource: Schema.String,
  /** The id of the lost lease or, for a data stream, the id of the entry that announced the stream. */
  id: Schema.String,
  token: FencingToken,
  reason: LossReason
}) {
  /** False if the lease was released, by force or by its holder. */
  get isRetryable(): boolean {
    return this.reason._tag !== "ForcedRelease" && this.reason._tag !== "Released"
  }
  override get message(): string {
    const { reason } = this
    const owner = "owner" in reason && reason.owner !== undefined ? ` (owner: ${reason.owner})` : ""
    const why = reason._tag === "BackendGone" && reason.problem !== undefined
      ? `no renewal succeeded before its deadline: ${reason.problem}`
      : `${lossText[reason._tag]}${owner}.`
    return `Lease ${this.token} of ${this.kind === "mutex" ? "mutex" : "data stream"} "${this.resource}" is over: ` +
      `${why} Stop touching what it protects` +
      (this.kind === "mutex" ? ", and acquire it again." : ": another consumer may own it.")
  }
}

/**
 * The resource has seen a newer token. Nothing was written. Stop, and acquire the mutex again before you write again.
 *
 * **Details**
 *
 * `RedisFence` (Redis) and `SqlFence` (SQL) fail with this error. The lease has ended, even if the local clock
 * disagrees. Read what the successor has written before you continue.
 *
 * **Example** (Retrying with a new lease)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import * as SqlFence from "@effect-simba/core/SqlFence"
 * import { Effect } from "effect"
 *
 * const settle = Mutex.withLock("alice")((lease) =>
 *   SqlFence.withTransaction(lease)(Effect.log("settling"))
 * ).pipe(
 *   Effect.retry({ while: (error) => error._tag === "StaleToken", times: 3 })
 * )
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class StaleToken extends Schema.TaggedError<StaleToken>("@effect-simba/core/StaleToken")("StaleToken", {
  resource: Schema.String,
  /** The token that was refused. */
  token: FencingToken,
  /** The largest token that the resource has seen. */
  largest: FencingToken
}) {
  /** Always true, but retry with a new lease. */
  get isRetryable(): boolean {
    return true
  }
  override get message(): string {
    return `Token ${this.token} is stale for "${this.resource}", which has seen ${this.largest}: another owner has had the ` +
      "mutex since. Nothing was written. Stop, and acquire the mutex again."
  }
}

/**
 * An enclosing `withLock` already holds the mutex, so the call would wait for itself: pass the outer lease to the inner
 * work.
 *
 * **Details**
 *
 * `withLock`, `acquire` and `acquireAll` fail with this error, even in the outer body's child fibers.
 * `acquireIfAvailable` and `withLockIfAvailable` return `None` instead, because they do not wait.
 *
 * **Example** (Passing on the outer lease)
 *
 * ```ts
 * import { type Lease, Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const append = (lease: Lease.Lease) => Effect.log(`appending with token ${lease.token}`)
 *
 * // Inside another lock of "ledger", this would fail with AlreadyHeld
 * const alone = Mutex.withLock("ledger")(append)
 *
 * const twice = Mutex.withLock("ledger")((lease) => Effect.andThen(append(lease), append(lease)))
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class AlreadyHeld extends Schema.TaggedError<AlreadyHeld>("@effect-simba/core/AlreadyHeld")("AlreadyHeld", {
  mutex: Schema.String,
  /** The id of the enclosing lease. */
  id: Schema.String,
  token: FencingToken
}) {
  get isRetryable(): boolean {
    return false
  }
  override get message(): string {
    return `Mutex "${this.mutex}" is already held by the lock around this call (lease ${this.token}), so it would ` +
      "wait for itself. Pass that lease to the inner work."
  }
}

/**
 * A name is not allowed: choose another. Nothing was sent.
 *
 * **Example** (Handling names from users)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const lockOf = (tenant: string) =>
 *   Effect.log("working").pipe(
 *     Mutex.withLock(tenant),
 *     Effect.catchTag("InvalidName", ({ problem, value }) => Effect.logWarning(`tenant ${value} is refused: ${problem}`))
 *   )
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidName extends Schema.TaggedError<InvalidName>("@effect-simba/core/InvalidName")("InvalidName", {
  kind: Schema.Literals(["mutex", "process", "service", "stream", "entry"]),
  value: Schema.String,
  problem: Schema.String
}) {
  get isRetryable(): boolean {
    return false
  }
  override get message(): string {
    const wanted = this.kind === "entry" ? "the id of an entry" : `a ${this.kind} name`
    const shown = this.value.length > 100 ? `${this.value.slice(0, 100)}...` : this.value
    return `${JSON.stringify(shown)} cannot be ${wanted}: ${this.problem}.`
  }
}

/**
 * An option is invalid: change it.
 *
 * **Details**
 *
 * A layer fails with this error when it is built, and an operation when it is called.
 *
 * **Example** (Logging which option is wrong)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect, Layer } from "effect"
 *
 * const MutexLive = Mutex.layerMemory({ ttl: "1 minute", transition: "2 seconds" })
 *
 * // The option is "transition": it leaves no time to renew
 * const check = Layer.build(MutexLive).pipe(
 *   Effect.scoped,
 *   Effect.catchTag("InvalidConfig", ({ option, problem }) => Effect.logError(`${option}: ${problem}`))
 * )
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidConfig extends Schema.TaggedError<InvalidConfig>("@effect-simba/core/InvalidConfig")(
  "InvalidConfig",
  { option: Schema.String, problem: Schema.String }
) {
  get isRetryable(): boolean {
    return false
  }
  override get message(): string {
    return `Configuration "${this.option}": ${this.problem}.`
  }
}

/** Never throws. A deserialized cause may be an object without a prototype. */
const causeText = (cause: unknown): string =>
  (typeof cause !== "object" || cause === null
    ? String(cause)
    : "message" in cause && typeof cause.message === "string"
    ? cause.message
    : Object.prototype.toString.call(cause)).replace(/[.\s]+$/, "")

/**
 * The backend refused a request, or did not reply.
 *
 * **Details**
 *
 * `isRetryable` distinguishes an outage (wait and retry) from a refusal that would recur, such as missing permissions
 * or a key of the wrong type. `operation` names the request, and `cause` is the client library's error.
 *
 * **Example** (Waiting out an outage)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect, Schedule } from "effect"
 *
 * const program = Effect.log("working").pipe(
 *   Mutex.withLock("invoices"),
 *   Effect.retry({
 *     schedule: Schedule.spaced("5 seconds"),
 *     while: (error) => error._tag === "BackendError" && error.isRetryable
 *   })
 * )
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class BackendError extends Schema.TaggedError<BackendError>("@effect-simba/core/BackendError")("BackendError", {
  operation: Schema.String,
  isRetryable: Schema.Boolean,
  cause: Schema.Defect()
}) {
  override get message(): string {
    return `${phraseOf(this.operation)} failed: ${causeText(this.cause)}. ` +
      (this.isRetryable ? "The backend may recover: try again." : "Trying again will not help.")
  }
}

/**
 * The backend returned data that this library does not understand.
 *
 * **Details**
 *
 * `read` is the beginning of that data, and `where` says where it was read.
 *
 * **Example** (Logging the unreadable data)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const program = Mutex.owner("invoices").pipe(
 *   Effect.catchTag("ProtocolError", ({ read, where }) => Effect.logError(`${where} cannot be read: ${read}`))
 * )
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class ProtocolError extends Schema.TaggedError<ProtocolError>("@effect-simba/core/ProtocolError")(
  "ProtocolError",
  { where: Schema.String, read: Schema.String, problem: Schema.String }
) {
  /**
   * Creates the error for a value of any type and size. `read` and `problem` are truncated to a length that can be
   * logged.
   */
  static of(where: string, input: unknown, problem: string): ProtocolError {
    const read = typeof input === "string" ? input.slice(0, 200) : excerpt(input)
    return new ProtocolError({ where, read, problem: problem.slice(0, 1000) })
  }
  get isRetryable(): boolean {
    return false
  }
  override get message(): string {
    return `Cannot read ${this.where}: ${this.problem}. Read: ${JSON.stringify(this.read)}. ` +
      "Another program, or an incompatible version, may be writing there."
  }
}

/**
 * Why a request to the backend failed.
 *
 * **Example** (Reporting "unknown" if the request fails)
 *
 * ```ts
 * import { Mutex, type SimbaError } from "@effect-simba/core"
 * import { Effect, Stream } from "effect"
 *
 * const orUnknown = <A, R>(request: Effect.Effect<A, SimbaError.StoreError, R>) =>
 *   Effect.catch(request, (error) => Effect.as(Effect.logWarning(error.message), "unknown" as const))
 *
 * const count = orUnknown(Effect.map(Stream.runCount(Mutex.list), String))
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export type StoreError = BackendError | ProtocolError

/**
 * Why a single request for a mutex failed.
 *
 * **Example** (Retrying only outages)
 *
 * ```ts
 * import { type SimbaError, Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const isOutage = (error: SimbaError.RequestError) => error._tag === "BackendError" && error.isRetryable
 *
 * const attempt = Effect.retry(Mutex.acquireIfAvailable("invoices"), { while: isOutage, times: 3 })
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export type RequestError = StoreError | InvalidName | InvalidConfig

/**
 * Why an attempt to acquire failed.
 *
 * **Example** (Mapping to a service's own error)
 *
 * ```ts
 * import { type SimbaError, Mutex } from "@effect-simba/core"
 * import { Data, Effect } from "effect"
 *
 * class Unavailable extends Data.TaggedError("Unavailable")<{ readonly cause: SimbaError.AcquireError }> {}
 *
 * const reserved = (seat: string) =>
 *   Mutex.acquire(seat, { timeout: "1 second" }).pipe(Effect.mapError((cause) => new Unavailable({ cause })))
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export type AcquireError = RequestError | AcquireTimeout | AlreadyHeld
