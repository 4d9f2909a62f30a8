/**
 * Rules that must hold in every history of a simulated fleet that shares data streams.
 *
 * Use them together with the checkers of locks, which check the lease of each data stream like any other lock.
 *
 * Programs call `client.note(kind, { resource, id, ... })`. `resource` is a data stream. `id` is the stream's name, `#`
 * and the token of the lease, as `lock.identify` derives it from the stored value:
 *
 * - `joined`, with `consumer` and `capacity`, and `left`: the period in which this process takes data streams.
 * - `expects`: `message` is the id of a final message of the data stream, after which it may be announced again.
 *   `announced`: it was announced.
 * - `begin`, `step`, `stopped`, `end`: the work of a handler, with the `entry` that announced the data stream.
 * - `processed`: the handler has processed the message with the id `message`; with its `key` if messages run
 *   concurrently. `failed`: the handler failed, with its `entry`. `tried`: it failed to process one `message`.
 * - `gap`: missing messages were reported to the handler, with the fields of `StreamMessages.Gap`.
 * - `kept`: an external system has stored `message` as the last processed one, for handlers that commit nothing.
 *
 * **Example** (For a fleet without rebalancing)
 *
 * ```ts
 * import { StreamChecker } from "@effect-simba/testkit/streams"
 *
 * const withoutRebalancing = (model: StreamChecker.Model, times: Parameters<typeof StreamChecker.all>[1]) =>
 *   StreamChecker.all(model, times).filter(({ name }) => name !== "no ping-pong")
 * ```
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import type { Checker } from "../Checker.ts"
import * as fleet from "./internal/checkers/fleet.ts"
import type { StreamModel } from "./internal/checkers/model.ts"
import * as operations from "./internal/checkers/operations.ts"
import * as ownership from "./internal/checkers/ownership.ts"
import * as progress from "./internal/checkers/progress.ts"

/**
 * Describes where the server keeps the state of a service.
 *
 * **Details**
 *
 * - `streams`: the data streams. `input`, `group`: the stream on which they are announced, and its consumer group.
 * - `deadLetters`, `deadMessages`: the streams of dead letters. `deadId` is the id that an entry had before.
 * - `failures`: a hash from entries to a text that begins with the number of handler failures and a `|`. `members`: a
 *   hash from consumers to a text that begins with their capacity and a `|`. `checkpoint`: a string with the id of the
 *   last committed message, which `@@` may follow.
 * - `entryLease`: the string by which a Go consumer holds an entry. `announcement`: the data stream that an entry
 *   names.
 * - `holder`: the consumer that the value of a stream's lease names.
 * - `isGoConsumer`: whether this is the name of a Go consumer, or of a client that runs one.
 * - `isMark`: whether this name in the consumer group is the group's mark instead of a consumer.
 *
 * Needed only if operators or producers use these features:
 *
 * - `paused`: a hash with a field for each paused data stream, and a field with an empty name if the service is paused.
 * - `isDraft`: whether a message belongs to a data stream that was deleted and written again. Drafts have larger ids
 *   than the messages that follow, and no notes.
 * - `keyOf`: the key of a message, by its id, if several are processed concurrently.
 * - `sought`: the data stream whose checkpoint an operator has moved with this command. `trimmed`: the data stream from
 *   which this command removes processed messages.
 * - `isUndecodable`: whether a message with these fields cannot be decoded.
 *
 * @see {@link all}
 * @category models
 * @since 0.1.0
 */
export interface Model extends StreamModel {}

const millis = (input: Duration.Input) => Duration.toMillis(Duration.fromInputUnsafe(input))

