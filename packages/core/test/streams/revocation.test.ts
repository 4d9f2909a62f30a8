/** Tests how many data streams are stopped and released together, and what happens if the backend does not reply. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { Slice } from "../../src/internal/lease/workSlices.ts"
import { OwnedStream } from "../../src/streams/internal/ownedStream.ts"
import * as revocation from "../../src/streams/internal/revocation.ts"
import type { StreamTable } from "../../src/streams/internal/streamTable.ts"
import { acquisitionAt } from "../support/acquisition.ts"
import { perTurn } from "../support/perTurn.ts"
import { newTable } from "../support/streamTable.ts"

describe("stopping thousands of data streams", () => {
  it.effect("each turn of the event loop stops one slice of the data streams", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const expected = new Slice(clock)
      let size = 0
      while (expected.hasRoom()) size++
      const turns: Array<number> = []
      const table = {
        slice: () => {
          turns.push(0)
          return new Slice(clock)
        }
      } as unknown as StreamTable
      const turn = yield* perTurn
      const owned = {
        handler: undefined,
        isOpen: () => true,
        stop: () => {
          turns[turns.length - 1]!++
          turn.note()
        }
      }
      yield* revocation.stop(table, Array.from({ length: 4 * size }, () => owned as unknown as OwnedStream))
      assert.deepStrictEqual(turns, [size, size, size, size])
      assert.deepStrictEqual(turn.take(), { most: size, all: 4 * size })
    }))
})

describe("revoking data streams that have no handler", () => {
  const setup = Effect.fnUntraced(function*(count: number, release: (owned: OwnedStream) => Effect.Effect<void>) {
    const { config, table } = yield* newTable({ capacity: 1000, gracePeriod: 0, releaseTimeout: "1 second" })
    const holdings = Array.from({ length: count }, (_, i) => {
      const of = { entry: `${i + 1}-0`, stream: `s${i + 1}`, token: i + 1 }
      return new OwnedStream(acquisitionAt(table.now(), of), table.periods)
    })
    for (const owned of holdings) table.add(owned)
    const released: Array<OwnedStream> = []
    const ends = {
      yield: (owned: OwnedStream) => Effect.andThen(Effect.sync(() => released.push(owned)), release(owned))
    }
    const revoking = yield* Effect.forkChild(revocation.revokeAll({ config, ends, table } as never, holdings), {
      startImmediately: true
    })
    // Each slice of revocations takes a turn of the event loop
    yield* Effect.repeat(Effect.yieldNow, { times: 50 })
    return { table, holdings, released, revoking }
  })

  it.effect("releases all of them in batches", () =>
    Effect.gen(function*() {
      const { released, revoking } = yield* setup(401, () => Effect.sleep("100 millis"))
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual([released.length, revoking.pollUnsafe() !== undefined], [401, true])
    }))

  it.effect("if a batch gets no reply within the release timeout, sends no more batches and ends all leases locally", () =>
    Effect.gen(function*() {
      const { holdings, released, revoking, table } = yield* setup(401, () => Effect.never)
      yield* TestClock.adjust("999 millis")
      assert.strictEqual(table.size, 401)
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual([released.length, table.size, revoking.pollUnsafe() !== undefined], [200, 0, true])
      assert.isTrue(holdings.every((owned) => !owned.isOpen()))
    }))

  it.effect("keeps a lease until its protected work has ended, even if that takes longer than the release timeout", () =>
    Effect.gen(function*() {
      const { config, table } = yield* newTable({ gracePeriod: 0, releaseTimeout: "1 second", leaseDuration: "1 hour" })
      const owned = new OwnedStream(acquisitionAt(table.now()), table.periods)
      table.add(owned)
      owned.work.start()
      const work = yield* Effect.forkChild(Effect.onInterrupt(Effect.never, () => Effect.sleep("5 seconds")), {
        startImmediately: true
      })
      owned.work.add(work as never, false)
      yield* Effect.forkChild(
        revocation.revokeAll({ config, ends: { yield: () => Effect.never }, table } as never, [owned])
      )
      yield* TestClock.adjust("4 seconds")
      assert.isTrue(owned.isOpen())
      yield* TestClock.adjust("2 seconds")
      assert.isFalse(owned.isOpen())
    }))
})
