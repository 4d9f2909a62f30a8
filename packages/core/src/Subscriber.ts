/**
 * A small subscription service that knows about gaps: channels in, messages and gaps out.
 *
 * Messages on a publish/subscribe channel are delivered at most once, and a connection that was lost and restored
 * has missed whatever was published meanwhile. Whoever relies on such messages must look again after a gap. This
 * service says when that is.
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
 * What a subscription delivers.
 *
 * - `Message`: somebody published `text` on the channel.
 * - `Gap`: messages may have been missed since the last notice. Look at the state again.
 *
 * @see {@link Subscriber}
 * @category models
 * @since 0.1.0
 */
export const Notice = Schema.TaggedUnion({
  Message: { channel: Schema.String, text: Schema.String },
  Gap: {}
})

/**
 * @category models
 * @since 0.1.0
 */
export type Notice = typeof Notice.Type

/**
 * Publish/subscribe channels with gap detection, over as few connections as the backend allows.
 *
 * - `subscribe(channel)` succeeds once the server has acknowledged the subscription, so nothing that is published
 *   afterwards is missed without a `Gap`. It lasts as long as the scope. The queue never fails: a lost connection is
 *   restored in the background, and every restoration is a `Gap` in every queue. It keeps the newest notices when its
 *   reader is slow, and then puts a `Gap` where some were dropped.
 * - `listen(channel, listener)`, where there is one, is the same without a queue: the listener is called at once, with the
 *   text of a message or with nothing for a gap. It must neither throw nor wait.
 * - `countable` tells whether the server that runs our commands also counts these subscriptions (`PUBSUB NUMSUB`).
 *   On Redis Cluster it does not: a count is local to one node.
 * - `bound` is set where gaps cannot be seen: look again at least this often, message or none.
 *
 * **Example** (Looking again after a gap)
 *
 * ```ts
 * import { Subscriber } from "@effect-simba/core"
 * import { Effect, Queue } from "effect"
 *
 * const follow = <E, R>(channel: string, look: Effect.Effect<void, E, R>) =>
 *   Effect.scoped(Effect.gen(function*() {
 *     const subscriber = yield* Subscriber.Subscriber
 *     const notices = yield* subscriber.subscribe(channel)
 *     yield* look
 *     return yield* Effect.forever(Effect.flatMap(
 *       Queue.take(notices),
 *       Subscriber.Notice.match({ Gap: () => look, Message: ({ text }) => Effect.log(text) })
 *     ))
 *   }))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class Subscriber extends Context.Service<Subscriber, {
  readonly subscribe: (channel: string) => Effect.Effect<Queue.Dequeue<Notice>, BackendError, Scope.Scope>
  readonly listen?: (
    channel: string,
    listener: (text: string | undefined) => void
  ) => Effect.Effect<void, BackendError, Scope.Scope>
  readonly countable: boolean
  readonly bound: Duration.Duration | undefined
}>()("@effect-simba/core/Subscriber") {}
