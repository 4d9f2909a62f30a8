/** Limits the time to build a store, because not every `Redis` provider has timeouts. */
import type { BackendError } from "@effect-simba/core/SimbaError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { DriverError } from "./driverError.ts"
import { backendError } from "./errors.ts"

const limit = Duration.seconds(30)

export const withBuildTimeout = <A, E, R>(build: Effect.Effect<A, E, R>): Effect.Effect<A, E | BackendError, R> =>
  Effect.timeoutOrElse(build, {
    duration: limit,
    orElse: () =>
      Effect.fail(backendError("connect", new DriverError(`no reply within ${Duration.format(limit)}`, true)))
  })