/**
 * All rules for data streams. A checker's `name` identifies its rule.
 *
 * **Details**
 *
 * - `checkpoints advance only past processed messages`: the checkpoint of a data stream, or the `kept` message in its
 *   place, never moves back, and skips no message that is neither processed nor a dead letter, unless the server lost
 *   data.
 * - `messages come in order`: a handler receives the messages of its data stream one by one, starting after the
 *   checkpoint.
 * - `nothing is forgotten`: every announced data stream is finished once faults have ended. An announcement disappears
 *   only if its data stream was processed to its end, if it is in the dead letters, or through a Go consumer. A
 *   malformed announcement disappears only into the dead letters or through a Go consumer.
 * - `orphans are taken`: no announcement is without an owner for longer than `orphan` while a consumer has free
 *   capacity. The time starts `recovery` after the last fault of that consumer or the server. For entries that were
 *   last delivered to a Go consumer, the limit is `goOrphan`.
 * - `no ping-pong`: no data stream is handed over twice within `stay`, unless the members changed after the first
 *   hand-over or less than `settle` before it. After `stay`, a second hand-over is also accepted if data streams were
 *   taken or ended in that time, because that changes the shares.
 * - `live Go consumers are left alone`: until a Go consumer's lease of an entry expires, only Go consumers change it or
 *   work under it.
 * - `Go consumers have time to finish`: an entry that was delivered to a Go consumer, which has not locked it yet, is
 *   not taken for 40 seconds (2 seconds if an earlier consumer had locked the entry). An entry that the consumer has
 *   unlocked is not taken for a fifth of a second. A client that receives messages late may react to the end of an
 *   earlier lease.
 * - `dead letters are justified`: handler failures, and leases that expired under a handler, are counted no more often
 *   than they happen, and only `maxFailures` of them make a dead letter. A commit resets the count. Malformed
 *   announcements become dead letters immediately.
 * - `dead messages are justified`: a message becomes a dead letter only once, and only after `attempts` of one handler or
 *   if it cannot be decoded.
 * - `gaps are reported`: messages that were deleted before they were read, and that the checkpoint has passed, are in a
 *   reported gap, and no gap has more messages than were deleted.
 * - `paused data streams stay paused`: no handler starts on a data stream that has been paused for longer than `recovery`,
 *   unless a fault affected the consumer within that time.
 * - `only what is read is trimmed`: trimming removes nothing after the checkpoint.
 * - `consumers are reaped`: once faults have ended, consumers of the group whose name no process uses are removed
 *   within `reaped` of their last pending entry.
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
 *   return [Checker.rules.oneOwner, Checker.rules.tokensGrow, Checker.rules.workNeverOverlaps, ...ofStreams]
 * }
 * ```
 *
 * @category testing
 * @since 0.1.0
 */
export const all = (model: Model, options: {
  /** The maximum time that an announcement may have no owner. */
  readonly orphan: Duration.Input
  /** The same for entries that were last delivered to a Go consumer. Default: `orphan`. */
  readonly goOrphan?: Duration.Input | undefined
  /** How long after a fault a consumer is excused from taking orphans. */
  readonly recovery: Duration.Input
  /** How long the shares may keep changing after the members have changed. */
  readonly settle: Duration.Input
  /** The minimum time between two hand-overs of a data stream. */
  readonly stay: Duration.Input
  /** The maximum time that a dead consumer may stay in the group. */
  readonly reaped: Duration.Input
  /** The clients' option `maxFailures`. */
  readonly maxFailures: number
  /** The number of attempts after which a handler makes a message a dead letter. Default: `Infinity`. */
  readonly attempts?: number | undefined
}): ReadonlyArray<Checker> => [
  progress.checkpointsGrow(model),
  progress.messagesInOrder(model),
  progress.nothingIsForgotten(model),
  ownership.noOrphans(
    model,
    { own: millis(options.orphan), go: millis(options.goOrphan ?? options.orphan) },
    millis(options.recovery)
  ),
  ownership.noPingPong(model, millis(options.settle), millis(options.stay)),
  ownership.liveGoConsumersAreLeftAlone(model),
  ownership.goConsumersHaveTime(model),
  fleet.deadLettersAreEarned(model, options.maxFailures),
  operations.deadMessagesAreEarned(model, options.attempts ?? Infinity),
  operations.gapsAreReported(model),
  operations.pausedRest(model, millis(options.recovery)),
  operations.onlyReadIsTrimmed(model),
  fleet.consumersAreReaped(model, millis(options.reaped))
]
