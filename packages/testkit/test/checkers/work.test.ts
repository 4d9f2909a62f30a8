/** Tests the checkers for protected work and fenced writes, with a hand-written history for each kind of violation. */
import { Checker } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { type History, lock, take, verdict } from "../support/handwritten.ts"

describe("work never overlaps", () => {
  const note = (history: History, kind: string, id: string, client = "c1", resource = "m") =>
    history.note(kind, { resource, id }, client)
  const found = "b starts work on m while a has worked on it since 0.100 s"

  /** Work by `a` starts at 100 in `c1`, and work by `b` at 500 in `c2`. */
  const overlap = (
    between: (history: History) => void = () => {},
    resource = "m",
    after: (history: History) => void = () => {}
  ) =>
    verdict(Checker.rules.workNeverOverlaps, lock)((history) => {
      history.wait(100)
      take(history, "a")
      note(history, "begin", "a")
      history.wait(400)
      between(history)
      note(history, "begin", "b", "c2", resource)
      after(history)
    })

  it("finds work that starts while other work is running", () => {
    assert.strictEqual(overlap(), found)
    const step = (history: History) => note(history, "step", "a")
    assert.strictEqual(overlap(step), "")
    assert.strictEqual(overlap(step, "m", step), found)
    assert.strictEqual(overlap((history) => note(history, "end", "c")), found)
    assert.strictEqual(overlap((history) => note(history, "end", "a", "c1", "n")), found)
    assert.strictEqual(overlap(() => {}, "n"), "")
    assert.strictEqual(overlap((history) => note(history, "stopped", "a")), "")
    assert.strictEqual(overlap((history) => note(history, "end", "a")), "")
  })

  it("finds work that is not interrupted, even if it does not take any more steps", () => {
    const continued = (millis: number, before: (history: History) => void = () => {}) =>
      overlap((history) => note(history, "step", "a"), "m", (history) => {
        before(history)
        history.wait(millis)
      })
    assert.strictEqual(continued(5499), "")
    assert.strictEqual(continued(5500), found)
    assert.strictEqual(continued(5500, (history) => note(history, "stopped", "a")), "")
    assert.strictEqual(continued(5500, (history) => (history.client().process.state = "paused")), "")
    assert.strictEqual(continued(5500, (history) => (history.client().process.resumedAt = 1000)), "")
    assert.strictEqual(continued(6500, (history) => (history.client().process.resumedAt = 1000)), found)
  })

  it("ignores processes that were killed, have failed, or are not running", () => {
    assert.strictEqual(overlap((history) => history.fault("kill")), "")
    assert.strictEqual(overlap((history) => history.note("crashed")), "")
    assert.strictEqual(overlap((history) => history.note("crashed", {}, "c2")), found)
    assert.strictEqual(overlap((history) => history.fault("kill", "c2")), found)
    assert.strictEqual(overlap((history) => history.fault("pause")), found)
    assert.strictEqual(overlap((history) => (history.client().process.state = "paused")), "")
    assert.strictEqual(overlap((history) => (history.client("c2").process.state = "paused")), found)
  })

  it("excuses both owners after a pause, and for longer after a suspension", () => {
    for (const name of ["c1", "c2"]) {
      const paused = (ago: number, wasSuspended: boolean) =>
        overlap((history) =>
          void Object.assign(history.client(name).process, { resumedAt: history.now - ago, wasSuspended })
        )
      assert.strictEqual(paused(1, false), "")
      assert.strictEqual(paused(2, false), found)
      assert.strictEqual(paused(1101, true), "")
      assert.strictEqual(paused(1102, true), found)
    }
  })

  it("excuses an owner whose data was lost", () => {
    const lost = (at: number) => overlap((history) => void (history.state.lossAt = at))
    assert.strictEqual(lost(100), "")
    // Any loss excuses `b`, because that id was never granted the mutex
    assert.strictEqual(lost(0), "")
    const granted = (at: number) =>
      overlap((history) => {
        history.wait(1000)
        take(history, "b", 1000, "c2")
        history.state.lossAt = at
      })
    assert.strictEqual(granted(100), "")
    assert.strictEqual(granted(99), found)
  })
})

