/** Implements `Mutex.contend`: checks the options, and starts a contender on the layer's parts. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as LogLevel from "effect/LogLevel"
import type * as Scope from "effect/Scope"
import type { Contender, Options } from "../../Contender.ts"
import type { MutexStore } from "../../MutexStore.ts"
import type { InvalidConfig, InvalidName } from "../../SimbaError.ts"
import { storeTimeout } from "../lease/replyTimeout.ts"
import type { LayerParts } from "../mutex/layerParts.ts"
import * as ownerWatch from "../mutex/ownerWatch.ts"
import { margin, notNegative, oneOf, positive } from "../optionChecks.ts"
import * as contender from "./contender.ts"
import type { JobHost } from "./jobHost.ts"

/**
 * Adds timeouts, because a request without a reply would stop the contender or all of its jobs. As for an acquire, that
 * counts as an outage once a lease has passed. `noteEnd` has its own timeout.
 */
const within = (store: MutexStore["Service"], lease: Duration.Duration): JobHost["store"] => ({
  owner: (mutex) => storeTimeout(store.owner(mutex), "owner", lease),
  jobs: {
    read: (request) => storeTimeout(store.jobs.read(request), "read jobs", lease),
    claim: (request) => storeTimeout(store.jobs.claim(request), "claim a run", lease),
    end: (request) => store.jobs.end(request)
  }
})

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
      store: within(parts.store, lease),
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
