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
 * @category constructors
 * @since 0.1.0
 */
export const free: Ownership = { _tag: "Free" }

/**
 * @category constructors
 * @since 0.1.0
 */
export const held = (owner: string, remaining?: Duration.Duration): Ownership =>
  remaining === undefined ? { _tag: "Held", owner } : { _tag: "Held", owner, remaining }
