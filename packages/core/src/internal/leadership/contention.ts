/** Implements `Mutex.contend`: checks the options, and starts a contender on the layer's parts. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as LogLevel from "effect/LogLevel"
import type * as Scope from "effect/Scope"
import type { Contender, Options } from "../../Contender.ts"
import type { InvalidConfig, InvalidName } from "../../SimbaError.ts"
import type { LayerParts } from "../mutex/layerParts.ts"
import * as ownerWatch from "../mutex/ownerWatch.ts"
import { margin, notNegative, oneOf, positive } from "../optionChecks.ts"
import * as contender from "./contender.ts"

export const contend = (
  parts: LayerParts,
  name: string,
  options: Options<unknown> = {}
): Effect.Effect<Contender, InvalidName | InvalidConfig, Scope.Scope> =>
  Effect.gen(function*() {
    const { mutex, settings: { isAlive, lease, ttl } } = yield* parts.attempt(name, options)
    // The checked `isAlive` already has the caller's services
    const own = { ...options, isAlive }
    const pollInterval = yield* positive("pollInterval", options.pollInterval ?? "1 second")
    const drainTimeout = yield* notNegative("drainTimeout", options.drainTimeout ?? "1 minute")
    const logLevel = options.logLevel ?? "Info"
    // Effect silently drops messages with an unknown level, such as "info"
    yield* oneOf("logLevel", logLevel, LogLevel.values)
    return yield* contender.make({
      store: parts.store,
      follow: yield* ownerWatch.ofLayer(parts),
      mutex,
      transition: Duration.subtract(lease, ttl),
      margin: margin(lease),
      pollInterval,
      drainTimeout,
      logLevel,
      recorder: parts.recorder,
      now: parts.now,
      acquire: parts.acquire(mutex, own),
      acquireIfAvailable: parts.acquireIfAvailable(mutex, own)
    })
  })
