/**
 * Names of mutexes and processes, and the ids that the backend stores.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import { contenderProblem, mutexProblem } from "./internal/nameRules.ts"
import { nameSchema } from "./internal/nameSchema.ts"

/**
 * The name of a mutex: not blank, not starting with `}`.
 *
 * **Example** (A name from outside)
 *
 * ```ts
 * import { MutexName } from "@effect-simba/core"
 * import { Schema } from "effect"
 *
 * const Request = Schema.Struct({ mutex: MutexName.MutexName })
 *
 * const decode = Schema.decodeUnknownEffect(Request)
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const MutexName = nameSchema("a mutex name", mutexProblem).pipe(
  Schema.brand("@effect-simba/MutexName")
)

/**
 * The checked name of a mutex.
 *
 * @category models
 * @since 0.1.0
 */
export type MutexName = typeof MutexName.Type

/**
 * The id of a lease in the backend, from the first attempt to acquire: `<counter>-<random>:<process name>`.
 *
 * **Details**
 *
 * Each attempt has a new id that is never reused. So an attempt with an unknown outcome can be undone safely.
 *
 * **Example** (Whether the owner runs this library)
 *
 * ```ts
 * import { Mutex, MutexName } from "@effect-simba/core"
 * import { Effect, Schema } from "effect"
 *
 * const isOurs = Schema.is(MutexName.LeaseId)
 *
 * const program = Effect.map(
 *   Mutex.inspect("invoices"),
 *   ({ ownership }) => ownership._tag === "Held" && isOurs(ownership.owner)
 * )
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const LeaseId = Schema.String.check(
  Schema.isPattern(/^\d+-[0-9a-z]{12}:./),
  Schema.makeFilter(contenderProblem)
).pipe(Schema.brand("@effect-simba/LeaseId"))

/**
 * The checked id of a lease.
 *
 * @category models
 * @since 0.1.0
 */
export type LeaseId = typeof LeaseId.Type

/**
 * A random UUID, for processes that must not reveal their host.
 *
 * **Example** (A process that does not show its host)
 *
 * ```ts
 * import { Mutex, MutexName } from "@effect-simba/core"
 * import { Effect, Layer } from "effect"
 *
 * const MutexLive = Layer.unwrap(Effect.map(MutexName.processNameByUuid, (processName) => Mutex.layer({ processName })))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const processNameByUuid: Effect.Effect<string> = Effect.map(
  Effect.all(Array.from({ length: 30 }, () => Random.nextIntBetween(0, 15))),
  (digits) => {
    let next = 0
    return "xxxxxxxx-xxxx-4xxx-axxx-xxxxxxxxxxxx".replace(/x/g, () => digits[next++]!.toString(16))
  }
)
