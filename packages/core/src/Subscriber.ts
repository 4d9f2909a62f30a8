/**
 * Publish/subscribe channels that report when messages may have been missed.
 *
 * A channel delivers each message at most once, and messages published while a connection is down are lost. Readers
 * that rely on messages must check the state after a gap.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { BackendError } from "./SimbaError.ts"

/**
 * A delivery on a channel: a message, or a `Gap`, which says that messages may have been missed.
 *
 * **Example** (Handling messages and gaps)
 *
 * ```ts
 * import { Notice } from "@effect-simba/core/Subscriber"
 *
 * const describe = Notice.match({
 *   Message: ({ text }) => `read ${text}`,
 *   Gap: () => "poll the state"
 * })
 *
 * console.log(describe({ _tag: "Gap" })) // => poll the state
 * ```
 *
 * @see {@link Subscriber}
 * @category schemas
 * @since 0.1.0
 */
export const Notice = Schema.TaggedUnion({
  Message: { channel: Schema.String, text: Schema.String },
  Gap: {}
})

/**
 * A delivery on a channel.
 *
 * @category models
 * @since 0.1.0
 */
export type Notice = typeof Notice.Type

/**
 * Publish/subscribe channels with gap detection, over as few connections as the backend allows.
 *
 * **Example** (Polling after a gap)
 *
 * ```ts
 * import * as Subscriber from "@effect-simba/core/Subscriber"
 * import { Effect, Queue } from "effect"
 *
 * const follow = <E, R>(channel: string, poll: Effect.Effect<void, E, R>) =>
 *   Effect.scoped(Effect.gen(function*() {
 *     const subscriber = yield* Subscriber.Subscriber
 *     const notices = yield* subscriber.subscribe(channel)
 *     yield* poll
 *     return yield* Effect.forever(Effect.flatMap(
 *       Queue.take(notices),
 *       Subscriber.Notice.match({ Gap: () => poll, Message: ({ text }) => Effect.log(text) })
 *     ))
 *   }))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class Subscriber extends Context.Service<Subscriber, {
  /**
   * Subscribes while the scope is open, and succeeds once the server has acknowledged the subscription. From then on,
   * no message is missed without a `Gap`. The queue never fails: a lost connection is restored in the background, with
   * a `Gap`. If a slow reader lets the queue fill up, a `Gap` replaces its contents.
   */
  readonly subscribe: (channel: string) => Effect.Effect<Queue.Dequeue<Notice>, BackendError, Scope.Scope>
  /**
   * Like `subscribe`, but without a queue: calls the listener synchronously with the text of a message, or with
   * `undefined` for a gap. The listener must neither throw nor block.
   */
  readonly listen?: (
    channel: string,
    listener: (text: string | undefined) => void
  ) => Effect.Effect<void, BackendError, Scope.Scope>
  /**
   * Whether `PUBSUB NUMSUB` counts these subscriptions on every server that executes commands. A Cluster node counts
   * only its own subscribers, so a Cluster needs a subscription on each primary.
   */
  readonly countable: boolean
  /** Maximum time between two polls. Set if gaps cannot be detected. */
  readonly bound: Duration.Duration | undefined
}>()("@effect-simba/core/Subscriber") {}

/**
 * A store's subscription. Its values are hints: reasons to poll.
 *
 * **Example** (Waiting for the next hint)
 *
 * ```ts
 * import type * as Subscriber from "@effect-simba/core/Subscriber"
 * import { Duration, Effect } from "effect"
 *
 * const untilPoll = <A>({ bound, next }: Subscriber.Subscription<A>) =>
 *   Effect.timeoutOption(next, bound ?? Duration.infinity)
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Subscription<out A> {
  /** Waits for the next value. */
  readonly next: Effect.Effect<A>
  /** Maximum time between two polls. Set if gaps cannot be detected. */
  readonly bound: Duration.Duration | undefined
}
