/** Tests the checker in `simulate/staleOwners.ts`, which recognizes owners' commands by their keys and arguments. */
import type { Checker, Simulation } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { staleOwnersAreRefused } from "../simulate/staleOwners.ts"

type View = Parameters<Checker.Checker["start"]>[0]

const held = "simba-consumer-c1@@e.1"

/** Returns how many violations a command causes while the current owner of "s" has the token `owner`. */
const judge = (owner: string | undefined, keys: ReadonlyArray<string>, argv: ReadonlyArray<string>, reply: unknown) => {
  const found: Array<string> = []
  const view = {
    owner: () => owner === undefined ? undefined : { id: `s#${owner}` },
    violated: (message: string) => found.push(message)
  } as unknown as View
  const args = ["EVALSHA", "sha", String(keys.length), ...keys, ...argv]
  const event = { _tag: "Command", at: 0, command: { args, reply } } as unknown as Simulation.Event
  staleOwnersAreRefused("orders" as never, ["s"]).start(view).onEvent?.(event)
  return found.length
}

const shared = ["orders-input", "failures", "announced", "dead", "simba:given:orders-input"]
const leaseKeys = ["s<MUTEX_KEY_SEP>1-0", "mutex:s", "simba:checkpoint:s", "simba:fence:s", "s"]
const ends = (owner: string | undefined, reply: unknown, ...more: ReadonlyArray<string>) =>
  judge(owner, [...shared, ...leaseKeys], ["group", "signals", "1-0", "simba-consumer-c1", held, "7", ...more], [
    reply
  ])

describe("a stale owner's command is a violation if it succeeds:", () => {
  it("a script that ends a lease or counts its failures", () => {
    assert.strictEqual(ends("7", "Done"), 0)
    assert.strictEqual(ends("8", "NotOwner"), 0)
    assert.strictEqual(ends("8", "AlreadyDone"), 0)
    assert.strictEqual(ends("8", ["error", "of another kind"]), 0)
    assert.strictEqual(ends("8", "Done"), 1)
    assert.strictEqual(ends(undefined, "Released"), 1)
    assert.strictEqual(ends("8", ["1", "0"], "1", "1000", ""), 1)
  })

  it("a commit", () => {
    const commit = (owner: string, reply: string) =>
      judge(
        owner,
        ["simba:failures:orders-input", "mutex:s", "simba:checkpoint:s", "s"],
        ["1000", `${held}@@7`, "1-0", "5-0", "", "5"],
        [reply]
      )
    assert.deepStrictEqual([commit("7", "Committed"), commit("8", "NotOwner"), commit("8", "Behind")], [0, 0, 0])
    assert.strictEqual(commit("8", "Committed"), 1)
  })

  it("a renewal, whose reply lists the leases that were not renewed", () => {
    const renew = (owner: string, reply: ReadonlyArray<unknown>) =>
      judge(
        owner,
        ["orders-input", "simba:failures:orders-input", "s<MUTEX_KEY_SEP>1-0", "mutex:s"],
        ["group", "simba-consumer-c1", "2000", "1-0", "e.1", "7", ""],
        reply
      )
    assert.deepStrictEqual([renew("7", []), renew("8", [[1, "TakenOver"]])], [0, 0])
    assert.strictEqual(renew("8", []), 1)
  })

  it("a dead letter for a message", () => {
    const bury = (owner: string, reply: string) =>
      judge(owner, ["mutex:s", "s", "dead-messages", "dead-ids"], [`${held}@@7`, "1-0", "why", "7"], reply)
    assert.deepStrictEqual([bury("7", "DeadLettered"), bury("8", "NotOwner")], [0, 0])
    assert.strictEqual(bury("8", "DeadLettered"), 1)
  })
})
