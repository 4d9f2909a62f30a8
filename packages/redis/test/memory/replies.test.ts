import { assert, describe, it } from "@effect/vitest"
import { Exit, Schema } from "effect"
import { OwnershipText } from "../../src/internal/mutex/ownership.ts"
import { readAcquire, readRelease } from "../../src/internal/mutex/replies.ts"

const owners = ["@@", "a:1@h@@16000", "a@@0", "a@@-1", "a@@05", "a@@1e3", "@a@@5", "a@@b@@5", "@@5", "a", ""]
const tickets = ["1763733691.000001", "1763733691.000000", "1763733691", "1.5", "-1.000001", "x", ""]
const positions = ["0", "7", "999999999999999", "9007199254740991", "9007199254740992", "07", "-1", "1.5", ""]
const foreigns = ["0", "1", "2", "", 0]
const tokens = ["1", "1763733691000001", "9007199254740991", "9007199254740992", "0", "007", "-1", "1.5", "x", ""]

const write = Schema.encodeUnknownSync(OwnershipText)

describe("replies of the script of acquires and releases", () => {
  it("a reply to an acquire is read completely, or refused", () => {
    const refusals = owners.flatMap((owner) =>
      tickets.flatMap((ticket) =>
        positions.flatMap((position) => foreigns.map((foreign) => [owner, ticket, position, foreign]))
      )
    )
    const stamps = [["5", "0"], ["1763733691000001", "7"], ["5", ""], ["", "5"], ["-1", "5"], ["5", "5", "5"]]
    const stamped = stamps.map((stamp) => ["@@", "1.000001", "0", "0", ...stamp])
    const others = [null, 5, [], ["@@"], ["@@", "", "0"], ["@@", "", "0", "0", "0"], ["@@", 1.5, "0", "0"], ...stamped]
    let count = 0
    for (const reply of [...refusals, ...tokens, ...others]) {
      const text = JSON.stringify(reply)
      const exit = readAcquire(reply)
      if (Exit.isFailure(exit)) continue
      count++
      const result = exit.value
      assert.deepStrictEqual<unknown>(
        result._tag === "Granted"
          ? String(result.token)
          : [
            ...[write(result.ownership), result.ticket ?? "", String(result.position), result.foreign ? "1" : "0"],
            ...(result.stamp === undefined ? [] : [String(result.stamp.micros), String(result.stamp.token)])
          ],
        reply,
        text
      )
    }
    assert.strictEqual(count, 4 * 3 * 4 * 2 + 3 + 2)
  })

  it("a reply to a release is read completely, or refused", () => {
    const queued = owners.flatMap((owner) => tickets.flatMap((ticket) => tokens.map((token) => [owner, ticket, token])))
    const others = [null, 5, [], ["@@"], ["@@", "1.000001"], ["@@", "1.000001", "7", "5", "0"], [
      "@@",
      "1.000001",
      "7",
      "5"
    ]]
    let count = 0
    for (const reply of [...owners, ...queued, ...others]) {
      const text = JSON.stringify(reply)
      const exit = readRelease(reply)
      if (Exit.isFailure(exit)) continue
      count++
      const { ownership, requeued } = exit.value
      assert.deepStrictEqual<unknown>(
        requeued === undefined ? write(ownership) : [
          write(ownership),
          requeued.ticket,
          ...(requeued.token === undefined ? [String(requeued.position)] : [String(requeued.token)]),
          ...(requeued.stamp === undefined ? [] : [String(requeued.stamp.micros), String(requeued.stamp.token)])
        ],
        reply,
        text
      )
    }
    assert.strictEqual(count, 4 + 4 * 2 * 3 + 1)
  })
})
