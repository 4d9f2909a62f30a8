/** Taking part in the fleet: being registered, being handed data streams, and handing over what is too many. */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Semaphore from "effect/Semaphore"
import { isRefusal, persist, toFailure } from "../../internal/lease/storeFailure.ts"
import type { StoreError } from "../../SimbaError.ts"
import type { Member } from "../StreamStore.ts"
import type { ClientContext, Deliver } from "./context.ts"
import type { LeaseTaker } from "./leaseTaker.ts"
import type { Fleet } from "./members.ts"
import type { OwnedStream } from "./ownedStream.ts"
import * as sharing from "./rebalancePlan.ts"
import * as handBack from "./revocation.ts"

export interface Balance {
  /** Looks for what was handed to this member and not adopted yet. */
  readonly adopt: Effect.Effect<void, StoreError>
  readonly loop: Effect.Effect<never, StoreError>
  readonly leave: Effect.Effect<void>
}

export const make = (
  client: ClientContext,
  taking: LeaseTaker,
  fleet: Fleet,
  deliver: Deliver,
  /** Whether what is owned can be handed over: only handlers can be asked and stopped. */
  mayGive: boolean
): Balance => {
  const { config, session, store, table } = client
  const { capacity, consumer } = config
  const heartbeat = Duration.toMillis(config.heartbeatInterval)
  const settings = sharing.settingsFor(heartbeat, Duration.toMillis(config.confirmTimeout))
  /** Survives some lost beats. */
  const expiry = Duration.max(Duration.times(config.heartbeatInterval, 4), config.leaseDuration)
  const turn = Semaphore.makeUnsafe(1)
  let isGiving = false
  let state = sharing.initial

  const isMovable = (owned: OwnedStream, now: number) =>
    owned.isOpen() && owned.work !== undefined && !owned.isAskedBack && !owned.ending &&
    sharing.isMovable(state, owned.arrival, now, settings)

  const view = (members: ReadonlyArray<Member>, now: number): sharing.View => {
    let movable = 0
    if (mayGive) { for (const owned of table.all()) if (isMovable(owned, now)) movable++ }
    return { members, session, owned: table.size, movable }
  }

  /** What came last, and rather not what came by a hand-over. */
  const choose = (now: number): OwnedStream | undefined => {
    let chosen: OwnedStream | undefined
    for (const owned of table.all()) {
      if (!isMovable(owned, now)) continue
      if (chosen?.arrival !== undefined || owned.arrival === undefined || chosen === undefined) chosen = owned
    }
    return chosen
  }

  const give = (heir: Member) =>
    Effect.gen(function*() {
      const owned = choose(table.now().monotonic)
      if (owned === undefined) return
      yield* Effect.logInfo(`A data stream is asked back for ${heir.consumer}, which has more room`).pipe(
        Effect.annotateLogs({ stream: owned.stream, entry: owned.entry, token: owned.token })
      )
      yield* handBack.one(client, owned, heir)
      // Whatever became of it: counting one too many for a moment does no harm
      state = sharing.handedOver(state, heir.session, table.now().monotonic, settings)
    }).pipe(
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError("Handing a data stream over died", cause)
      ),
      Effect.ensuring(Effect.sync(() => {
        isGiving = false
      }))
    )

  const beat = Effect.gen(function*() {
    const owned = sharing.registered(state, table.size, table.now().monotonic)
    const members = yield* store.heartbeat({ consumer, session, capacity, owned }, expiry)
    fleet.members = members
    const now = table.now().monotonic
    const seen = view(members, now)
    state = sharing.seen(state, seen, now, settings)
    return sharing.plan(state, seen, now, settings)
  })

  const adopt = turn.withPermit(Effect.uninterruptible(Effect.gen(function*() {
    const given = yield* store.handedOver(consumer, session)
    for (const { info, ...held } of given) {
      if (table.has(held.entry)) continue
      const since = table.now()
      const exit = yield* Effect.exit(Effect.timeout(store.renew([held], config.leaseDuration), config.commandTimeout))
      if (Exit.isFailure(exit)) {
        const error = toFailure("renew", exit.cause)
        yield* Effect.logWarning(`Cannot confirm a data stream that was handed over: ${error.message}`)
        // No handler has begun: a lease that ran out would count a failure
        yield* Effect.exit(Effect.timeout(store.release(held), config.commandTimeout))
        continue
      }
      if (exit.value[0]?._tag !== "Renewed") continue
      const arrival = { membership: state.membership, at: since.monotonic }
      const kept = table.reserve(1)
      yield* taking.add(held, { info, failures: 0, source: "given", since, arrival }, deliver)
      table.unreserve(kept)
    }
  })))

  return {
    adopt,
    loop: Effect.forever(Effect.gen(function*() {
      const heir = yield* persist("Registering", beat)
      // One at a time, and the beats go on meanwhile
      if (heir !== undefined && !isGiving) {
        isGiving = true
        yield* Effect.forkChild(give(heir))
      }
      yield* Effect.sleep(config.heartbeatInterval)
    })),
    leave: Effect.suspend(() =>
      store.leave({ consumer, session }).pipe(
        Effect.timeout(config.releaseTimeout),
        Effect.catchCause((cause) => {
          const error = toFailure("leave", cause)
          return isRefusal(error)
            ? Effect.logWarning(`Cannot leave the fleet: ${error.message}`)
            : Effect.logDebug(`Cannot leave the fleet: ${error.message}`)
        })
      )
    )
  }
}
