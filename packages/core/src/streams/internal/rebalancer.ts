/** Registers this member, adopts data streams handed over to it, and hands over its surplus. */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Semaphore from "effect/Semaphore"
import { replyTimeout } from "../../internal/lease/replyTimeout.ts"
import { persist, toFailure } from "../../internal/lease/storeFailure.ts"
import * as log from "../../internal/log.ts"
import type { StoreError } from "../../SimbaError.ts"
import type { Member } from "../StreamStore.ts"
import type { ClientContext, Deliver } from "./context.ts"
import type { LeaseTaker } from "./leaseTaker.ts"
import type { OwnedStream } from "./ownedStream.ts"
import * as plan from "./rebalancePlan.ts"
import * as revocation from "./revocation.ts"
import * as storeTimeouts from "./storeTimeouts.ts"

export interface Rebalancer {
  /** Adopts data streams that were handed over to this member. */
  readonly adopt: Effect.Effect<void, StoreError>
  readonly loop: Effect.Effect<never, StoreError>
  readonly leave: Effect.Effect<void>
}

/** For a client that does not share. */
export const none: Rebalancer = { adopt: Effect.void, loop: Effect.never, leave: Effect.void }

export const make = (client: ClientContext, taking: LeaseTaker, deliver: Deliver): Rebalancer => {
  const { config, session, store, table } = client
  const { capacity, consumer } = config
  const heartbeat = Duration.toMillis(config.heartbeatInterval)
  const settings = plan.settingsFor(heartbeat, Duration.toMillis(config.confirmTimeout))
  /** Survives some lost heartbeats. */
  const expiry = Duration.max(Duration.times(config.heartbeatInterval, 4), config.leaseDuration)
  const adopting = Semaphore.makeUnsafe(1)
  const handingOver = Semaphore.makeUnsafe(1)
  let state = plan.initial

  /** Only streams with a handler can be handed over. */
  const isMovable = (owned: OwnedStream, now: number) =>
    owned.isOpen() && owned.handler !== undefined && !owned.isRevoked && !owned.isEnding &&
    plan.isMovable(state, owned.arrival, now, settings)

  const view = (now: number): plan.View => {
    let movable = 0
    for (const owned of table.all()) if (isMovable(owned, now)) movable++
    return { members: client.members, session, owned: table.size, movable }
  }

  /** The latest stream: preferably one that has no message in hand, then one that did not come by a hand-over. */
  const choose = (now: number): OwnedStream | undefined => {
    const rank = (owned: OwnedStream) => (owned.isBusy ? 0 : 2) + (owned.arrival === undefined ? 1 : 0)
    let chosen: OwnedStream | undefined
    for (const owned of table.all()) {
      if (isMovable(owned, now) && (chosen === undefined || rank(owned) >= rank(chosen))) chosen = owned
    }
    return chosen
  }

  const handOver = (receiver: Member) =>
    Effect.gen(function*() {
      const owned = choose(table.now().monotonic)
      if (owned === undefined) return
      yield* log.info(`A data stream is revoked for ${receiver.consumer}, which has more room`).pipe(
        Effect.annotateLogs(owned.annotations)
      )
      yield* revocation.revoke(client, owned, receiver)
      // Counted also if the handler finished instead: one too many for a moment does no harm
      state = plan.handedOver(state, receiver.session, table.now().monotonic, settings)
    }).pipe(
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.void : log.error("A hand-over crashed", cause)
      ),
      handingOver.withPermitsIfAvailable(1)
    )

  const beat = Effect.gen(function*() {
    const owned = plan.registered(state, table.size, table.now().monotonic)
    client.members = yield* store.heartbeat({ consumer, session, capacity, owned }, expiry)
    const now = table.now().monotonic
    const seen = view(now)
    state = plan.seen(state, seen, now, settings)
    return plan.plan(state, seen, now, settings)
  })

  const adopt = adopting.withPermit(Effect.uninterruptible(Effect.gen(function*() {
    const given = yield* store.handedOver(consumer, session)
    for (const { info, ...held } of given) {
      if (table.has(held.entry)) continue
      const since = table.now()
      const exit = yield* Effect.exit(
        replyTimeout(store.renew([held], config.leaseDuration), "renew", config.commandTimeout)
      )
      if (Exit.isFailure(exit)) {
        const error = toFailure("renew", exit.cause)
        yield* log.warning(`Cannot confirm a data stream that was handed over: ${error.message}`)
        // No handler has begun, but an expired lease would count a failure
        yield* Effect.exit(replyTimeout(store.release(held), "release", config.commandTimeout))
        continue
      }
      if (exit.value[0]?._tag !== "Renewed") continue
      const arrival = { membership: state.membership, at: since.monotonic }
      yield* taking.add({ ...held, info, failures: 0, source: "handOver", since, arrival }, deliver)
    }
  })))

  return {
    adopt,
    loop: Effect.forever(Effect.gen(function*() {
      const receiver = yield* persist("A heartbeat", beat)
      // One at a time, beside the heartbeats
      if (receiver !== undefined) yield* Effect.forkChild(handOver(receiver))
      yield* Effect.sleep(config.heartbeatInterval)
    })),
    leave: storeTimeouts.leaving("Cannot leave the fleet", store.leave({ consumer, session }), config.releaseTimeout)
  }
}
