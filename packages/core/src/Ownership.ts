/**
 * Who owns a mutex, and the numbers that go with it.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"

/**
 * A number that grows with every grant of a mutex. Hand it to the resource that the mutex protects: one that refuses
 * tokens smaller than the largest it has seen is safe even from a holder that was paused past its deadline.
 *
 * **Example** (Refusing what comes from a former holder)
 *
 * ```ts
 * import { Ownership } from "@effect-simba/core"
 * import { Ref, Schema } from "effect"
 *
 * const Write = Schema.Struct({ token: Ownership.FencingToken, text: Schema.String })
 *
 * const accept = (largest: Ref.Ref<number>, write: typeof Write.Type) =>
 *   Ref.modify(largest, (seen) => [write.token >= seen, Math.max(seen, write.token)])
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const FencingToken = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })).pipe(
  Schema.brand("@effect-simba/FencingToken")
)

/**
 * @category models
 * @since 0.1.0
 */
export type FencingToken = typeof FencingToken.Type

/**
 * A waiter's place in the queue: the server's time, in seconds with six decimals, when it first asked.
 *
 * **Example** (When a waiter came)
 *
 * ```ts
 * import { Ownership } from "@effect-simba/core"
 * import { DateTime, Effect, Schema } from "effect"
 *
 * const arrival = (score: string) =>
 *   Effect.map(
 *     Schema.decodeEffect(Ownership.Ticket)(score),
 *     (ticket) => DateTime.makeUnsafe(Number(ticket) * 1000)
 *   )
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const Ticket = Schema.String.check(Schema.isPattern(/^\d+\.\d{6}$/)).pipe(
  Schema.brand("@effect-simba/Ticket")
)

/**
 * @category models
 * @since 0.1.0
 */
export type Ticket = typeof Ticket.Type

/**
 * Who owns a mutex at the instant the backend was asked.
 *
 * - `Free`: nobody.
 * - `Held`: `owner` does, for `remaining` unless it renews; without `remaining` it is held without end (somebody wrote
 *   the key without an expiry).
 *
 * **Example** (In words)
 *
 * ```ts
 * import { Mutex, Ownership } from "@effect-simba/core"
 * import { Duration, Effect } from "effect"
 *
 * const words = Ownership.Ownership.match({
 *   Free: () => "nobody has it",
 *   Held: ({ owner, remaining }) =>
 *     `${owner} has it ${remaining === undefined ? "without end" : `for ${Duration.format(remaining)}`}`
 * })
 *
 * const program = Effect.map(Mutex.owner("invoices"), words)
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const Ownership = Schema.TaggedUnion({
  Free: {},
  Held: { owner: Schema.String, remaining: Schema.optionalKey(Schema.Duration) }
})

/**
 * @category models
 * @since 0.1.0
 */
export type Ownership = typeof Ownership.Type

/**
 * Nobody owns it.
 *
 * **Example** (A page before the first answer)
 *
 * ```ts
 * import { Ownership } from "@effect-simba/core"
 * import { SubscriptionRef } from "effect"
 *
 * const shown = SubscriptionRef.make<Ownership.Ownership>(Ownership.free)
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const free: Ownership = { _tag: "Free" }

/**
 * `owner` owns it, for `remaining`, or without end.
 *
 * **Example** (What a store of one's own answers)
 *
 * ```ts
 * import { Ownership } from "@effect-simba/core"
 * import { Duration } from "effect"
 *
 * const read = (row: { readonly owner: string; readonly millis: number } | undefined) =>
 *   row === undefined ? Ownership.free : Ownership.held(row.owner, Duration.millis(row.millis))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const held = (owner: string, remaining?: Duration.Duration): Ownership =>
  remaining === undefined ? { _tag: "Held", owner } : { _tag: "Held", owner, remaining }
