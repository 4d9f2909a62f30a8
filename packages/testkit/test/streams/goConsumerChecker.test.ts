/** Tests the checker for how long Go consumers may take to lock and finish entries, with a history for each limit. */
import { assert, describe, it } from "@effect/vitest"
import * as ownership from "../../src/streams/internal/checkers/ownership.ts"
import { type History, verdict } from "../support/handwritten.ts"
import { lock, model } from "../support/streamHistory.ts"

const key = "entry:s:1-0"

/** An entry is delivered to the Go consumer `stock-a` at 100. An effect-simba consumer takes it after `play`. */
const taken = (play: (history: History) => void, consumer = "stock-a") =>
  verdict(ownership.goConsumersHaveTime(model), lock)((history) => {
    history.send("XGROUP", "CREATE", "input", "group", "0", "MKSTREAM")
    history.wait(100)
    history.send("XADD", "input", "1-0", "stream", "s")
    history.send("XREADGROUP", "GROUP", "group", consumer, "STREAMS", "input", ">")
    play(history)
    history.send("SET", key, "ours", "PX", "2000")
  })

const goLock = (history: History, consumer = "stock-a", millis = 1000) =>
  history.sendAs("stock", "SET", key, consumer, "NX", "PX", String(millis))
const unlock = (history: History) => history.sendAs("stock", "DEL", key)
const claim = (history: History, consumer: string, ...options: ReadonlyArray<string>) =>
  history.send("XCLAIM", "input", "group", consumer, "0", "1-0", ...options)

const notLocked = (seconds: string, by = "stock-a") =>
  `c1 took 1-0 (s) from ${by}, which had not locked it in ${seconds} s`
const unlocked = (seconds: string) => `c1 took 1-0 (s) from stock-a, which unlocked it ${seconds} s earlier`

describe("a Go consumer has time", () => {
  it("to lock an entry that was never locked", () => {
    assert.strictEqual(taken((history) => history.wait(39_999)), notLocked("39.999"))
    assert.strictEqual(taken((history) => history.wait(40_000)), "")
    assert.strictEqual(taken(() => {}, "a"), "")
    // Other commands and expiries have no effect
    const meanwhile = (history: History) => {
      history.send("SET", "any", "1", "PX", "10")
      history.send("XADD", "input", "2-0", "x", "y")
      history.sendAs("c2", "GET", key)
      history.wait(1000)
    }
    assert.strictEqual(taken(meanwhile), notLocked("1.000"))
    assert.strictEqual(taken((history) => history.send("XDEL", "input", "1-0")), "")
  })

  it("to lock an entry again for the duration of a lease", () => {
    const claimed = (play: (history: History) => void) =>
      taken((history) => (claim(history, "stock-b"), play(history)), "a")
    assert.strictEqual(claimed((history) => history.wait(1999)), notLocked("1.999", "stock-b"))
    assert.strictEqual(claimed((history) => history.wait(2000)), "")
    // After a fault, a client may act on a late message
    const late = (what: (history: History, at: number) => void, ago: number) =>
      claimed((history) => (history.wait(1900), what(history, history.now - ago)))
    const disturbed = (history: History, at: number) => void (history.client().disturbedAt = at)
    const resumed = (history: History, at: number) => void (history.client().process.resumedAt = at)
    for (const what of [disturbed, resumed]) {
      assert.strictEqual(late(what, 1999), "")
      assert.strictEqual(late(what, 2000), notLocked("1.900", "stock-b"))
    }
    assert.strictEqual(taken((history) => void (history.client().disturbedAt = 100)), notLocked("0.000"))
    // A delivery without a count is the first one
    const uncounted = taken((history) => (claim(history, "stock-b", "JUSTID"), history.wait(2000)), "a")
    assert.strictEqual(uncounted, notLocked("2.000", "stock-b"))
    // The entry was locked before another consumer claimed it, and also before the next consumer did
    const twice = (millis: number) =>
      taken((history) => {
        goLock(history, "stock-a", 100)
        history.wait(300)
        claim(history, "stock-b")
        claim(history, "stock-c")
        history.wait(millis)
      })
    assert.strictEqual(twice(1999), notLocked("1.999", "stock-c"))
    assert.strictEqual(twice(2000), "")
  })

  it("until another consumer's lock has caused 32 refusals", () => {
    const refused = (times: number, command = "SET") =>
      taken((history) => {
        goLock(history, "stock-b")
        for (let i = 0; i < times; i++) {
          if (command === "SET") goLock(history)
          else history.sendAs("stock", command, key)
        }
        unlock(history)
        history.wait(1000)
      })
    assert.strictEqual(refused(32), "")
    assert.strictEqual(refused(31), notLocked("1.000"))
    assert.strictEqual(refused(40, "GET"), notLocked("1.000"))
    // Refusals of other consumers, and successful locks
    const others = taken((history) => {
      goLock(history, "stock-b")
      for (let i = 0; i < 40; i++) goLock(history, "stock-c")
      for (let i = 0; i < 40; i++) history.sendAs("stock", "SET", key, "stock-b", "PX", "500")
      history.wait(1000)
    })
    assert.strictEqual(others, notLocked("1.000"))
  })

  it("to finish an entry that it has unlocked, but not an entry whose lock has expired", () => {
    const after = (millis: number) =>
      taken((history) => (goLock(history), history.wait(500), unlock(history), history.wait(millis)))
    assert.strictEqual(after(199), unlocked("0.199"))
    assert.strictEqual(after(200), "")
    assert.strictEqual(taken((history) => (goLock(history), history.wait(1200))), "")
    // The key was deleted after it had expired
    assert.strictEqual(taken((history) => (goLock(history), history.wait(1000), unlock(history))), "")
    // The lock was renewed, so it did not expire before it was released
    const renewed = taken((history) => {
      goLock(history)
      history.wait(500)
      history.sendAs("stock", "SET", key, "stock-a", "PX", "2000")
      history.wait(1500)
      unlock(history)
      history.wait(50)
    })
    assert.strictEqual(renewed, unlocked("0.050"))
    // A lock that has expired does not count, even if it is restored
    const restored = taken((history) => {
      goLock(history)
      history.wait(1200)
      goLock(history)
      unlock(history)
    })
    assert.strictEqual(restored, "")
    // Announcing again does not restart the time to lock
    const announced = taken((history) => {
      goLock(history)
      history.send("XADD", "input", "2-0", "x", "y")
      history.wait(1200)
    })
    assert.strictEqual(announced, "")
    // The lock already existed when the entry was claimed
    const early = taken((history) => {
      goLock(history, "stock-b")
      claim(history, "stock-b")
      history.wait(1200)
    })
    assert.strictEqual(early, "")
  })

  it("unless data was lost or the server's clock was stepped after the delivery", () => {
    for (const what of ["lossAt", "serverStepAt"] as const) {
      const since = (at: number) => taken((history) => void (history.state[what] = at))
      assert.strictEqual(since(100), "")
      assert.strictEqual(since(99), notLocked("0.000"))
    }
  })
})
