/** Tests when a handler counts as stalled: between two renewals, after waiting for messages, and during its work. */
import type { StreamLease } from "@effect-simba/core/streams"
import { assert, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { LeaseImpl } from "../../src/streams/internal/leaseHandle.ts"
import * as messageAttempts from "../../src/streams/internal/messageAttempts.ts"
import { OwnedStream } from "../../src/streams/internal/ownedStream.ts"
import { acquisitionAt } from "../support/acquisition.ts"
import { message } from "../support/scriptedLease.ts"
import { newTable } from "../support/streamTable.ts"

/** A data stream that needs no renewal for half a minute. Its handler may go without progress for a second. */
const setup = Effect.fnUntraced(function*(
  { awaitMessages = Effect.never, failures = 0 }: {
    readonly awaitMessages?: Effect.Effect<ReadonlyArray<never>>
    readonly failures?: number
  } = {}
) {
  const { config, table } = yield* newTable({
    progressTimeout: "1 second",
    leaseDuration: "1 minute",
    heartbeatInterval: "30 seconds"
  })
  const began = table.now().monotonic
  const losses: Array<string> = []
  table.onLost = (_, reason) => losses.push(`${table.now().monotonic - began} ${reason}`)
  yield* table.renewing({ renew: () => Effect.succeed([{ _tag: "Renewed" }]) } as never)
  const owned = new OwnedStream({ ...acquisitionAt(table.now()), failures }, table.periods)
  table.add(owned)
  const lease: StreamLease.StreamLease = new LeaseImpl(
    { config, table, store: { awaitMessages: () => awaitMessages } } as never,
    owned
  )
  return {
    lease: lease as LeaseImpl,
    losses,
    begin: Effect.sync(() => {
      owned.progressedAt = table.now().monotonic
      table.watch(owned)
    })
  }
})

it.effect("a handler without progress loses its data stream exactly at the progress timeout, not at the next renewal", () =>
  Effect.gen(function*() {
    const { begin, losses } = yield* setup()
    yield* TestClock.adjust("2 seconds")
    yield* begin
    yield* TestClock.adjust("10 seconds")
    assert.deepStrictEqual(losses, ["3000 Stalled"])
  }))

it.effect("the progress timeout restarts when messages arrive", () =>
  Effect.gen(function*() {
    const { begin, lease, losses } = yield* setup({ awaitMessages: Effect.delay(Effect.succeed([]), "5 seconds") })
    yield* begin
    yield* Effect.forkChild(lease.messagesAfter("0-0" as never, 1), { startImmediately: true })
    yield* TestClock.adjust("20 seconds")
    assert.deepStrictEqual(losses, ["6000 Stalled"])
  }))

it.effect("when two messages are processed during a wait for more, only the first restarts the progress timeout", () =>
  Effect.gen(function*() {
    const { begin, lease, losses } = yield* setup()
    yield* begin
    yield* Effect.forkChild(Effect.exit(lease.messagesAfter("0-0" as never, 1)), { startImmediately: true })
    yield* TestClock.adjust("5 seconds")
    yield* Effect.forkChild(lease.inHand(Effect.never), { startImmediately: true })
    yield* TestClock.adjust("500 millis")
    yield* Effect.forkChild(lease.inHand(Effect.never), { startImmediately: true })
    yield* TestClock.adjust("20 seconds")
    assert.deepStrictEqual(losses, ["6000 Stalled"])
  }))

it.effect("a pause between two attempts is not a lack of progress, regardless of its length and of earlier failures", () =>
  Effect.gen(function*() {
    for (const failures of [0, 3]) {
      const { begin, lease, losses } = yield* setup({ failures })
      const attempt = messageAttempts.make(lease, { backoff: Schedule.spaced("10 seconds") }, Effect.never)
      let runs = 0
      yield* begin
      yield* Effect.forkChild(
        attempt([message("1-0", {})], () => Effect.suspend(() => ++runs === 1 ? Effect.fail("busy") : Effect.never)),
        { startImmediately: true }
      )
      yield* TestClock.adjust("9 seconds")
      assert.deepStrictEqual(losses, [])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([runs, losses], [2, ["11000 Stalled"]])
      assert.strictEqual(lease.failures, failures)
    }
  }))

it.effect("a message that starts while all others pause before a retry gets the whole progress timeout", () =>
  Effect.gen(function*() {
    const { begin, lease, losses } = yield* setup()
    yield* begin
    yield* Effect.forkChild(lease.inHand(lease.pausing(Effect.never)), { startImmediately: true })
    yield* TestClock.adjust("5 seconds")
    yield* Effect.forkChild(lease.inHand(Effect.never), { startImmediately: true })
    yield* TestClock.adjust("20 seconds")
    assert.deepStrictEqual(losses, ["6000 Stalled"])
  }))
