/**
 * Names of mutexes and processes, and the ids of leases.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import { contenderProblem, mutexProblem } from "./internal/nameRules.ts"
import { nameSchema } from "./internal/nameSchema.ts"

/**
 * The name of a mutex: valid Unicode, not blank, at most 1,024 characters, not starting with `}`.
 *
 * **Example** (Validating a name from a request)
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
 * A validated mutex name.
 *
 * @category models
 * @since 0.1.0
 */
export type MutexName = typeof MutexName.Type

/**
 * The id of a lease in the backend: `<counter>-<random>:<process name>`. It is generated before the first request to
 * acquire the lease.
 *
 * **Details**
 *
 * Each attempt has a new id that is never reused, so an attempt with an unknown outcome can be undone safely.
 *
 * **Example** (Checking whether the owner runs this library)
 *
 * ```ts
 * import { Mutex, MutexName } from "@effect-simba/core"
 * import { Effect, Schema } from "effect"
 *
 * const isLeaseId = Schema.is(MutexName.LeaseId)
 *
 * const program = Effect.map(
 *   Mutex.inspect("invoices"),
 *   ({ ownership }) => ownership._tag === "Held" && isLeaseId(ownership.owner)
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
 * A validated lease id.
 *
 * @category models
 * @since 0.1.0
 */
export type LeaseId = typeof LeaseId.Type

/**
 * Generates a random UUID for use as a process name that does not reveal the host.
 *
 * **Example** (Hiding the host)
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
