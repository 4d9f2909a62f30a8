/**
 * Tests the checkers for checkpoints, messages and announcements, with a hand-written history for each kind of
 * violation.
 */
import { assert, describe, it } from "@effect/vitest"
import * as progress from "../../src/streams/internal/checkers/progress.ts"
import { type History, verdict } from "../support/handwritten.ts"
import { lock, model as plain } from "../support/streamHistory.ts"

const model = {
  ...plain,
  sought: (args: ReadonlyArray<string>) => args[0] === "SET" && args[3] === "XX" ? "s" : undefined
}

const write = (history: History, ...ids: ReadonlyArray<string>) => {
  for (const id of ids) history.send("XADD", "s", id, "n", "1")
}
const commit = (history: History, id: string) => history.send("SET", "checkpoint:s", id)
const seek = (history: History, id: string) => history.send("SET", "checkpoint:s", id, "XX")
const processed = (history: History, ...messages: ReadonlyArray<string>) => {
  for (const message of messages) history.note("processed", { resource: "s", id: "s#1", message })
}
const kept = (history: History, message: string) => history.note("kept", { resource: "s", message })

describe("checkpoints advance only past processed messages", () => {
  const checkpoints = (play: (history: History) => void) =>
    verdict(progress.checkpointsGrow(model), lock)((history) => {
      history.wait(100)
      write(history, "1-0", "1-1", "2-0", "3-0")
      play(history)
    })
  const skipped = (id: string, message: string) => `s is committed up to ${id}, and ${message} was not processed`
  const back = (from: string, to: string) => `the checkpoint of s went from ${from} back to ${to}`

  it("finds skipped messages, even within a millisecond", () => {
    const all = (history: History) => processed(history, "1-0", "1-1", "2-0")
    assert.strictEqual(checkpoints((history) => (all(history), commit(history, "2-0"))), "")
    assert.strictEqual(
      checkpoints((history) => (processed(history, "1-0", "2-0"), commit(history, "2-0"))),
      skipped("2-0", "1-1")
    )
    assert.strictEqual(checkpoints((history) => (processed(history, "1-0"), commit(history, "1-0"))), "")
    assert.strictEqual(checkpoints((history) => commit(history, "1-0")), skipped("1-0", "1-0"))
    assert.strictEqual(
      checkpoints((history) => (all(history), commit(history, "2-0"), commit(history, "3-0"))),
      skipped("3-0", "3-0")
    )
    assert.strictEqual(
      checkpoints((history) => (all(history), commit(history, "2-0"), history.send("DEL", "checkpoint:s"))),
      ""
    )
  })

  it("finds a checkpoint that moves back, and keeps external checkpoints separate", () => {
    const all = (history: History) => processed(history, "1-0", "1-1", "2-0")
    assert.strictEqual(
      checkpoints((history) => (all(history), commit(history, "2-0"), commit(history, "1-1"))),
      back("2-0", "1-1")
    )
    assert.strictEqual(checkpoints((history) => (all(history), kept(history, "2-0"), commit(history, "1-1"))), "")
    assert.strictEqual(
      checkpoints((history) => (all(history), kept(history, "2-0"), kept(history, "1-0"))),
      back("2-0", "1-0")
    )
    assert.strictEqual(
      checkpoints((history) => (all(history), commit(history, "1-1"), kept(history, "2-0"), commit(history, "2-0"))),
      ""
    )
  })

  it("excuses data loss since the last commit, because the client may know of a commit that the server has lost", () => {
    const lost = (at: number) =>
      checkpoints((history) => {
        processed(history, "1-0", "1-1", "2-0")
        commit(history, "2-0")
        history.wait(100)
        history.state.lossAt = at
        commit(history, "1-0")
        history.wait(100)
        // Only messages after 2-0 must be processed from here on
        processed(history, "3-0")
        commit(history, "3-0")
      })
    assert.strictEqual(lost(150), "")
    assert.strictEqual(lost(100), "")
    assert.strictEqual(lost(99), back("2-0", "1-0"))
    const first = (at: number) => checkpoints((history) => (history.state.lossAt = at, commit(history, "2-0")))
    assert.strictEqual(first(0), "")
    assert.strictEqual(first(-1), skipped("2-0", "1-0"))
    const next = (message: string) =>
      checkpoints((history) => {
        history.state.lossAt = 99
        commit(history, "2-0")
        history.wait(100)
        processed(history, message)
        commit(history, "3-0")
      })
    assert.strictEqual(next("3-0"), "")
    assert.strictEqual(next("2-0"), skipped("3-0", "3-0"))
    // Reading has started over from the beginning
    const reread = (at: number) =>
      checkpoints((history) => {
        history.state.lossAt = at
        processed(history, "1-0", "1-1", "2-0")
        commit(history, "2-0")
        commit(history, "0-0")
      })
    assert.strictEqual(reread(0), "")
    assert.strictEqual(reread(-1), back("2-0", "0-0"))
  })

  it("expects messages after the target of a seek again, and no others", () => {
    const sought = (to: string, ...later: ReadonlyArray<string>) =>
      checkpoints((history) => {
        processed(history, "1-0", "1-1", "2-0")
        commit(history, "2-0")
        seek(history, to)
        processed(history, ...later)
        commit(history, "2-0")
      })
    assert.strictEqual(sought("1-0", "2-0"), skipped("2-0", "1-1"))
    assert.strictEqual(sought("1-0", "1-1", "2-0"), "")
    assert.strictEqual(sought("1-1", "2-0"), "")
  })
})

