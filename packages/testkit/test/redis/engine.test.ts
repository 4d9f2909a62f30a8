import { assert, describe, it } from "@effect/vitest"
import { makeFixture } from "../differential/fixture.ts"
import { rows } from "../differential/regressions.ts"

describe("found by the differential run", () => {
  for (const [name, commands, expected] of rows) {
    it(name, () => {
      const { peer } = makeFixture()
      const { run } = peer()
      let reply: unknown
      for (const args of commands) reply = run(...args)
      assert.deepStrictEqual(reply, expected)
    })
  }
})

describe("found between sessions", () => {
  it("a blocked BLMOVE onto a wrong type fails, and leaves the element to the next in line", () => {
    const { peer } = makeFixture()
    const [a, b, c] = [peer(), peer(), peer()]
    c.run("SET", "d", "v")
    a.run("BLMOVE", "l", "d", "LEFT", "RIGHT", "0")
    b.run("BLPOP", "l", "0")
    assert.strictEqual(c.run("RPUSH", "l", "1"), 1)
    assert.deepStrictEqual(a.replies, ["-WRONGTYPE Operation against a key holding the wrong kind of value"])
    assert.deepStrictEqual(b.replies, [["l", "1"]])
  })

  it("SWAPDB serves who is blocked from the database that has come", () => {
    const { peer } = makeFixture()
    const [a, b, c] = [peer(), peer(), peer()]
    a.run("BLMOVE", "l", "m", "LEFT", "RIGHT", "0")
    b.run("XREAD", "BLOCK", "0", "STREAMS", "x", "0")
    c.run("SELECT", "1")
    c.run("RPUSH", "l", "1")
    c.run("XADD", "x", "1-1", "k", "v")
    c.run("SWAPDB", "0", "1")
    assert.deepStrictEqual(a.replies, ["1"])
    assert.deepStrictEqual(b.replies, [[["x", [["1-1", ["k", "v"]]]]]])
    assert.deepStrictEqual(c.run("EXISTS", "m"), 0)
    c.run("SELECT", "0")
    assert.deepStrictEqual(c.run("LRANGE", "m", "0", "-1"), ["1"])
  })

  it("SWAPDB leaves who is blocked with the number of the database", () => {
    const { peer } = makeFixture()
    const [a, b] = [peer(), peer()]
    a.run("BLPOP", "l", "0")
    b.run("SWAPDB", "0", "1")
    assert.strictEqual(b.run("RPUSH", "l", "1"), 1)
    assert.deepStrictEqual(a.replies, [["l", "1"]])
    assert.strictEqual(b.run("LLEN", "l"), 0)
  })
})
