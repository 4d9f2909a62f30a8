/** Tests which data streams a member chooses to hand over. */
import { assert, describe, it } from "@effect/vitest"
import { choose } from "../../src/streams/internal/handOverChoice.ts"

const candidate = (name: string, isBusy: boolean, hasRead: boolean, byHandOver = false) => ({
  name,
  isBusy,
  hasRead,
  arrival: byHandOver ? { membership: "", at: 0 } : undefined
})

const movable = [
  candidate("busy 1", true, true),
  candidate("unknown 1", true, false),
  candidate("waits 1", false, true),
  candidate("waits, handed over", false, true, true),
  candidate("waits 2", false, true),
  candidate("unknown, handed over", true, false, true),
  candidate("unknown 2", true, false),
  candidate("busy, handed over", true, true, true),
  candidate("busy 2", true, true)
]

const names = (count: number, busy: number) => choose(movable, count, busy).map(({ name }) => name)

describe("the data streams that a member hands over", () => {
  it("streams with waiting handlers are chosen first, newest first, and busy ones last", () =>
    assert.deepStrictEqual(names(9, 9), [
      "waits 2",
      "waits 1",
      "waits, handed over",
      "unknown 2",
      "unknown 1",
      "unknown, handed over",
      "busy 2",
      "busy 1",
      "busy, handed over"
    ]))

  it("at most as many data streams are chosen as were requested", () => {
    assert.deepStrictEqual(names(2, 2), ["waits 2", "waits 1"])
    assert.deepStrictEqual(names(0, 0), [])
  })

  it("busy data streams are chosen only if no others are left, and only as many as allowed", () => {
    assert.deepStrictEqual(names(8, 7).slice(6), ["busy 2"])
    assert.deepStrictEqual(names(9, 6), names(6, 6))
    assert.deepStrictEqual(names(9, -1), names(6, 6))
  })
})