describe("writes are fenced", () => {
  const fenced = verdict(Checker.rules.writesAreFenced, lock)
  const stale = "a write of a was stale for m, although its lease was valid when it was sent"

  it("finds a smaller token in Redis unless the larger one was lost", () => {
    const tokens = (first: string, second: string, lossAt = -Infinity) =>
      fenced((history) => {
        history.wait(100)
        history.send("SET", "fenced:m", first)
        history.wait(100)
        history.send("SET", "fenced:m", first)
        history.state.lossAt = lossAt
        history.send("SET", "fenced:m", second)
      })
    const found = "m accepted a write with token 4 after one with 5"
    assert.strictEqual(tokens("5", "4"), found)
    assert.strictEqual(tokens("5", "5"), "")
    assert.strictEqual(tokens("5", "6"), "")
    assert.strictEqual(tokens("5", "none"), "")
    const unreadable = fenced((history) =>
      ["5", "none", "4"].forEach((token) => history.send("SET", "fenced:m", token))
    )
    assert.strictEqual(unreadable, found)
    assert.strictEqual(tokens("5", "4", 100), "")
    assert.strictEqual(tokens("5", "4", 99), found)
    assert.strictEqual(
      fenced((history) => (history.send("SET", "fenced:m", "5"), history.send("SET", "fenced:n", "4"))),
      ""
    )
    // After the loss, the smaller token counts
    assert.strictEqual(
      fenced((history) => {
        history.send("SET", "fenced:m", "5")
        history.state.lossAt = 0
        history.send("SET", "fenced:m", "3")
        history.wait(1)
        history.send("SET", "fenced:m", "4")
        history.send("SET", "fenced:m", "3")
      }),
      "m accepted a write with token 3 after one with 4"
    )
  })

  const written = (history: History, token: number, accepted: number, write = 1) =>
    history.note("written", { resource: "m", id: "a", write, token, accepted })

  it("finds a smaller token that an external resource accepts", () => {
    const tokens = (...tokens: ReadonlyArray<number>) =>
      fenced((history) => tokens.forEach((token) => written(history, token, 1)))
    assert.strictEqual(tokens(4, 5, 5), "")
    assert.strictEqual(tokens(5, 4, 5), "the resource m accepted a write with token 4 after one with 5")
    assert.match(tokens(5, 4, 4), /4 after one with 5\n.* 4 after one with 5$/)
  })

  /** `a` owns the mutex from 100 and sends a write at 200, after `before`. The write is rejected at 300. */
  const refused = (before: (history: History) => void, after: (history: History) => void = () => {}) =>
    fenced((history) => {
      history.wait(100)
      take(history, "a")
      history.wait(100)
      before(history)
      history.note("writing", { resource: "m", id: "a", write: 1 })
      history.wait(100)
      after(history)
      written(history, 5, 0)
    })

  it("finds a rejected write whose owner held the lease when sending it", () => {
    assert.strictEqual(refused(() => {}), stale)
    assert.strictEqual(refused(() => {}, (history) => history.send("DEL", "owner:m", "a")), stale)
    assert.strictEqual(refused((history) => history.send("DEL", "owner:m", "a")), "")
    assert.strictEqual(refused((history) => history.wait(1500)), "")
    assert.strictEqual(fenced((history) => (take(history, "a"), written(history, 5, 0))), "")
    assert.strictEqual(fenced((history) => (take(history, "a"), history.note("any"), written(history, 5, 0, 2))), "")
  })

  it("excuses a forced release, and data loss or a clock step since the write was sent", () => {
    assert.strictEqual(
      refused(() => {}, (history) => history.send("UNLINK", "owner:m", "a")),
      ""
    )
    for (const what of ["lossAt", "serverStepAt"] as const) {
      const since = (at: number) => refused(() => {}, (history) => void (history.state[what] = at))
      assert.strictEqual(since(200), "")
      assert.strictEqual(since(199), stale)
    }
    // Tokens may have become smaller if both have ever happened
    const both = refused((history) => {
      history.state.lossAt = 0
      history.state.serverStepAt = 0
    })
    assert.strictEqual(both, "")
    const granted = (at: number) => refused((history) => void (history.state.lossAt = at))
    assert.strictEqual(granted(99), stale)
    assert.strictEqual(granted(100), "")
  })
})
