/**
 * Joins a service: runs a consumer's background loops, and releases its data streams when the loops stop. `client`
 * starts a consumption for `run` and for `notifications`.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { supervise } from "../../internal/lease/backgroundLoop.ts"
import { persist } from "../../internal/lease/storeRetries.ts"
import { refuse } from "../../internal/optionChecks.ts"
import type { InvalidConfig, StoreError } from "../../SimbaError.ts"
import type { EntryId, StreamName } from "../StreamName.ts"
import * as announcementReader from "./announcementReader.ts"
import type { ClientContext, Deliver } from "./context.ts"
import type { LeaseTaker } from "./leaseTaker.ts"
import * as orphanSignals from "./orphanSignals.ts"
import * as orphanSweep from "./orphanSweep.ts"
import * as pauseFollower from "./pauseFollower.ts"
import * as reaper from "./reaper.ts"
import * as rebalancer from "./rebalancer.ts"
import * as revocation from "./revocation.ts"

export interface ConsumptionOptions {
  /** The name used in the error if a second consumption is started. */
  readonly operation: "run" | "notifications"
  readonly onStarted: () => void
  readonly deliver: Deliver
  readonly onExpired?: (stream: StreamName, entry: EntryId) => Effect.Effect<void>
  /** Completes when the receiver can take more data streams from `deliver`. */
  readonly ready: Effect.Effect<void>
}

export interface Consumption {
  /**
   * Consumes until the scope closes, then releases the data streams. If an earlier consumption is ending, waits for it
   * first. Fails if the backend permanently refuses a request.
   */
  readonly start: (options: ConsumptionOptions) => Effect.Effect<never, InvalidConfig | StoreError, Scope.Scope>
  /** Stops the current consumption and waits for it to end. */
  readonly close: Effect.Effect<void>
}

export const make = (client: ClientContext, taking: LeaseTaker): Consumption => {
  const { config, store, table } = client
  const closing = Deferred.makeUnsafe<void>()
  /** Open while there is no current consumption. */
  const idle = Latch.makeUnsafe(true)
  let current: string | undefined
  /** Whether the current consumption was interrupted or has failed; its handlers may still be running. */
  let isEnding = false

  const register = (operation: string) =>
    Effect.suspend(() => {
      if (current !== undefined) {
        return refuse(operation, `this client already runs ${current}: create another client`)
      }
      if (Deferred.isDoneUnsafe(closing)) return refuse(operation, "this client is closed")
      current = operation
      return idle.close
    })

  const unregister = Effect.suspend(() => {
    current = undefined
    isEnding = false
    return idle.open
  })

  const consume = (options: ConsumptionOptions) =>
    Effect.gen(function*() {
      options.onStarted()
      client.members = []
      const rebalancing = config.rebalance ? rebalancer.make(client, taking, options.deliver) : rebalancer.none
      const sweep = orphanSweep.make(client, taking, options.deliver, rebalancing.adopt)
      const closed = Effect.andThen(Deferred.await(closing), Effect.interrupt)
      yield* Effect.raceFirst(persist("Joining the service", store.prepare), closed)
      // Data streams that were acquired by name stay with the client
      yield* Effect.addFinalizer(() =>
        Effect.andThen(
          rebalancing.leave,
          revocation.revokeAll(client, [...table.all()].filter(({ source }) => source !== "name"))
        )
      )
      const loops = [
        yield* Effect.raceFirst(pauseFollower.follow(client), closed),
        orphanSignals.make(client, taking, sweep, options.deliver, {
          onExpired: options.onExpired,
          onHandOver: rebalancing.adopt
        }),
        supervise("Removing dead consumers and finished announcements", reaper.reap(client)),
        rebalancing.loop,
        Effect.andThen(
          persist("Searching for unfinished data streams", sweep.own, config.sweepInterval),
          Effect.raceFirst(
            announcementReader.make(client, taking, sweep, options.deliver, options.ready),
            sweep.loop
          )
        )
      ]
      return yield* Effect.raceFirst(Effect.raceAllFirst(loops), closed)
    })

  return {
    start: (options) =>
      Effect.suspend(() => isEnding ? idle.await : Effect.void).pipe(
        Effect.andThen(Effect.acquireRelease(register(options.operation), () => unregister)),
        Effect.andThen(Effect.raceFirst(
          consume(options),
          Effect.onInterrupt(Effect.never, () =>
            Effect.sync(() => {
              isEnding = true
            }))
        ))
      ),
    close: Effect.andThen(Deferred.succeed(closing, undefined), idle.await)
  }
}
