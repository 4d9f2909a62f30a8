/**
 * The parts of a layer that contenders, observers and job operations use. `service` creates them. Contenders, observers
 * and jobs are functions on these parts rather than methods of the service: programs that only lock do not bundle them.
 */
import type * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { Lease } from "../../Lease.ts"
import type { AcquireOptions, LeaseOptions } from "../../Mutex.ts"
import type { MutexName } from "../../MutexName.ts"
import type { AcquireError, InvalidConfig, InvalidName, RequestError } from "../../SimbaError.ts"
import type { Attempt, AttemptContext } from "./attempt.ts"
import type { HeldLease } from "./heldLease.ts"
import type { Follow } from "./ownerWatch.ts"

export interface LayerParts extends AttemptContext {
  /** The layer's scope. */
  readonly scope: Scope.Scope
  readonly services: Context.Context<never>
  /** Checks the name and the options of a request. */
  readonly attempt: (
    name: string,
    options: LeaseOptions<unknown> | undefined
  ) => Effect.Effect<Attempt, InvalidName | InvalidConfig>
  readonly acquire: (
    name: string,
    options: AcquireOptions
  ) => Effect.Effect<Lease, AcquireError, Scope.Scope>
  readonly acquireIfAvailable: (
    name: string,
    options: LeaseOptions
  ) => Effect.Effect<Option.Option<Lease>, RequestError, Scope.Scope>
  /** The lease held by a fiber in this layer, checked against the clock. */
  readonly held: (mutex: MutexName) => HeldLease | undefined
  /** Follows the owners of mutexes. Created for the first followed mutex. */
  follow: Follow | undefined
}
