/**
 * Looking at mutexes, and intervening: for operators and their tools.
 *
 * To drain a node, before a deployment or a repair, force nothing: `Contention.stop` of its contenders lets their work
 * end, hands over, and stays away until `start`. `forceRelease` is for owners that do not answer.
 *
 * **Example** (Who holds what, and for how long)
 *
 * ```ts
 * import { MutexAdmin } from "@effect-simba/core"
 * import { Effect, Stream } from "effect"
 *
 * const report = MutexAdmin.list.pipe(
 *   Stream.mapEffect((name) => Effect.map(MutexAdmin.inspect(name), (state) => ({ name, ...state }))),
 *   Stream.runForEach((mutex) => Effect.log(mutex))
 * )
 * ```
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { BackendError, InvalidName, ProtocolError } from "./Errors.ts"
import { Mutex } from "./Mutex.ts"
import type { MutexState } from "./MutexStore.ts"
import type { Ownership } from "./Ownership.ts"

/**
 * A mutex as the backend has it: owner, time left, token, and the queue with waiting times (the first 100 waiters, or
 * `waiters`).
 *
 * **Example** (Who waits for longer than a minute)
 *
 * ```ts
 * import { MutexAdmin } from "@effect-simba/core"
 * import { Duration, Effect } from "effect"
 *
 * const stuck = Effect.map(
 *   MutexAdmin.inspect("invoices", { waiters: 10 }),
 *   ({ waiters }) => waiters.filter(({ waited }) => Duration.toMinutes(waited) > 1).map(({ id }) => id)
 * )
 * ```
 *
 * @category observing
 * @since 0.1.0
 */
export const inspect = (
  name: string,
  options?: { readonly waiters?: number | undefined }
): Effect.Effect<MutexState, BackendError | ProtocolError | InvalidName, Mutex> =>
  Mutex.use((mutex) => mutex.inspect(name, options))

/**
 * The names of all mutexes that are owned or waited for, in no order.
 *
 * @category observing
 * @since 0.1.0
 */
export const list: Stream.Stream<string, BackendError | ProtocolError, Mutex> = Stream.unwrap(
  Effect.map(Mutex, (mutex) => mutex.list)
)

/**
 * Takes the mutex from whoever owns it and hands it over as a release does, to the first live waiter, with a new
 * fencing token. The old owner is told and loses its lease with the reason `ForcedRelease`. For operators: the old
 * owner's work may not have ended yet. Answers who it was taken from.
 *
 * **Example** (Taking a mutex from a process that hangs)
 *
 * ```ts
 * import { MutexAdmin } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.flatMap(
 *   MutexAdmin.forceRelease("invoices"),
 *   (before) => Effect.log(before._tag === "Held" ? `taken from ${before.owner}` : "it was free")
 * )
 * ```
 *
 * @category intervening
 * @since 0.1.0
 */
export const forceRelease = (
  name: string
): Effect.Effect<Ownership, BackendError | ProtocolError | InvalidName, Mutex> =>
  Mutex.use((mutex) => mutex.forceRelease(name))
