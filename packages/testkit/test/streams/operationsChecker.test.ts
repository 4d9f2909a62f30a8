/** Tests the checkers for what operators and producers do, with a hand-written history for each kind of violation. */
import { assert, describe, it } from "@effect/vitest"
import * as operations from "../../src/streams/internal/checkers/operations.ts"
import { type History, verdict } from "../support/handwritten.ts"
import { lock, model as plain } from "../support/streamHistory.ts"

const model = {
  ...plain,
  sought: (args: ReadonlyArray<string>) => args[0] === "SET" && args[3] === "XX" ? "s" : undefined,
  trimmed: (args: ReadonlyArray<string>) => args[0] === "XTRIM" ? args[1] : undefined,
  paused: "paused"
}

const write = (history: History, ...ids: ReadonlyArray<string>) => {
  for (const id of ids) history.send("XADD", "s", id, "n", "1")
}
const commit = (history: History, id: string) => history.send("SET", "checkpoint:s", id)
const seek = (history: History, id: string) => history.send("SET", "checkpoint:s", id, "XX")
const kept = (history: History, message: string) => history.note("kept", { resource: "s", message })

describe("a history with operators is correct if", () => {
  it("a message is dead-lettered once, after all attempts, unless data was lost", () => {
    const dead = (attempts: number, letters: number, lossAt = -Infinity) =>
      verdict(operations.deadMessagesAreEarned(model, 2), lock)((history) => {
        history.state.lossAt = lossAt
        for (let i = 0; i < attempts; i++) history.note("tried", { resource: "s", id: "s#1", message: "1-0" })
        for (let i = 0; i < letters; i++) history.send("XADD", "dead:s", "*", "id", "1-0")
      })
    assert.strictEqual(dead(2, 1), "")
    assert.strictEqual(dead(1, 1), "1-0 in s is a dead letter after only 1 of 2 attempts")
    assert.strictEqual(dead(0, 1), "1-0 in s is a dead letter after only 0 of 2 attempts")
    assert.strictEqual(dead(2, 2), "1-0 in s became a dead letter twice")
    assert.strictEqual(dead(0, 2, 0), "")
    assert.strictEqual(dead(2, 2, -1), "1-0 in s became a dead letter twice")
  })

  it("no work starts on a paused data stream, except shortly after the pause or after a fault that affects the consumer", () => {
    const begun = (play: (history: History) => void) =>
      verdict(operations.pausedRest(model, 1000), lock)((history) => {
        history.wait(5000)
        play(history)
        history.note("begin", { resource: "s", id: "s#1" })
      })
    const found = "s#1 started although s is paused"
    const pause = (history: History) => history.send("HSET", "paused", "s", "1")
    assert.strictEqual(begun((history) => (pause(history), history.wait(1000))), "")
    assert.strictEqual(begun((history) => (pause(history), history.wait(1001))), found)
    // A second pause does not count
    assert.strictEqual(
      begun((history) => (pause(history), history.wait(600), pause(history), history.wait(600))),
      found
    )
    const disturbed = (at: number) =>
      begun((history) => {
        pause(history)
        history.wait(5000)
        history.client().disturbedAt = at
      })
    assert.strictEqual(disturbed(9000), "")
    assert.strictEqual(disturbed(8999), found)
    // A fault may have undone the pause without a command
    const undone = (isReported: boolean) =>
      begun((history) => {
        pause(history)
        history.wait(600)
        history.lose("DEL", "paused")
        if (isReported) history.fault("failover", "server")
        else history.note("any")
        history.wait(600)
      })
    assert.strictEqual(undone(true), "")
    assert.strictEqual(undone(false), found)
  })

  it("every missing message is reported once, and no others", () => {
    const gaps = (play: (history: History) => void, lossAt = -Infinity) =>
      verdict(operations.gapsAreReported(model), lock)((history) => {
        history.state.lossAt = lossAt
        write(history, "1-0", "2-0", "2-1", "3-0", "4-0", "5-0")
        play(history)
        history.converge()
      })
    const missing = (...ids: ReadonlyArray<string>) =>
      ids.map((id) => `${id} in s was deleted before it was read, but no gap is reported`).join("\n")
    const remove = (history: History, ...ids: ReadonlyArray<string>) => history.send("XDEL", "s", ...ids)
    const gap = (history: History, after: string, until: string, missed: number, reason = "Deleted") =>
      history.note("gap", { resource: "s", id: "s#1", after, until, reason, missed })
    const removed = (play: (history: History) => void, lossAt?: number) =>
      gaps((history) => {
        commit(history, "1-0")
        remove(history, "2-0", "2-1", "3-0")
        play(history)
        commit(history, "4-0")
      }, lossAt)
    assert.strictEqual(removed(() => {}), missing("2-0", "2-1", "3-0"))
    assert.strictEqual(removed(() => {}, 0), "")
    assert.strictEqual(removed(() => {}, -1), missing("2-0", "2-1", "3-0"))
    assert.strictEqual(removed((history) => gap(history, "1-0", "3-0", 3)), "")
    assert.strictEqual(removed((history) => gap(history, "1-0", "2-1", 2)), missing("3-0"))
    assert.strictEqual(removed((history) => gap(history, "1-0", "2-0", 1)), missing("2-1", "3-0"))
    assert.strictEqual(removed((history) => gap(history, "2-0", "3-0", 2)), missing("2-0"))
    assert.strictEqual(removed((history) => gap(history, "1-0", "3-0", 3, "Lost")), missing("2-0", "2-1", "3-0"))
    // An earlier owner passed the messages before the gap, as many as are counted
    assert.strictEqual(removed((history) => gap(history, "2-1", "3-0", 2)), missing("2-1"))
    assert.strictEqual(removed((history) => gap(history, "3-0", "4-0", 2)), missing("3-0"))
    assert.strictEqual(removed((history) => gap(history, "2-0", "2-1", 3)), missing("3-0"))
    const more = "4 messages in s are reported as missing, but 3 were deleted"
    assert.strictEqual(removed((history) => gap(history, "1-0", "3-0", 4)), more)
    assert.strictEqual(removed((history) => gap(history, "1-0", "3-0", 4), 0), "")
    // The checkpoint is the position, and the last committed message has been read
    assert.strictEqual(gaps((history) => (commit(history, "2-0"), remove(history, "2-0"), commit(history, "3-0"))), "")
    assert.strictEqual(
      gaps((history) => (commit(history, "2-0"), remove(history, "2-1"), commit(history, "2-1"))),
      missing("2-1")
    )
    assert.strictEqual(gaps((history) => (kept(history, "2-0"), remove(history, "2-0"), commit(history, "3-0"))), "")
    assert.strictEqual(gaps((history) => (remove(history, "2-0"), kept(history, "2-0"))), missing("2-0"))
  })

  it("a seek skips messages that were deleted before its target or before the first remaining message", () => {
    const sought = (removed: ReadonlyArray<string>, to: string) =>
      verdict(operations.gapsAreReported(model), lock)((history) => {
        write(history, "1-0", "2-0", "2-1", "3-0")
        commit(history, "0-1")
        history.send("XDEL", "s", ...removed)
        seek(history, to)
        commit(history, "9-0")
        history.converge()
      })
    const missing = (id: string) => `${id} in s was deleted before it was read, but no gap is reported`
    assert.strictEqual(sought(["2-0"], "2-0"), "")
    assert.strictEqual(sought(["2-0", "2-1"], "2-0"), missing("2-1"))
    assert.strictEqual(sought(["2-1"], "1-0"), missing("2-1"))
    assert.strictEqual(sought(["1-0", "2-0"], "0-1"), "")
    assert.strictEqual(sought(["1-0", "2-0", "2-1", "3-0"], "0-1"), "")
  })

  it("trimmed messages that were read are not reported as a gap", () => {
    const trimmed = (upTo: string) =>
      verdict(operations.gapsAreReported(model), lock)((history) => {
        write(history, "1-0", "2-0", "3-0")
        history.send("XDEL", "s", "1-0")
        commit(history, upTo)
        history.send("XTRIM", "s", "MINID", "2-0")
        commit(history, "3-0")
        history.converge()
      })
    assert.strictEqual(trimmed("1-0"), "")
    assert.strictEqual(trimmed("0-1"), "1-0 in s was deleted before it was read, but no gap is reported")
  })
})
