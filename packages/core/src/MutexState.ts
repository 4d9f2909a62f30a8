/**
 * The state of a mutex in the backend at one instant, as returned by `Mutex.owner` and `Mutex.inspect`.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import type { FencingToken } from "./FencingToken.ts"

/**
 * A mutex's owner at the time of the request.
 *
 * **Details**
 *
 * - `Free`: nobody owns it.
 * - `Held`: `owner` owns it for another `timeLeft`, unless the lease is renewed. If `timeLeft` is absent, the lease
 *   never ends, because the key was written without an expiry.
 *
 * **Example** (Describing the owner)
 *
 * ```ts
 * import { Mutex, MutexState } from "@effect-simba/core"
 * import { Duration, Effect } from "effect"
 *
 * const words = MutexState.Ownership.match({
 *   Free: () => "free",
 *   Held: ({ owner, timeLeft }) =>
 *     `held by ${owner} ${timeLeft === undefined ? "indefinitely" : `for ${Duration.format(timeLeft)}`}`
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
  Held: { owner: Schema.String, timeLeft: Schema.optionalKey(Schema.Duration) }
})

/**
 * The owner of a mutex, if there is one.
 *
 * @category models
 * @since 0.1.0
 */
export type Ownership = typeof Ownership.Type

/**
 * A mutex's state in the backend, as returned by `Mutex.inspect`.
 *
 * **Example** (Reading how long the first waiter has waited)
 *
 * ```ts
 * import type { MutexState } from "@effect-simba/core"
 *
 * const longestWait = ({ waiters }: MutexState.MutexState) => waiters[0]?.waited
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface MutexState {
  readonly ownership: Ownership
  /** The owner's token. Undefined if nobody owns the mutex, or if the owner runs the original Simba library. */
  readonly token: FencingToken | undefined
  /** The number of waiters, including dead ones that have not been detected yet. */
  readonly waiting: number
  /** The first waiters, up to the `limit` of `Mutex.inspect`, in queue order. */
  readonly waiters: ReadonlyArray<{ readonly id: string; readonly waited: Duration.Duration }>
}
