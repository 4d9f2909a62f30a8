/**
 * What the backend knows of a mutex at one instant.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import type { FencingToken } from "./FencingToken.ts"

/**
 * The owner of a mutex at the instant the backend was asked.
 *
 * **Details**
 *
 * - `Free`: nobody owns it.
 * - `Held`: `owner` owns it for `timeLeft`, unless it renews. Without `timeLeft` it is held without end, by a key that
 *   somebody wrote without an expiry.
 *
 * **Example** (In words)
 *
 * ```ts
 * import { Mutex, MutexState } from "@effect-simba/core"
 * import { Duration, Effect } from "effect"
 *
 * const words = MutexState.Ownership.match({
 *   Free: () => "nobody has it",
 *   Held: ({ owner, timeLeft }) =>
 *     `${owner} has it ${timeLeft === undefined ? "without end" : `for ${Duration.format(timeLeft)}`}`
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
 * A mutex as the backend has it at one instant.
 *
 * **Example** (How long the first waiter has waited)
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
  /** The owner's token, where the owner is one of ours. */
  readonly token: FencingToken | undefined
  /** How many queue, dead ones included until they are noticed. */
  readonly waiting: number
  /** The first of them, by their ids. */
  readonly waiters: ReadonlyArray<{ readonly id: string; readonly waited: Duration.Duration }>
}
