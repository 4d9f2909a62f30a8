/**
 * Rules that must hold in every history of a simulated fleet that shares data streams.
 *
 * Add them to the checkers of leases, which judge the lease of each data stream as they judge any lock.
 *
 * Programs `client.note(kind, { resource, id, ... })`. `resource` is a data stream. `id` is its name, `#`, and the
 * token of the holding, as `lock.identify` makes it of the stored value:
 *
 * - `joined`, with `consumer` and `capacity`, and `left`: from when until when this process takes data streams.
 * - `expects`: `message` is the id of a last message of the data stream, after which it may be announced anew.
 *   `announced`: it was announced.
 * - `begin`, `step`, `stopped`, `end`: the work of a handler, with the `entry` that announced the data stream.
 * - `processed`: the handler is through with the `message` of that id. `failed`: it failed, with its `entry`.
 *
 * **Example** (Some of them, for a fleet of one's own making)
 *
 * ```ts
 * import { StreamChecker } from "@effect-simba/testkit/streams"
 *
 * const aboutMessages = (model: StreamChecker.Model) => [
 *   StreamChecker.checkpointsGrow(model),
 *   StreamChecker.messagesInOrder(model),
 *   StreamChecker.nothingIsForgotten(model),
 *   StreamChecker.deadLettersAreEarned(model, { maxFailures: 10 })
 * ]
 *
 * const aboutOwners = (model: StreamChecker.Model) => [
 *   StreamChecker.noOrphans(model, { bound: "6 seconds", recovery: "8 seconds" }),
 *   StreamChecker.noPingPong(model, { settle: "6 seconds", stay: "55 seconds" }),
 *   StreamChecker.livingAreLeftAlone(model),
 *   StreamChecker.consumersAreReaped(model, { bound: "15 minutes" })
 * ]
 * ```
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import type { Checker } from "../Checker.ts"
import * as fleet from "./internal/checkers/fleet.ts"
import type { StreamModel } from "./internal/checkers/model.ts"
import * as ownership from "./internal/checkers/ownership.ts"
import * as progress from "./internal/checkers/progress.ts"

/**
 * Where the server keeps the state of a service.
 *
 * **Details**
 *
 * - `streams`: the data streams. `input`, `group`: the stream on which they are announced, and its consumer group.
 * - `deadLetters`, `deadMessages`: the streams of dead letters; `deadId` is the id that an entry had before.
 * - `failures`: a hash from entry to text that begins with the failures of its handlers, with `|` after it. `members`: a hash of consumers to text that begins
 *   with their capacity and a `|`. `checkpoint`: a string, the last committed message; `@@` may follow.
 * - `entryLease`: the string by which a stock consumer holds an entry. `announcement`: the data stream that an entry
 *   names.
 * - `holder`: the consumer that the value of a stream's lease names.
 * - `isStock`: whether this is the name of a stock consumer, or of a client that runs one.
 *
 * @see {@link all}
 * @category models
 * @since 0.1.0
 */
export interface Model extends StreamModel {}

const millis = (input: Duration.Input) => Duration.toMillis(Duration.fromInputUnsafe(input))

/**
 * The checkpoint of a data stream never goes back, and passes over no message without its processing or dead letter.
 *
 * **Details**
 *
 * Exception: the server lost data.
 *
 * @category testing
 * @since 0.1.0
 */
export const checkpointsGrow: (model: Model) => Checker = progress.checkpointsGrow

/**
 * A handler gets the messages of its data stream one by one, in order, from the one after the checkpoint on.
 *
 * @category testing
 * @since 0.1.0
 */
export const messagesInOrder: (model: Model) => Checker = progress.messagesInOrder

/**
 * Every announced data stream comes to its end once faults are over, and no announcement goes away before.
 *
 * **Details**
 *
 * An announcement goes away when its data stream was processed to its end, when it is in the dead letters, or by a
 * stock consumer. Malformed announcements go away too.
 *
 * @category testing
 * @since 0.1.0
 */
export const nothingIsForgotten: (model: Model) => Checker = progress.nothingIsForgotten

/**
 * No announcement is without an owner for longer than `bound` while a consumer has room.
 *
 * **Details**
 *
 * The consumer has room all that time, and no fault has touched it or the server since `recovery` before. What a stock
 * consumer was given last has `stockBound`, by default `bound`.
 *
 * @category testing
 * @since 0.1.0
 */
