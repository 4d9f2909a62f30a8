/** Tests that stopping many data streams is spread over several turns of the event loop. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { Slice } from "../../src/internal/lease/workSlices.ts"
import type { OwnedStream } from "../../src/streams/internal/ownedStream.ts"
import * as revocation from "../../src/streams/internal/revocation.ts"
import type { StreamTable } from "../../src/streams/internal/streamTable.ts"

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
      const owned = { handler: undefined, isOpen: () => true, stop: () => turns[turns.length - 1]!++ }
      yield* revocation.stop(table, Array.from({ length: 4 * size }, () => owned as unknown as OwnedStream))
      assert.deepStrictEqual(turns, [size, size, size, size])
    }))
})
