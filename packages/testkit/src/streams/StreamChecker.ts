/**
 * What must hold in every history of a simulated fleet that shares data streams. Added to the `Checkers` of leases, which
 * judge the lease of each data stream as they do any lock.
 *
 * Programs `client.note(kind, { resource, id, ... })`, where `resource` is a data stream, and `id` its name, `#`, and the
 * token of the holding, as `lock.identify` makes of the stored value:
 *
 * - `joined`, with `consumer` and `capacity`, and `left`: from when until when this process takes data streams.
 * - `expects`: `message` is the id of the last message of the data stream. `announced`: it was announced.
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
 * How the state of a service looks on the server.
 *
 * - `streams`: the data streams. `input`, `group`: the stream on which they are announced, and its consumer group.
 * - `deadLetters`, `deadMessages`: streams of what could not be processed; `deadId` is the id that it had before.
 * - `failures`: a hash from entry to the failures of its handlers. `members`: a hash of consumers to text that begins with
 *   their capacity and a `|`. `checkpoint`: a string, the last committed message.
 * - `entryLease`: the string by which a stock consumer holds an entry. `announcement`: the data stream that an entry names.
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
 * The checkpoint of a data stream never goes back, and passes over no message that was neither processed nor put to the
 * dead letters: unless the server lost data.
 *
 * @see {@link all}
 * @category checkers
 * @since 0.1.0
 */
export const checkpointsGrow: (model: Model) => Checker = progress.checkpointsGrow

/**
 * A handler is given the messages of its data stream one by one, in order, from the one after the checkpoint on.
 *
 * @see {@link all}
 * @category checkers
 * @since 0.1.0
 */
export const messagesInOrder: (model: Model) => Checker = progress.messagesInOrder

/**
 * An announcement goes away only when its data stream was processed to its end, when it is in the dead letters, or by a
 * stock consumer. Once faults are over all of them go, malformed ones too, and every data stream comes to its end.
 *
 * @see {@link all}
 * @category checkers
 * @since 0.1.0
 */
export const nothingIsForgotten: (model: Model) => Checker = progress.nothingIsForgotten

/**
 * No announcement is without an owner for longer than `bound` while one consumer has room all that time, and no fault has
 * touched it, or the server, since `recovery` before.
 *
 * @see {@link all}
 * @category checkers
 * @since 0.1.0
 */
export const noOrphans = (
  model: Model,
  options: { readonly bound: Duration.Input; readonly recovery: Duration.Input }
): Checker => ownership.noOrphans(model, millis(options.bound), millis(options.recovery))

/**
 * No data stream is handed over, and handed on within `stay`, while the membership is what it was, since `settle` before
 * the first time. Later it is only where other data streams were taken or ended since then, so that shares are others.
 *
 * @see {@link all}
 * @category checkers
 * @since 0.1.0
 */
export const noPingPong = (
  model: Model,
  options: { readonly settle: Duration.Input; readonly stay: Duration.Input }
): Checker => ownership.noPingPong(model, millis(options.settle), millis(options.stay))

/**
 * Nobody but a stock consumer changes its lease of an entry before the time of it is up, and nobody else works under it.
 *
 * @see {@link all}
 * @category checkers
 * @since 0.1.0
 */
export const livingAreLeftAlone: (model: Model) => Checker = ownership.livingAreLeftAlone

/**
 * No more failures are counted than there were failures of handlers, and leases that ran out under one; and a readable
 * announcement becomes a dead letter only after `maxFailures` of them. Hand-overs and restarts in order are none.
 *
 * @see {@link all}
 * @category checkers
 * @since 0.1.0
 */
export const deadLettersAreEarned = (model: Model, options: { readonly maxFailures: number }): Checker =>
  fleet.deadLettersAreEarned(model, options.maxFailures)

/**
 * Once faults are over, consumers of the group that nobody is called by any more are removed, within `bound`.
 *
 * @see {@link all}
 * @category checkers
 * @since 0.1.0
 */
export const consumersAreReaped = (model: Model, options: { readonly bound: Duration.Input }): Checker =>
  fleet.consumersAreReaped(model, millis(options.bound))

/**
 * All of them.
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
 * @category checkers
 * @since 0.1.0
 */
export const all = (model: Model, options: {
  readonly orphan: Duration.Input
  readonly recovery: Duration.Input
  readonly settle: Duration.Input
  readonly stay: Duration.Input
  readonly reaped: Duration.Input
  readonly maxFailures: number
}): ReadonlyArray<Checker> => [
  checkpointsGrow(model),
  messagesInOrder(model),
  nothingIsForgotten(model),
  noOrphans(model, { bound: options.orphan, recovery: options.recovery }),
  noPingPong(model, { settle: options.settle, stay: options.stay }),
  livingAreLeftAlone(model),
  deadLettersAreEarned(model, { maxFailures: options.maxFailures }),
  consumersAreReaped(model, { bound: options.reaped })
]
