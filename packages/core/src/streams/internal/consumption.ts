/** Consumes a service: runs the loops of a consumer, and gives its data streams back at the end. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { persist } from "../../internal/lease/storeFailure.ts"
import { supervise } from "../../internal/lease/supervise.ts"
import { InvalidConfig, type StoreError } from "../../SimbaError.ts"
import type { EntryId, StreamName } from "../StreamName.ts"
import * as announcementReader from "./announcementReader.ts"
import type { ClientContext, Deliver } from "./context.ts"
import type { LeaseTaker } from "./leaseTaker.ts"
import * as orphanSignals from "./orphanSignals.ts"
import * as orphanSweep from "./orphanSweep.ts"
import * as reaper from "./reaper.ts"
import * as rebalancer from "./rebalancer.ts"
import * as revocation from "./revocation.ts"

export interface ConsumptionOptions {
  /** Named in the error of a second consumption. */
  readonly operation: "run" | "notifications"
  readonly onStarted: () => void
  readonly deliver: Deliver
  readonly onExpired: ((stream: StreamName, entry: EntryId) => Effect.Effect<void>) | undefined
  /** Completes when more data streams can be delivered. */
  readonly ready: Effect.Effect<void>
  readonly mayHandOver: boolean
}

export interface Consumption {
  /** Consumes until the scope closes, then gives its data streams back. Fails if the backend refuses for good. */
  readonly start: (options: ConsumptionOptions) => Effect.Effect<never, InvalidConfig | StoreError, Scope.Scope>
  /** Stops the current consumption and awaits it. */
  readonly close: Effect.Effect<void>
}

export const make = (client: ClientContext, taking: LeaseTaker): Consumption => {
  const { config, fleet, store, table } = client
  const closing = Deferred.makeUnsafe<void>()
  let current: { readonly name: string; readonly left: Deferred.Deferred<void> } | undefined

  const register = (name: string) =>
    Effect.suspend(() => {
      if (current !== undefined || Deferred.isDoneUnsafe(closing)) {
        const problem = current === undefined
          ? "this client is closed"
          : `this client is consumed already, by ${current.name}: make another client`
        return Effect.fail(new InvalidConfig({ option: name, problem }))
      }
      const left = Deferred.makeUnsafe<void>()
      current = { name, left }
      return Effect.succeed(left)
    })

  const unregister = (left: Deferred.Deferred<void>) =>
    Effect.suspend(() => {
      current = undefined
      return Deferred.succeed(left, undefined)
    })

  const consume = (options: ConsumptionOptions) =>
    Effect.gen(function*() {
      options.onStarted()
      fleet.members = []
      const rebalancing = rebalancer.make(client, taking, options.deliver, options.mayHandOver)
      const adopt = config.rebalance ? rebalancing.adopt : Effect.void
      const sweep = orphanSweep.make(client, taking, options.deliver, adopt)
      const closed = Effect.andThen(Deferred.await(closing), Effect.interrupt)
      yield* Effect.raceFirst(persist("Joining the service", store.prepare), closed)
      // Claims stay with the client
      yield* Effect.addFinalizer(() =>
        Effect.andThen(
          config.rebalance ? rebalancing.leave : Effect.void,
          revocation.revokeAll(client, [...table.all()].filter(({ source }) => source !== "claim"))
        )
      )
      const loops: Array<Effect.Effect<never, StoreError>> = [
        orphanSignals.make(client, taking, sweep, options.deliver, {
          onExpired: options.onExpired,
          onHandOver: adopt
        }),
        supervise("The reaper of consumers and announcements", reaper.reap(client))
      ]
      if (config.rebalance) loops.push(rebalancing.loop)
      loops.push(
        Effect.andThen(
          persist("Looking for unfinished data streams", sweep.own, config.sweepInterval),
          Effect.raceFirst(
            announcementReader.make(client, taking, sweep, options.deliver, options.ready),
            sweep.loop
          )
        )
      )
      return yield* Effect.raceFirst(Effect.raceAllFirst(loops), closed)
    })

  return {
    start: (options) =>
      Effect.andThen(Effect.acquireRelease(register(options.operation), unregister), consume(options)),
    close: Effect.suspend(() => {
      Deferred.doneUnsafe(closing, Effect.void)
      return current === undefined ? Effect.void : Deferred.await(current.left)
    })
  }
}