export const noOrphans = (
  model: Model,
  options: {
    readonly bound: Duration.Input
    readonly stockBound?: Duration.Input | undefined
    readonly recovery: Duration.Input
  }
): Checker =>
  ownership.noOrphans(
    model,
    { ours: millis(options.bound), stock: millis(options.stockBound ?? options.bound) },
    millis(options.recovery)
  )

/**
 * No data stream is handed over, and handed on within `stay`, while the members stay the same.
 *
 * **Details**
 *
 * The members are the same since `settle` before the first hand-over. Later hand-overs count only where other data
 * streams were taken or ended since, so that shares changed.
 *
 * @category testing
 * @since 0.1.0
 */
export const noPingPong = (
  model: Model,
  options: { readonly settle: Duration.Input; readonly stay: Duration.Input }
): Checker => ownership.noPingPong(model, millis(options.settle), millis(options.stay))

/**
 * Only stock consumers change the lease of an entry of another owner before its time is up, or work under it.
 *
 * @category testing
 * @since 0.1.0
 */
export const livingAreLeftAlone: (model: Model) => Checker = ownership.livingAreLeftAlone

/**
 * What a stock consumer was given is not taken before it had time to lock it, nor while it may be finishing it.
 *
 * **Details**
 *
 * It has 40 seconds for its first lock, and a fifth of a second after it unlocked.
 *
 * @category testing
 * @since 0.1.0
 */
export const stockHaveTime: (model: Model) => Checker = ownership.stockHaveTime

/**
 * Failures are counted no more often than they happen, and only `maxFailures` of them make a dead letter.
 *
 * **Details**
 *
 * Failures of handlers count, and leases that ran out under one. Hand-overs and restarts in order do not. Malformed
 * announcements become dead letters at once.
 *
 * @category testing
 * @since 0.1.0
 */
export const deadLettersAreEarned = (model: Model, options: { readonly maxFailures: number }): Checker =>
  fleet.deadLettersAreEarned(model, options.maxFailures)

/**
 * Once faults are over, consumers of the group whose name nobody uses any more are removed within `bound`.
 *
 * @category testing
 * @since 0.1.0
 */
export const consumersAreReaped = (model: Model, options: { readonly bound: Duration.Input }): Checker =>
  fleet.consumersAreReaped(model, millis(options.bound))

/**
 * All checkers of data streams.
 *
 * **Example** (For consumers with the default times)
 *
 * ```ts
 * import { Checker } from "@effect-simba/testkit"
 * import { StreamChecker } from "@effect-simba/testkit/streams"
 *
 * const of = (model: StreamChecker.Model): ReadonlyArray<Checker.Checker> => {
 *   const ofStreams = StreamChecker.all(model, {
 *     orphan: "6 seconds",
 *     recovery: "8 seconds",
 *     settle: "6 seconds",
 *     stay: "55 seconds",
 *     reaped: "15 minutes",
 *     maxFailures: 10
 *   })
 *   return [Checker.oneOwner, Checker.tokensGrow, Checker.workNeverOverlaps, ...ofStreams]
 * }
 * ```
 *
 * @category testing
 * @since 0.1.0
 */
export const all = (model: Model, options: {
  /** The `bound` of `noOrphans`. */
  readonly orphan: Duration.Input
  /** The `stockBound` of `noOrphans`. */
  readonly stockOrphan?: Duration.Input | undefined
  /** The `recovery` of `noOrphans`. */
  readonly recovery: Duration.Input
  /** The `settle` of `noPingPong`. */
  readonly settle: Duration.Input
  /** The `stay` of `noPingPong`. */
  readonly stay: Duration.Input
  /** The `bound` of `consumersAreReaped`. */
  readonly reaped: Duration.Input
  /** The `maxFailures` of `deadLettersAreEarned`. */
  readonly maxFailures: number
}): ReadonlyArray<Checker> => [
  checkpointsGrow(model),
  messagesInOrder(model),
  nothingIsForgotten(model),
  noOrphans(model, { bound: options.orphan, stockBound: options.stockOrphan, recovery: options.recovery }),
  noPingPong(model, { settle: options.settle, stay: options.stay }),
  livingAreLeftAlone(model),
  stockHaveTime(model),
  deadLettersAreEarned(model, { maxFailures: options.maxFailures }),
  consumersAreReaped(model, { bound: options.reaped })
]
