/** Tests the owner and token checkers, with a hand-written history for each kind of violation. */
import { Checker } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { type History, lock, take, verdict } from "../support/handwritten.ts"

describe("one owner at a time", () => {
  const owners = (play: (history: History) => void, also = {}) =>
    verdict(Checker.rules.oneOwner, { ...lock, ...also })((history) => {
      history.wait(100)
      take(history, "a")
      play(history)
    })
  const early = (to: string) => `m went from a to ${to}, 1.000 s before its lease expired`

  it("finds an owner that is replaced or removed before its lease expires", () => {
    assert.strictEqual(owners((history) => take(history, "b")), early("b"))
    assert.strictEqual(owners((history) => history.send("DEL", "owner:m")), early("nobody"))
    const replacedAfter = (millis: number) => owners((history) => (history.wait(millis), take(history, "b")))
    assert.match(replacedAfter(999), /0\.001 s before/)
    assert.match(replacedAfter(1000), /0\.000 s before/)
    assert.strictEqual(replacedAfter(1200), "")
  })

  it("accepts releases and forced releases, but only for this owner and resource", () => {
    assert.strictEqual(owners((history) => history.send("DEL", "owner:m", "a")), "")
    assert.strictEqual(owners((history) => history.send("UNLINK", "owner:m", "a")), "")
    assert.strictEqual(owners((history) => history.send("DEL", "owner:m", "b")), early("nobody"))
    assert.strictEqual(owners((history) => history.send("UNLINK", "owner:m", "b")), early("nobody"))
    const elsewhere = { released: () => ({ resource: "n", id: "a" }) }
    assert.strictEqual(owners((history) => history.send("DEL", "owner:m"), elsewhere), early("nobody"))
  })

  it("accepts any change if data was lost after the grant", () => {
    const lost = (at: number) =>
      owners((history) => {
        history.state.lossAt = at
        history.send("DEL", "owner:m")
      })
    assert.strictEqual(lost(100), "")
    assert.strictEqual(lost(99), early("nobody"))
  })
})

describe("tokens grow", () => {
  const tokens = verdict(Checker.rules.tokensGrow, { ...lock, spareTokens: () => 2 })
  const grant = (history: History, id: string, token: number | string) => {
    history.wait(100)
    history.send("DEL", "owner:m", "any")
    history.send("SET", "fence:m", String(token))
    take(history, id, 10_000)
  }
  const granted = (history: History, id: string, token: number) => history.note("granted", { resource: "m", id, token })

  it("finds a grant without a token", () => {
    assert.strictEqual(tokens((history) => take(history, "a")), "a was granted m without a token")
    assert.strictEqual(tokens((history) => grant(history, "a", "?")), "a was granted m without a token")
  })

  it("finds a token that does not grow, unless the largest one was lost", () => {
    const second = (token: number, lossAt = -Infinity) =>
      tokens((history) => {
        grant(history, "a", 10)
        history.state.lossAt = lossAt
        grant(history, "b", token)
      })
    assert.strictEqual(second(11), "")
    assert.strictEqual(second(10), "b was granted m with token 10, after 10")
    assert.strictEqual(second(9), "b was granted m with token 9, after 10")
    assert.strictEqual(second(9, 100), "")
    assert.strictEqual(second(9, 99), "b was granted m with token 9, after 10")
  })

  it("does not count owners restored by data loss or a clock step", () => {
    const restored = (lossAt: number, command: boolean) =>
      tokens((history) => {
        grant(history, "a", 10)
        history.wait(100)
        history.state.lossAt = lossAt
        const reply = { client: "c1", role: "commands" as const, args: ["SET"], reply: "OK", micros: 0 }
        history.emit({
          _tag: "Owner",
          at: history.now,
          resource: "m",
          from: undefined,
          since: 0,
          deadline: 0,
          to: "b",
          token: 5,
          command: command ? reply : undefined
        })
        grant(history, "c", 7)
      })
    const smaller = "c was granted m with token 7, after 10"
    assert.strictEqual(restored(-Infinity, false), smaller)
    assert.strictEqual(restored(-Infinity, true), "b was granted m with token 5, after 10")
    // 7 is accepted because the loss is later than the grant of 10
    assert.strictEqual(restored(200, true), "")
    assert.strictEqual(restored(199, true), "")
  })

  it("finds an owner that receives a different token, unless data was lost", () => {
    const received = (token: number, lossAt = -Infinity, id = "a") =>
      tokens((history) => {
        grant(history, "a", 10)
        history.state.lossAt = lossAt
        granted(history, id, token)
      })
    for (const token of [10, 11, 12]) assert.strictEqual(received(token), "")
    assert.strictEqual(received(9), "a received token 9, but the server granted 10")
    assert.strictEqual(received(13), "a received token 13, but the server granted 10")
    assert.strictEqual(received(13, 0), "")
    assert.strictEqual(received(10, -Infinity, "b"), "b received token 10, but the server granted none")
    assert.strictEqual(received(0, -Infinity, "b"), "b received token 0, but the server granted none")
  })

  it("ignores grants to programs that do not use tokens", () => {
    assert.strictEqual(
      tokens((history) => (grant(history, "a", 10), history.note("granted", { resource: "m", id: "a" }))),
      ""
    )
  })

  it("counts only the reserved tokens that the owner has used", () => {
    const then = (used: (history: History) => void, next: number) =>
      tokens((history) => {
        grant(history, "a", 10)
        used(history)
        grant(history, "b", next)
      })
    assert.strictEqual(then((history) => granted(history, "a", 12), 13), "")
    assert.strictEqual(then((history) => granted(history, "a", 12), 12), "b was granted m with token 12, after 12")
    assert.strictEqual(then((history) => granted(history, "a", 10), 11), "")
    // After data loss, an owner may report a token that was never granted
    const unknown = (token: number) => (history: History) => {
      history.state.lossAt = 0
      granted(history, "a", token)
    }
    assert.strictEqual(then(unknown(13), 12), "")
    // An owner with a successor
    const replaced = (history: History) => {
      grant(history, "c", 13)
      granted(history, "a", 12)
      granted(history, "a", 12)
    }
    assert.strictEqual(then(replaced, 14), "")
    assert.strictEqual(then(replaced, 13), "b was granted m with token 13, after 13")
  })

  it("accepts the token from an earlier grant to the same id only if the client is excused", () => {
    const twice = (resumed: boolean, serverForwardAt = -Infinity) =>
      tokens((history) => {
        history.state.serverForwardAt = serverForwardAt
        grant(history, "a", 10)
        grant(history, "b", 13)
        grant(history, "a", 16)
        if (resumed) history.client().process.resumedAt = history.now
        granted(history, "a", 10)
      })
    const other = "a received token 10, but the server granted 16"
    assert.strictEqual(twice(true), "")
    assert.strictEqual(twice(false), other)
    assert.strictEqual(twice(false, 100), "")
    assert.strictEqual(twice(false, 99), other)
    const never = tokens((history) => {
      grant(history, "a", 10)
      history.client().process.resumedAt = history.now
      granted(history, "a", 7)
    })
    assert.strictEqual(never, "a received token 7, but the server granted 10")
  })
})
