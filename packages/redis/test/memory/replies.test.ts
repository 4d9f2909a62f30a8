/** Replies from `acquireAndRelease.lua`: every combination of items is either decoded exactly or refused. */
import type { Stamp } from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Exit, Schema } from "effect"
import { OwnershipText } from "../../src/internal/mutex/ownership.ts"
import { readAcquire, readRelease } from "../../src/internal/mutex/replies.ts"

const owners = ["@@", "a:1@h@@16000", "a@@0", "a@@-1", "a@@05", "a@@1e3", "@a@@5", "a@@b@@5", "@@5", "a", "", 5]
const tickets = [1763733691000001, 1763733691000000, 1, 0, -1, 1.5, 9007199254740992, "1763733691.000001", ""]
const positions = [0, 7, 9007199254740991, 9007199254740992, -1, 1.5, "7", ""]
const foreigns = [0, 1, 2, "0", true]
const ages = [[0, 0], [7, -1], [-1, 1], [0, 9007199254740991], [0.5, 0], ["0", 0], [0], [], [0, 0, 0]]
const tokens = ["1", "1763733691000001", "9007199254740991", "9007199254740992", "0", "007", "-1", "1.5", "x", "", 7]

const write = Schema.encodeUnknownSync(OwnershipText)

/** Formats a ticket and a stamp like the scripts. */
const writeTicket = (ticket: string) => Number(ticket.replace(".", ""))
const writeStamp = (ticket: string, stamp: Stamp | undefined) =>
  stamp === undefined ? [] : [stamp.micros - writeTicket(ticket), stamp.micros - stamp.token]

describe("replies from `acquireAndRelease.lua`", () => {
  it("a reply to an acquire is either decoded without loss or refused", () => {
    const refusals = owners.flatMap((owner) =>
      tickets.flatMap((ticket) =>
        positions.flatMap((position) =>
          foreigns.flatMap((foreign) => ages.map((stamp) => [owner, ticket, position, foreign, ...stamp]))
        )
      )
    )
    const others = [null, 5, [], ["@@"], ["@@", 0, 0], ["@@", 0, 0, 0, 0]]
    let count = 0
    for (const reply of [...refusals, ...tokens, ...others]) {
      const exit = readAcquire(reply)
      if (Exit.isFailure(exit)) continue
      count++
      const result = exit.value
      assert.deepStrictEqual<unknown>(
        result._tag === "Granted"
          ? String(result.token)
          : [
            ...[write(result.ownership), result.ticket === undefined ? 0 : writeTicket(result.ticket)],
            ...[result.position, result.foreign ? 1 : 0],
            ...writeStamp(result.ticket ?? "", result.stamp)
          ],
        reply,
        JSON.stringify(reply)
      )
    }
    // Count the valid replies. A refusal has one of 4 owners, 3 positions and 2 flags, and either a place or neither
    // ticket nor stamp. A place has one of 3 tickets and one of 3 stamps, but ticket 1 has only 2 valid stamps, because
    // the third would make the token negative. The other 3 replies are grants.
    const places = 2 * 3 + 2
    assert.strictEqual(count, 4 * (places + 1) * 3 * 2 + 3)
  })

  it("a reply to a release is either decoded without loss or refused", () => {
    const granted = owners.flatMap((owner) =>
      tickets.flatMap((ticket) => tokens.map((token) => [owner, ticket, token]))
    )
    const queued = owners.flatMap((owner) =>
      tickets.flatMap((ticket) => positions.flatMap((position) => ages.map((age) => [owner, ticket, position, ...age])))
    )
    const others = [null, 0, 1, 5, [], ["@@"], ["@@", 1]]
    let count = 0
    for (const reply of [...owners, ...granted, ...queued, ...others]) {
      const exit = readRelease(reply)
      if (Exit.isFailure(exit)) continue
      count++
      const { requeued } = exit.value
      assert.deepStrictEqual<unknown>(
        requeued === undefined ? 1 : [
          write(requeued.ownership),
          writeTicket(requeued.ticket),
          requeued.token === undefined ? requeued.position : String(requeued.token),
          ...writeStamp(requeued.ticket, requeued.stamp)
        ],
        reply,
        JSON.stringify(reply)
      )
    }
    // Count the valid replies: done, grants, and places as above. The position "7" is also a valid token.
    assert.strictEqual(count, 1 + 4 * 3 * (3 + 1) + 4 * (2 * 3 + 2) * 3)
  })
})