describe("messages come in order", () => {
  const order = (play: (history: History) => void) =>
    verdict(progress.messagesInOrder(model), lock)((history) => {
      history.wait(100)
      write(history, "1-0", "2-0", "3-0", "4-0")
      play(history)
    })
  const begin = (history: History) => history.note("begin", { resource: "s", id: "s#1" })

  it("finds messages that are processed before work has started, skipped, or processed twice", () => {
    assert.strictEqual(order((history) => processed(history, "1-0")), "s#1 processed 1-0 before it started")
    assert.strictEqual(
      order((history) => (begin(history), processed(history, "1-0", "3-0"))),
      "s#1 processed 3-0, and skipped 2-0"
    )
    assert.strictEqual(
      order((history) => (begin(history), processed(history, "1-0", "1-0"))),
      "s#1 processed 1-0 again, after 1-0"
    )
    assert.strictEqual(order((history) => (begin(history), processed(history, "1-0", "2-0", "3-0"))), "")
  })

  it("continues after a checkpoint only if it moved before the first message", () => {
    assert.strictEqual(order((history) => (begin(history), commit(history, "2-0"), processed(history, "3-0"))), "")
    assert.strictEqual(
      order((
        history
      ) => (begin(history), processed(history, "1-0"), commit(history, "2-0"), processed(history, "3-0"))),
      "s#1 processed 3-0, and skipped 2-0"
    )
    // The position in an external system takes precedence if it is ahead
    assert.strictEqual(
      order((history) => (commit(history, "1-0"), kept(history, "2-0"), begin(history), processed(history, "3-0"))),
      ""
    )
    assert.strictEqual(
      order((history) => (kept(history, "1-0"), commit(history, "2-0"), begin(history), processed(history, "3-0"))),
      ""
    )
  })

  it("excuses data loss or a seek since the work started", () => {
    const since = (lossAt: number) =>
      order((history) => {
        begin(history)
        history.state.lossAt = lossAt
        processed(history, "2-0")
      })
    assert.strictEqual(since(100), "")
    assert.strictEqual(since(99), "s#1 processed 2-0, and skipped 1-0")
    const sought = (pause: number) =>
      order((history) => {
        commit(history, "1-0")
        seek(history, "0-0")
        history.wait(pause)
        begin(history)
        processed(history, "2-0")
      })
    assert.strictEqual(sought(0), "")
    assert.strictEqual(sought(1), "s#1 processed 2-0, and skipped 1-0")
  })

  it("expects all messages again if data was lost and the checkpoint is at the beginning", () => {
    const reread = (lossAt: number, id: string, ...messages: ReadonlyArray<string>) =>
      order((history) => {
        history.state.lossAt = lossAt
        begin(history)
        processed(history, "1-0", "2-0")
        commit(history, id)
        processed(history, ...messages)
      })
    assert.strictEqual(reread(0, "0-0", "1-0", "2-0"), "")
    assert.strictEqual(reread(0, "0-0", "3-0"), "s#1 processed 3-0, and skipped 1-0")
    assert.strictEqual(reread(0, "2-0", "1-0"), "s#1 processed 1-0 again, after 2-0")
    assert.strictEqual(reread(-1, "0-0", "1-0"), "s#1 processed 1-0 again, after 2-0")
  })
})

