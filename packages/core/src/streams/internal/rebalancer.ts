/**
 * Registers this member in the fleet, adopts data streams that are handed over to it, and hands over its surplus.
 * `rebalancePlan` decides how many streams go to which member, and `handOverChoice` chooses them. Run by `consumption`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { identity } from "effect/Function"
import * as Semaphore from "effect/Semaphore"
import { storeTimeout } from "../../internal/lease/replyTimeout.ts"
import { toFailure } from "../../internal/lease/storeFailure.ts"
import { persist } from "../../internal/lease/storeRetries.ts"
import * as log from "../../internal/log.ts"
import type { StoreError } from "../../SimbaError.ts"
import type { Member, Ownership } from "../StreamStore.ts"
import type { ClientContext, Deliver } from "./context.ts"
import * as handOverChoice from "./handOverChoice.ts"
import type { LeaseTaker } from "./leaseTaker.ts"
import type { OwnedStream } from "./ownedStream.ts"
import * as plan from "./rebalancePlan.ts"
import * as revocation from "./revocation.ts"
import * as storeTimeouts from "./storeTimeouts.ts"

export interface Rebalancer {
  /** Confirms the data streams that were handed over to this member, and starts their handlers. */
  readonly adopt: Effect.Effect<void, StoreError>
  readonly loop: Effect.Effect<never, StoreError>
  readonly leave: Effect.Effect<void>
}

/** Used if `rebalance` is false. */
export const none: Rebalancer = { adopt: Effect.void, loop: Effect.never, leave: Effect.void }

export const make = (client: ClientContext, taking: LeaseTaker, deliver: Deliver): Rebalancer => {
  const { config, session, store, table } = client
  const { capacity, consumer } = config
  const heartbeat = Duration.toMillis(config.heartbeatInterval)
  const settings = plan.settingsFor(heartbeat, Duration.toMillis(config.confirmTimeout))
  /** How long a registration lasts: long enough to survive a few lost heartbeats. */
  const expiry = Duration.max(Duration.times(config.heartbeatInterval, 4), config.leaseDuration)
  const grace = Duration.toMillis(config.gracePeriod)
  const adopting = Semaphore.makeUnsafe(1)
  /** Data streams revoked for other members, each with the time of its revocation in monotonic milliseconds. */
  const recalled = new Map<OwnedStream, number>()
  let state = plan.initial

  /** Only streams with a handler can be handed over. */
  const isMovable = (owned: OwnedStream, now: number) =>
    owned.isOpen() && owned.hasHandler && !owned.isRevoked && !owned.isStopped && !owned.isEnding &&
    plan.isMovable(state, owned.arrival, now, settings)

  const view = (now: number): plan.View => {
    let movable = 0
    for (const owned of table.all()) if (isMovable(owned, now)) movable++
    const leaving: Array<string> = []
    for (const [{ receiver }, since] of recalled) {
      if (receiver !== undefined && now - since <= grace) leaving.push(receiver.session)
    }
    return { members: client.members, session, owned: table.size, leaving, movable }
  }

  /**
   * Revoked streams that are still owned after the grace period, because a message is being processed or the handler
   * cannot be interrupted. Excludes paused streams: their revocations must not be withdrawn.
   */
  const overdue = (now: number) =>
    [...recalled].flatMap(([owned, since]) =>
      owned.isOpen() && now - since > grace && !client.pauses.has(owned.stream) ? [owned] : []
    )

  /**
   * Chooses data streams and revokes them in one step. Withdraws the revocation of an overdue stream if another stream
   * can take its place.
   */
  const recall = ({ count, to }: plan.Decision) =>
    Effect.suspend(() => {
      const now = table.now().monotonic
      const late = overdue(now)
      const movable = [...table.all()].filter((owned) => isMovable(owned, now))
      const chosen = handOverChoice.choose(movable, count, count - late.length)
      for (const owned of late.slice(0, Math.max(0, chosen.length + late.length - count))) {
        owned.keep()
        recalled.delete(owned)
      }
      for (const owned of chosen) {
        owned.recall(to)
        recalled.set(owned, now)
      }
      if (chosen.length === 0) return Effect.void
      const subject = chosen.length === 1 ? "A data stream is" : `${chosen.length} data streams are`
      return Effect.andThen(
        log.info(`${subject} revoked for ${to.consumer}, which owns less than its share`).pipe(
          chosen.length === 1 ? Effect.annotateLogs(chosen[0]!.annotations) : identity
        ),
        Effect.forEach(chosen, (owned) => Effect.forkChild(awaitHandOver(owned, to)), { discard: true })
      )
    })

  const awaitHandOver = (owned: OwnedStream, to: Member) =>
    Effect.onExit(revocation.awaitRecall(client, owned), () =>
      Effect.sync(() => {
        // A stream whose revocation was withdrawn may have been revoked again in the meantime
        if (!owned.isOpen()) recalled.delete(owned)
        if (owned.outcome === "handedOver") {
          state = plan.handedOver(state, to.session, table.now().monotonic, settings)
        }
      }))

  const sendHeartbeat = Effect.gen(function*() {
    const owned = plan.registered(state, table.size, table.now().monotonic)
    client.members = yield* store.heartbeat({ consumer, session, capacity, owned }, expiry)
    const now = table.now().monotonic
    const current = view(now)
    state = plan.observe(state, current, now, settings)
    return plan.plan(state, current, now, settings)
  })

  /**
   * Releases streams that were offered to this member. If their leases expired instead, failures would be counted even
   * though no handler has started.
   */
  const refuse = (offered: ReadonlyArray<Ownership>) =>
    Effect.forEach(
      offered,
      (ownership) => Effect.exit(storeTimeout(store.release(ownership), "release", config.commandTimeout)),
      { concurrency: "unbounded", discard: true }
    )

  const adopt = adopting.withPermit(Effect.uninterruptible(Effect.gen(function*() {
    const offered = yield* store.handedOver(consumer, session, (entry) => table.has(entry))
    const isPaused = ({ stream }: Ownership) => client.pauses.has(stream)
    yield* refuse(offered.filter(isPaused))
    const received = offered.filter((ownership) => !isPaused(ownership))
    if (received.length === 0) return
    const since = table.now()
    const exit = yield* Effect.exit(
      storeTimeout(store.renew(received, config.leaseDuration), "renew", config.commandTimeout)
    )
    if (Exit.isFailure(exit)) {
      const error = toFailure("renew", exit.cause)
      yield* log.warning(`Cannot confirm ${received.length} data stream(s) that were handed over: ${error.message}`)
      return yield* refuse(received)
    }
    const arrival = { membership: state.membership, at: since.monotonic }
    const confirmed = received.filter((_, i) => exit.value[i]?._tag === "Renewed")
    yield* taking.add(
      confirmed.map((ownership) => ({ ...ownership, source: "handOver", since, arrival })),
      deliver
    )
  })))

  return {
    adopt,
    loop: Effect.forever(Effect.gen(function*() {
      const decision = yield* persist("A heartbeat", sendHeartbeat)
      if (decision !== undefined) yield* recall(decision)
      yield* Effect.sleep(config.heartbeatInterval)
    })),
    leave: storeTimeouts.leaving("Cannot leave the fleet", store.leave({ consumer, session }), config.releaseTimeout)
  }
}
