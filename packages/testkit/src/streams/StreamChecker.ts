/**
 * Rules that every history must obey when a simulated fleet shares data streams.
 *
 * Use them together with the checkers for locks, which check a data stream's lease like any other lock.
 *
 * Programs call `client.note(kind, { resource, id, ... })`. `resource` is a data stream. `id` consists of the stream's
 * name, `#` and the lease's token, as derived from the stored value by `lock.identify`:
 *
 * - `joined` (with `consumer` and `capacity`) and `left`: the period during which this process takes data streams.
 * - `expects`: `message` is the id of a final message in the data stream, after which it may be announced again.
 *   `announced`: the data stream was announced.
 * - `begin`, `step`, `stopped`, `end`: a handler's work, with the `entry` that announced the data stream.
 * - `processed`: the handler has processed the message with the id `message`. `key` is the message's key if messages
 *   are processed concurrently. `failed`: the handler of `entry` failed. `tried`: the handler failed to process one
 *   `message`.
 * - `gap`: missing messages were reported to the handler. It has the fields of `StreamMessages.Gap`.
 * - `kept`: an external system has stored `message` as the last one processed. For handlers that do not commit.
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
 * Describes where the server keeps a service's state.
 *
 * **Details**
 *
 * - `streams`: the data streams. `input`, `group`: the stream on which they are announced, and its consumer group.
 * - `deadLetters`, `deadMessages`: the dead-letter streams. `deadId` is the id that a dead-lettered entry had before.
 * - `failures`: a hash that maps entries to text, which starts with the number of handler failures and a `|`.
 *   `members`: a hash that maps consumers to text, which starts with their capacity and a `|`. `checkpoint`: a string
 *   that starts with the id of the last committed message, which may be followed by `@@`.
 * - `entryLease`: the string with which a Go consumer holds an entry. `announcement`: the data stream named in an
 *   entry.
 * - `holder`: the consumer named in the value of a stream lease.
 * - `isGoConsumer`: whether this name belongs to a Go consumer or to a client that runs one.
 * - `isMark`: whether this name in the consumer group is the group's mark, and not a consumer.
 *
 * Needed only if operators or producers use these features:
 *
 * - `paused`: a hash with a field for each paused data stream. A field with an empty name means that the service is
 *   paused.
 * - `isDraft`: whether a message belongs to a data stream that was deleted and then written again. Drafts have larger
 *   ids than the messages that replace them, and are not noted.
 * - `keyOf`: returns a message's key by its id, if messages are processed concurrently.
 * - `sought`: the data stream whose checkpoint an operator moves with this command. `trimmed`: the data stream from
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
 * - `checkpoints advance only past processed messages`: a data stream's checkpoint, or the `kept` message that replaces
 *   it, never moves back. It passes only messages that have been processed or dead-lettered, unless the server lost
 *   data.
 * - `messages come in order`: a handler receives its data stream's messages one at a time, starting after the
 *   checkpoint.
 * - `nothing is forgotten`: every announced data stream is finished after the faults have ended. An announcement
 *   disappears only if its data stream was processed to the end, if it was dead-lettered, or if a Go consumer removed
 *   it. A malformed announcement disappears only if it was dead-lettered or a Go consumer removed it.
 * - `orphans are taken`: no announcement is without an owner for longer than `orphan` while a consumer has free
 *   capacity. The time starts `recovery` after the last fault that affected that consumer or the server. For entries
 *   that were last delivered to a Go consumer, the limit is `goOrphan`.
 * - `no ping-pong`: no data stream is handed over twice within `stay`, unless the members changed after the first
 *   hand-over or less than `settle` before it. After `stay`, a second hand-over is accepted too if data streams were
 *   taken or ended since the first one, because that changes the shares.
 * - `live Go consumers are left alone`: until a Go consumer's lease on an entry expires, only Go consumers change the
 *   lease or work under it.
 * - `Go consumers have time to finish`: an entry that was delivered to a Go consumer and is not locked yet is not taken
 *   for 40 seconds (2 seconds if an earlier consumer had locked the entry). An entry that a Go consumer has unlocked is
 *   not taken for 0.2 seconds. Exception: a client that receives messages late may react to the end of an earlier
 *   lease.
 * - `dead letters are justified`: handler failures, and leases that expired under a handler, are not counted more often
 *   than they happen. An announcement is dead-lettered only after `maxFailures` of them. A commit resets the count.
 *   Malformed announcements are dead-lettered immediately.
 * - `dead messages are justified`: a message is dead-lettered only once, and only after `attempts` attempts by one
 *   handler or if it cannot be decoded.
 * - `gaps are reported`: if messages were deleted before they were read and the checkpoint has passed them, they are
 *   part of a reported gap. No gap reports more messages than were deleted.
 * - `paused data streams stay paused`: no handler starts on a data stream that has been paused for longer than
 *   `recovery`, unless a fault affected the consumer during that time.
 * - `only what is read is trimmed`: trimming does not remove messages after the checkpoint.
 * - `consumers are reaped`: after the faults have ended, a consumer whose name no process uses is removed from the
 *   group within `reaped` after its last command and its last pending entry.
 *
 * **Example** (For consumers with default durations)
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
  /** The maximum time that an announcement may be without an owner. */
  readonly orphan: Duration.Input
  /** The maximum time for entries that were last delivered to a Go consumer. Default: `orphan`. */
  readonly goOrphan?: Duration.Input | undefined
  /** How long a consumer is excused from taking orphans after a fault. */
  readonly recovery: Duration.Input
  /** How long the shares may change after the members have changed. */
  readonly settle: Duration.Input
  /** The minimum time between two hand-overs of a data stream. */
  readonly stay: Duration.Input
  /** The maximum time that a dead consumer may stay in the group. */
  readonly reaped: Duration.Input
  /** The clients' `maxFailures` option. */
  readonly maxFailures: number
  /** The number of attempts after which a handler dead-letters a message. Default: `Infinity`. */
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