describe("nothing is forgotten", () => {
  const forgotten = (play: (history: History) => void) => {
    let hasConverged = true
    const text = verdict(progress.nothingIsForgotten(plain), lock)((history) => {
      history.send("XGROUP", "CREATE", "input", "group", "0", "MKSTREAM")
      history.wait(100)
      write(history, "2-0")
      history.send("XADD", "input", "1-0", "stream", "s")
      history.note("expects", { resource: "s", message: "2-0" })
      history.note("announced", { resource: "s" })
      history.send("XREADGROUP", "GROUP", "group", "a", "STREAMS", "input", ">")
      play(history)
      hasConverged = history.converge()
    })
    assert.strictEqual(hasConverged, text === "" || text.includes("is gone") && !text.includes("finished"))
    return text
  }
  const finish = (history: History, client = "c1") => {
    history.sendAs(client, "XACK", "input", "group", "1-0")
    history.sendAs(client, "XDEL", "input", "1-0")
  }
  const never = "s was never finished"
  const gone = (upTo: string) => `1-0 (s) is gone, but was only committed up to ${upTo}`

  it("finds announcements that are gone or left even though their data stream has not reached its end", () => {
    assert.strictEqual(forgotten(() => {}), `1-0 (s) is not finished\n${never}`)
    assert.strictEqual(forgotten((history) => (commit(history, "1-9"), finish(history))), `${gone("1-9")}\n${never}`)
    assert.strictEqual(forgotten((history) => (commit(history, "2-0"), finish(history))), "")
    assert.strictEqual(forgotten((history) => (commit(history, "2-5"), finish(history))), "")
    assert.strictEqual(forgotten((history) => commit(history, "2-0")), "1-0 (s) is not finished")
    assert.strictEqual(
      forgotten((history) => (commit(history, "2-0"), history.send("XACK", "input", "group", "1-0"))),
      ""
    )
    assert.strictEqual(
      forgotten((history) => {
        commit(history, "2-0")
        finish(history)
        history.note("expects", { resource: "t", message: "5-0" })
      }),
      "t was never finished"
    )
  })

  it("accepts announcements that Go consumers finish or acknowledge, and dead letters until they are redriven", () => {
    assert.strictEqual(forgotten((history) => finish(history, "stock")), "")
    const acknowledged = (client: string) =>
      forgotten((history) => {
        history.sendAs(client, "XACK", "input", "group", "1-0")
        history.send("XDEL", "input", "1-0")
      })
    assert.strictEqual(acknowledged("stock"), "")
    assert.strictEqual(acknowledged("c1"), `${gone("its beginning")}\n${never}`)
    assert.strictEqual(
      forgotten((history) => {
        history.sendAs("stock", "XLEN", "input")
        finish(history)
      }),
      `${gone("its beginning")}\n${never}`
    )
    const buried = (isRedriven: boolean) =>
      forgotten((history) => {
        history.send("XADD", "dead", "5-0", "id", "1-0", "stream", "s")
        history.send("XDEL", "input", "9-9")
        if (isRedriven) history.send("XDEL", "dead", "5-0")
        finish(history)
      })
    assert.strictEqual(buried(false), "")
    assert.strictEqual(buried(true), `${gone("its beginning")}\n${never}`)
  })

  it("excuses an announcement that was lost with the server's data, but still expects its data stream to be finished", () => {
    const lost = (at: number, upTo = "1-9") =>
      forgotten((history) => {
        commit(history, upTo)
        history.state.lossAt = at
        finish(history)
      })
    assert.strictEqual(lost(100), never)
    assert.strictEqual(lost(99), `${gone("1-9")}\n${never}`)
    assert.strictEqual(lost(100, "2-0"), "")
  })

  it("accepts a data stream that was deleted after its end", () => {
    const deleted = (id: string) =>
      forgotten((history) => {
        commit(history, id)
        commit(history, "0-5")
        history.send("DEL", "s")
        finish(history)
      })
    assert.strictEqual(deleted("2-0"), "")
    assert.strictEqual(deleted("1-9"), `${gone("0-5")}\n${never}`)
  })
})
