/**
 * Tests the checkers for failures, dead letters and dead consumers, with a hand-written history for each kind of
 * violation.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fleet from "../../src/streams/internal/checkers/fleet.ts"
import { type History, verdict } from "../support/handwritten.ts"
import { lock, model } from "../support/streamHistory.ts"

describe("dead letters are justified", () => {
  const failures = verdict(fleet.deadLettersAreEarned(model, 2), {
    ...lock,
    released: (args) => args[0] === "DEL" && args.length === 3 ? { resource: "s", id: `s#${args[2]}` } : undefined
  })
  const begin = (history: History) => {
    history.wait(100)
    history.send("XADD", "input", "1-0", "stream", "s")
    history.send("XADD", "input", "9-0", "stream", "t")
  }
  const fail = (history: History, entry = "1-0") => history.note("failed", { resource: "s", entry })
  const script = (text: string) => (history: History) => history.send("EVAL", text, "2", "input", "failures", "1-0")
  const setCount = (count: number) => script(`redis.call('HSET', KEYS[2], ARGV[1], '${count}|x')`)
  const clear = script("redis.call('HDEL', KEYS[2], ARGV[1])")
  const found = "1-0 (s) has a failure count of 1, but only 0 happened"

  it("finds a count that a command sets, even if it is removed afterwards", () => {
    const counted = (play: (history: History) => void) => failures((history) => (begin(history), play(history)))
    assert.strictEqual(counted((history) => (setCount(1)(history), history.note("any"), clear(history))), found)
    assert.strictEqual(counted((history) => (fail(history), setCount(1)(history), history.wait(2000))), "")
    assert.match(
      counted((history) => (fail(history), setCount(2)(history), history.note("any"))),
      /count of 2, but only 1/
    )
    assert.match(counted((history) => (fail(history, "9-0"), setCount(1)(history), history.note("any"))), /count of 1/)
    // Fields of other kinds
    assert.strictEqual(counted((history) => (history.send("HSET", "failures", "a:b", "5"), history.wait(2000))), "")
    // Checks once a second find counts that no command has named
    const unnamed = (millis: number) =>
      counted((history) => (history.send("HSET", "failures", "1-0", "1|x"), history.wait(millis)))
    assert.strictEqual(unnamed(899), "")
    assert.strictEqual(unnamed(900), found)
  })

  it("counts leases that expire, but not leases that are granted or ended by their owners", () => {
    const counted = (play: (history: History) => void) =>
      failures((history) => {
        begin(history)
        play(history)
        setCount(1)(history)
        history.note("any")
      })
    const own = (history: History) => history.send("SET", "owner:s", "1", "PX", "1000")
    assert.strictEqual(counted((history) => (own(history), history.wait(1200))), "")
    assert.strictEqual(counted(own), found)
    assert.strictEqual(counted((history) => (own(history), history.send("DEL", "owner:s", "1"))), found)
    assert.strictEqual(counted((history) => (own(history), history.send("DEL", "owner:s", "2"))), "")
  })

  it("finds early dead letters and failures that survive a commit, unless data was lost", () => {
    const bury = (history: History) => {
      history.send("XADD", "dead", "*", "id", "1-0", "stream", "s")
      history.send("XLEN", "input")
      history.note("any")
    }
    const buried = (play: (history: History) => void) =>
      failures((history) => {
        begin(history)
        play(history)
        bury(history)
      })
    assert.strictEqual(buried(fail), "1-0 (s) is a dead letter after only 1 of 2 failures")
    assert.strictEqual(buried((history) => (fail(history), fail(history))), "")
    assert.strictEqual(buried((history) => void (history.state.lossAt = 0)), "")
    assert.strictEqual(
      failures((history) => {
        begin(history)
        history.state.lossAt = 0
        setCount(5)(history)
        history.wait(2000)
      }),
      ""
    )
  })

  it("finds a count that a commit did not reset", () => {
    const commit = (history: History, id: string, ...entries: ReadonlyArray<string>) =>
      history.send("EVAL", "redis.call('SET', KEYS[1], ARGV[1])", "1", "checkpoint:s", id, ...entries)
    const committed = (play: (history: History) => void) =>
      failures((history) => {
        begin(history)
        history.send("XADD", "input", "2-0", "stream", "s")
        history.send("XLEN", "input")
        history.note("any")
        fail(history)
        history.note("failed", { resource: "t", entry: "9-0" })
        commit(history, "2-0", "1-0")
        history.send("HSET", "failures", "1-0", "1|x", "9-0", "1|x")
        play(history)
      })
    const kept = "1-0 (s) has a failure count of 1 after a commit of 3-0"
    assert.strictEqual(committed((history) => commit(history, "3-0", "1-0")), kept)
    assert.match(committed((history) => commit(history, "2-1", "1-0")), /after a commit of 2-1$/)
    assert.strictEqual(committed((history) => commit(history, "3-0", "2-0", "9-0")), "")
    assert.strictEqual(committed((history) => commit(history, "2-0", "1-0")), "")
    assert.strictEqual(committed((history) => commit(history, "1-0", "1-0")), "")
    assert.strictEqual(committed((history) => history.send("DEL", "checkpoint:s", "1-0")), "")
    assert.strictEqual(committed((history) => (history.state.lossAt = 0, commit(history, "3-0", "1-0"))), "")
  })
})

describe("consumers are reaped", () => {
  const reaped = (play: (history: History) => void) => {
    let hasConverged = true
    const text = verdict(fleet.consumersAreReaped(model, 4000), lock)((history) => {
      history.send("XGROUP", "CREATE", "input", "group", "0", "MKSTREAM")
      for (const name of ["a", "b"]) history.send("XGROUP", "CREATECONSUMER", "input", "group", name)
      history.note("joined", { consumer: "a", capacity: 1 })
      history.note("joined", { consumer: "b", capacity: 1 }, "c2")
      history.wait(9500)
      play(history)
      hasConverged = history.converge()
    })
    return { hasConverged, text }
  }
  const found = { hasConverged: false, text: "b is still a consumer, although no process uses this name" }
  const none = { hasConverged: true, text: "" }
  const leave = (history: History) => history.note("left", {}, "c2")
  const remove = (history: History) => history.send("XGROUP", "DELCONSUMER", "input", "group", "b")

  it("finds a consumer without a process by checking every second", () => {
    const after = (end: (history: History) => void, millis: number) =>
      reaped((history) => {
        history.enter("liveness")
        end(history)
        history.wait(millis)
        remove(history)
      })
    const ends = [
      leave,
      (history: History) => history.fault("kill", "c2"),
      (history: History) => history.note("crashed", {}, "c2")
    ]
    for (const end of ends) {
      // The first check that finds it is at 10 s, and the first check at which it is late is at 15 s
      assert.deepStrictEqual(after(end, 5499), none)
      assert.strictEqual(after(end, 5500).text, found.text)
    }
    const others = [
      (history: History) => history.fault("pause", "c2"),
      (history: History) => history.note("left", {}, "c3"),
      (history: History) => history.note("any", {}, "c2")
    ]
    for (const end of others) assert.deepStrictEqual(after(end, 20_000), none)
  })

  it("measures from the end of the faults, and from the consumer's last command and last pending entry", () => {
    const faults = (millis: number) =>
      reaped((history) => {
        leave(history)
        history.wait(20_500)
        history.enter("liveness")
        history.wait(millis)
        remove(history)
      })
    assert.deepStrictEqual(faults(4000), none)
    assert.strictEqual(faults(5000).text, found.text)
    const pending = (millis: number) =>
      reaped((history) => {
        history.send("XADD", "input", "1-0", "stream", "s")
        history.send("XREADGROUP", "GROUP", "group", "b", "STREAMS", "input", ">")
        history.enter("liveness")
        leave(history)
        history.wait(20_000)
        history.send("XACK", "input", "group", "1-0")
        history.wait(millis)
        remove(history)
      })
    assert.deepStrictEqual(pending(3500), none)
    assert.strictEqual(pending(4500).text, found.text)
    // A Go consumer sends commands under a name that no process has announced
    const used = (millis: number) =>
      reaped((history) => {
        history.enter("liveness")
        leave(history)
        history.wait(3000)
        history.send("XREADGROUP", "GROUP", "group", "b", "STREAMS", "input", ">")
        history.wait(millis)
        remove(history)
      })
    assert.deepStrictEqual(used(3500), none)
    assert.strictEqual(used(4500).text, found.text)
  })

  it("has not converged while such a consumer exists, and reports it at the end if it is late", () => {
    assert.deepStrictEqual(reaped(leave), { hasConverged: false, text: "" })
    assert.deepStrictEqual(reaped(() => {}), none)
    assert.deepStrictEqual(reaped((history) => (leave(history), remove(history))), none)
    const waited = (millis: number) => reaped((history) => (leave(history), history.wait(millis)))
    assert.deepStrictEqual(waited(4500), { hasConverged: false, text: "" })
    assert.deepStrictEqual(waited(4501), found)
  })
})
