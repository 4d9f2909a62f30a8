/** Revokes data streams: asks the handler to finish, interrupts it after the grace period, and awaits its end. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Member } from "../StreamStore.ts"
import type { ClientContext } from "./context.ts"
import { batchSize } from "./leaseTaker.ts"
import type { OwnedStream } from "./ownedStream.ts"
import type { StreamTable } from "./streamTable.ts"

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

/** Handlers run on as soon as they are told: thousands of them share no turn of the event loop. */
const inSlices = Effect.fnUntraced(function*(
  table: StreamTable,
  holdings: ReadonlyArray<OwnedStream>,
  act: (owned: OwnedStream) => void
) {
  let slice = table.slice()
  for (const owned of holdings) {
    if (!slice.hasRoom()) {
      yield* Effect.yieldNow
      slice = table.slice()
      slice.hasRoom()
    }
    if (owned.isOpen()) act(owned)
  }
})

/** Interrupts the handlers and awaits the ends of their leases. Leases without a handler stay. */
const interruptHandlers = (table: StreamTable, holdings: ReadonlyArray<OwnedStream>) =>
  Effect.andThen(
    inSlices(table, holdings, (owned) => owned.stop()),
    awaitEnds(holdings.filter((owned) => owned.handler !== undefined))
  )

/** For `receiver`. The handler yields the stream or finishes it. No message is interrupted for the sake of balance. */
export const revoke = (client: ClientContext, owned: OwnedStream, receiver: Member): Effect.Effect<void> =>
  Effect.gen(function*() {
    owned.receiver = receiver
    owned.revoke()
    yield* Effect.timeoutOption(awaitEnds([owned]), client.config.gracePeriod)
    while (owned.isOpen() && owned.hasRead && owned.isBusy) yield* Effect.sleep("100 millis")
    yield* interruptHandlers(client.table, [owned])
  })

/** Interrupts the handler at once. */
export const stop = ({ table }: ClientContext, owned: OwnedStream): Effect.Effect<void> =>
  interruptHandlers(table, [owned])

/** Interrupts the handler at once, and the stream is done. */
export const markDone = (client: ClientContext, owned: OwnedStream): Effect.Effect<void> =>
  Effect.suspend(() => {
    owned.isMarkedDone = true
    return stop(client, owned)
  })

/**
 * Users may release leases without a handler within the grace period; they are released after it. After the last handler
 * has ended, the backend has `releaseTimeout` for each batch.
 */
export const revokeAll = (client: ClientContext, holdings: ReadonlyArray<OwnedStream>): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { config, ends, table } = client
    if (holdings.every(isOver)) return
    yield* inSlices(table, holdings, (owned) => owned.revoke())
    yield* Effect.timeoutOption(awaitEnds(holdings), config.gracePeriod)
    yield* interruptHandlers(table, holdings)
    const left = holdings.filter((owned) => owned.isOpen())
    for (let i = 0; i < left.length; i += batchSize) {
      const batch = Effect.forEach(left.slice(i, i + batchSize), ends.yield, {
        concurrency: "unbounded",
        discard: true
      })
      if (Option.isNone(yield* Effect.timeoutOption(batch, config.releaseTimeout))) break
    }
    for (const owned of left) table.end(owned, "released")
  })
