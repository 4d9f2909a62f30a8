/** Being a consumer of the service, from joining to leaving: all loops of it, and the end of what it brought. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { persist } from "../../internal/lease/storeFailure.ts"
import { supervise } from "../../internal/lease/supervise.ts"
import { InvalidConfig, type StoreError } from "../../SimbaError.ts"
import type { EntryId, StreamName } from "../StreamName.ts"
import * as intake from "./announcementReader.ts"
import type { ClientContext, Deliver } from "./context.ts"
import type { LeaseTaker } from "./leaseTaker.ts"
import * as fleetOf from "./members.ts"
import * as hearing from "./orphanSignals.ts"
import * as sweepOf from "./orphanSweep.ts"
import * as tidying from "./reaper.ts"
import * as balanceOf from "./rebalancer.ts"
import * as handBack from "./revocation.ts"

export interface Guest {
  /** What it is called where it is refused. */
  readonly name: "run" | "notifications"
  readonly onJoined: () => void
  readonly deliver: Deliver
  readonly onExpired: ((stream: StreamName, entry: EntryId) => Effect.Effect<void>) | undefined
  /** Ends when it can be given more. */
  readonly ready: Effect.Effect<void>
  readonly mayGive: boolean
}

export interface Door {
  /** Consumes until the scope closes, and then gives back what it was brought. Fails where the backend refuses for good. */
  readonly join: (guest: Guest) => Effect.Effect<never, InvalidConfig | StoreError, Scope.Scope>
  /** Sends whoever is in out, and waits until he has gone. */
  readonly close: Effect.Effect<void>
}

export const make = (client: ClientContext, taking: LeaseTaker): Door => {
  const { config, store, table } = client
  const closing = Deferred.makeUnsafe<void>()
  let present: { readonly name: string; readonly left: Deferred.Deferred<void> } | undefined

  const enter = (name: string) =>
    Effect.suspend(() => {
      if (present !== undefined || Deferred.isDoneUnsafe(closing)) {
        const problem = present === undefined
          ? "this client is closed"
          : `this client is consumed already, by ${present.name}: make another client`
        return Effect.fail(new InvalidConfig({ option: name, problem }))
      }
      const left = Deferred.makeUnsafe<void>()
      present = { name, left }
      return Effect.succeed(left)
    })

  const leave = (left: Deferred.Deferred<void>) =>
    Effect.suspend(() => {
      present = undefined
      return Deferred.succeed(left, undefined)
    })

  const consume = (guest: Guest) =>
    Effect.gen(function*() {
      guest.onJoined()
      const fleet = fleetOf.empty()
      const balance = balanceOf.make(client, taking, fleet, guest.deliver, guest.mayGive)
      const adopt = config.rebalance ? balance.adopt : Effect.void
      const sweep = sweepOf.make(client, taking, guest.deliver, adopt)
      const closed = Effect.andThen(Deferred.await(closing), Effect.interrupt)
      yield* Effect.raceFirst(persist("Joining the service", store.prepare), closed)
      // Not before everything that is owned by then can be told apart from claims
      yield* Effect.addFinalizer(() =>
        Effect.andThen(
          config.rebalance ? balance.leave : Effect.void,
          handBack.all(client, [...table.all()].filter(({ source }) => source !== "claim"))
        )
      )
      const loops: Array<Effect.Effect<never, StoreError>> = [
        hearing.make(client, taking, sweep, fleet, guest.deliver, { onExpired: guest.onExpired, onGiven: adopt }),
        supervise("Tidying up", tidying.loop(client, fleet))
      ]
      if (config.rebalance) loops.push(balance.loop)
      loops.push(
        Effect.andThen(
          persist("Looking for unfinished data streams", sweep.own),
          Effect.raceFirst(
            intake.make(client, taking, sweep, guest.deliver, guest.ready),
            sweep.loop
          )
        )
      )
      return yield* Effect.raceFirst(Effect.raceAllFirst(loops), closed)
    })

  return {
    join: (guest) => Effect.andThen(Effect.acquireRelease(enter(guest.name), leave), consume(guest)),
    close: Effect.suspend(() => {
      Deferred.doneUnsafe(closing, Effect.void)
      return present === undefined ? Effect.void : Deferred.await(present.left)
    })
  }
}
