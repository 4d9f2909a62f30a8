/** Revokes data streams: asks the handler to finish, interrupts it after the grace period, and awaits its end. */
import * as Effect from "effect/Effect"
import type { Member } from "../StreamStore.ts"
import type { ClientContext } from "./context.ts"
import type { OwnedStream } from "./ownedStream.ts"

const isOver = (owned: OwnedStream) => !owned.isOpen() && owned.handler === undefined

/** Waits until none of them is owned any more. */
export const awaitEnds = (holdings: ReadonlyArray<OwnedStream>): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    let open = 0
    const unlisten: Array<() => void> = []
    const one = () => {
      if (--open === 0) resume(Effect.void)
    }
    for (const owned of holdings) {
      if (!owned.isOpen()) continue
      open++
      unlisten.push(owned.onEnd.add(one))
    }
    if (open === 0) return resume(Effect.void)
    return Effect.sync(() => unlisten.forEach((stop) => stop()))
  })

/** Interrupts the handlers and awaits the ends of treceiver leases. Leases without a handler stay. */
const interruptHandlers = (holdings: ReadonlyArray<OwnedStream>) =>
  Effect.andThen(
    Effect.sync(() => {
      for (const owned of holdings) if (owned.isOpen()) owned.stop()
    }),
    awaitEnds(holdings.filter((owned) => owned.handler !== undefined))
  )

/** For `receiver`. The handler yields the stream or finishes it. No message is interrupted for the sake of balance. */
export const revoke = (client: ClientContext, owned: OwnedStream, receiver: Member): Effect.Effect<void> =>
  Effect.gen(function*() {
    owned.receiver = receiver
    owned.revoke()
    yield* Effect.timeoutOption(awaitEnds([owned]), client.config.gracePeriod)
    while (owned.isOpen() && owned.hasRead && owned.isBusy) yield* Effect.sleep("100 millis")
    yield* interruptHandlers([owned])
  })

/** Interrupts the handler at once. */
export const stop = (owned: OwnedStream): Effect.Effect<void> => interruptHandlers([owned])

/** Interrupts the handler at once, and the stream is done. */
export const finish = (owned: OwnedStream): Effect.Effect<void> =>
  Effect.suspend(() => {
    owned.isFinished = true
    return interruptHandlers([owned])
  })

/**
 * Users may release leases without a handler within the grace period; they are released after it. After the last handler
 * has ended, the backend has `releaseTimeout`.
 */
export const revokeAll = (client: ClientContext, holdings: ReadonlyArray<OwnedStream>): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { config, completion, table } = client
    if (holdings.every(isOver)) return
    for (const owned of holdings) if (owned.isOpen()) owned.revoke()
    yield* Effect.timeoutOption(awaitEnds(holdings), config.gracePeriod)
    yield* interruptHandlers(holdings)
    const left = holdings.filter((owned) => owned.isOpen())
    if (left.length === 0) return
    yield* Effect.timeoutOption(
      Effect.forEach(left, completion.yield, { concurrency: 256, discard: true }),
      config.releaseTimeout
    )
    for (const owned of left) table.end(owned, "released")
  })
