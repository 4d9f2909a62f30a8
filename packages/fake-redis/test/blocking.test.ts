import { assert, describe, it } from "@effect/vitest"
import { makeFixture, START } from "./differential/fixture.ts"

describe("blocked commands", () => {
  it("serves list readers first come, first served", () => {
    const { peer } = makeFixture()
    const [a, b, c] = [peer(), peer(), peer()]
    assert.isUndefined(a.run("BLPOP", "l", "0"))
    assert.isUndefined(b.run("BLPOP", "other", "l", "0"))
    assert.strictEqual(c.run("RPUSH", "l", "1", "2", "3"), 3)
    assert.deepStrictEqual([a.replies, b.replies], [[["l", "1"]], [["l", "2"]]])
    assert.deepStrictEqual(c.run("LRANGE", "l", "0", "-1"), ["3"])
  })

  it("alternates between two readers in a consumer group", () => {
    const { peer } = makeFixture()
    const [a, b, c] = [peer(), peer(), peer()]
    c.run("XGROUP", "CREATE", "x", "g", "$", "MKSTREAM")
    const read = (name: string) => ["XREADGROUP", "GROUP", "g", name, "COUNT", "1", "BLOCK", "0", "STREAMS", "x", ">"]
    const order: Array<string> = []
    const loop = (name: string, session: typeof a.session): void =>
      session.execute(read(name), () => {
        order.push(name)
        loop(name, session)
      })
    loop("a", a.session)
    loop("b", b.session)
    for (let i = 1; i <= 4; i++) c.run("XADD", "x", `${i}-0`, "k", "v")
    assert.deepStrictEqual(order, ["a", "b", "a", "b"])
  })

  it("times out at the deadline, not earlier", () => {
    const { advance, engine, peer } = makeFixture()
    const a = peer()
    assert.isUndefined(a.run("BLPOP", "l", "0.5"))
    assert.strictEqual(engine.nextWake(), (START + 500) * 1000)
    advance(499)
    assert.deepStrictEqual(a.replies, [])
    advance(1)
    assert.deepStrictEqual(a.replies, [null])
    assert.isUndefined(engine.nextWake())
  })

  it("does not serve an element that the same transaction or script removes", () => {
    const { peer } = makeFixture()
    const [a, b] = [peer(), peer()]
    a.run("BLPOP", "l", "0")
    b.run("EVAL", "redis.call('rpush', 'l', 1) redis.call('lpop', 'l')", "0")
    assert.deepStrictEqual(a.replies, [])
    b.run("MULTI")
    b.run("RPUSH", "l", "1")
    b.run("BLPOP", "l", "0")
    assert.deepStrictEqual(b.run("EXEC"), [1, ["l", "1"]])
    assert.deepStrictEqual(a.replies, [])
  })

  it("unblocks group readers with an error when their group or stream vanishes", () => {
    const { peer } = makeFixture()
    const [a, b] = [peer(), peer()]
    const read = ["XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "x", ">"]
    b.run("XGROUP", "CREATE", "x", "g", "0", "MKSTREAM")
    a.run(...read)
    b.run("XGROUP", "DESTROY", "x", "g")
    b.run("XGROUP", "CREATE", "x", "g", "0")
    a.run(...read)
    b.run("DEL", "x")
    b.run("XGROUP", "CREATE", "x", "g", "0", "MKSTREAM")
    a.run(...read)
    b.run("SET", "x", "1")
    assert.deepStrictEqual(a.replies, [
      "-NOGROUP the consumer group this client was blocked on no longer exists",
      "-UNBLOCKED the stream key no longer exists",
      "-UNBLOCKED the stream key no longer exists"
    ])
  })

  it("runs the commands that a blocked session sent once it is unblocked", () => {
    const { peer } = makeFixture()
    const [a, b] = [peer(), peer()]
    a.run("BLPOP", "l", "0")
    a.run("PING")
    assert.deepStrictEqual(a.replies, [])
    b.run("RPUSH", "l", "1")
    assert.deepStrictEqual(a.replies, [["l", "1"], "PONG"])
  })

  it("serves all ready sessions before it runs the commands that a served session sent meanwhile", () => {
    const { peer } = makeFixture()
    const [a, b, c] = [peer(), peer(), peer()]
    a.run("BLPOP", "l", "0")
    a.run("LLEN", "l")
    b.run("BLPOP", "l", "0")
    c.run("RPUSH", "l", "1", "2")
    assert.deepStrictEqual([a.replies, b.replies], [[["l", "1"], 0], [["l", "2"]]])
  })

  it("serves others after each command that a blocked session sent", () => {
    const { peer } = makeFixture()
    const [a, b, c] = [peer(), peer(), peer()]
    a.run("BLPOP", "l", "0")
    a.run("RPUSH", "m", "2")
    a.run("DEL", "m")
    b.run("BLPOP", "m", "0")
    c.run("RPUSH", "l", "1")
    assert.deepStrictEqual([a.replies, b.replies], [[["l", "1"], 1, 0], [["m", "2"]]])
  })

  it("does not serve a blocked session after it has been closed", () => {
    const { engine, peer } = makeFixture()
    const [a, b] = [peer(), peer()]
    a.run("BLPOP", "l", "1")
    a.session.close()
    assert.isUndefined(engine.nextWake())
    b.run("RPUSH", "l", "1")
    assert.strictEqual(b.run("LLEN", "l"), 1)
    assert.deepStrictEqual(a.replies, [])
  })
})

describe("transactions", () => {
  it("EXEC returns nil if a watched key has changed", () => {
    const { peer } = makeFixture()
    const [a, b] = [peer(), peer()]
    a.run("WATCH", "k")
    b.run("SET", "k", "1")
    a.run("MULTI")
    a.run("SET", "k", "2")
    assert.isNull(a.run("EXEC"))
    assert.strictEqual(a.run("GET", "k"), "1")
  })

  it("EXEC returns nil if a watched key has expired", () => {
    const { advance, peer } = makeFixture()
    const a = peer()
    a.run("SET", "k", "1", "PX", "10")
    a.run("WATCH", "k")
    advance(20)
    a.run("MULTI")
    a.run("PING")
    assert.isNull(a.run("EXEC"))
  })
})

describe("several blocked sessions", () => {
  it("a blocked BLMOVE fails if its destination has the wrong type, and the next client gets the element", () => {
    const { peer } = makeFixture()
    const [a, b, c] = [peer(), peer(), peer()]
    c.run("SET", "d", "v")
    a.run("BLMOVE", "l", "d", "LEFT", "RIGHT", "0")
    b.run("BLPOP", "l", "0")
    assert.strictEqual(c.run("RPUSH", "l", "1"), 1)
    assert.deepStrictEqual(a.replies, ["-WRONGTYPE Operation against a key holding the wrong kind of value"])
    assert.deepStrictEqual(b.replies, [["l", "1"]])
  })

  it("SWAPDB serves blocked sessions from the database that is swapped in", () => {
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

  it("readers get an empty list if a transaction adds and removes an entry", () => {
    const { peer } = makeFixture()
    const [a, b, c] = [peer(), peer(), peer()]
    c.run("XGROUP", "CREATE", "x", "g", "$", "MKSTREAM")
    a.run("XREAD", "BLOCK", "0", "STREAMS", "x", "$")
    b.run("XREADGROUP", "GROUP", "g", "b", "BLOCK", "0", "STREAMS", "x", ">")
    for (const command of [["MULTI"], ["XADD", "x", "1-1", "k", "v"], ["XDEL", "x", "1-1"], ["EXEC"]]) c.run(...command)
    assert.deepStrictEqual([a.replies, b.replies], [[[["x", []]]], [[["x", []]]]])
    c.run("XADD", "x", "1-2", "k", "v")
    assert.deepStrictEqual(b.run("XREADGROUP", "GROUP", "g", "b", "STREAMS", "x", ">"), [["x", [["1-2", ["k", "v"]]]]])
  })

  it("blocked sessions keep their database number after SWAPDB", () => {
    const { peer } = makeFixture()
    const [a, b] = [peer(), peer()]
    a.run("BLPOP", "l", "0")
    b.run("SWAPDB", "0", "1")
    assert.strictEqual(b.run("RPUSH", "l", "1"), 1)
    assert.deepStrictEqual(a.replies, [["l", "1"]])
    assert.strictEqual(b.run("LLEN", "l"), 0)
  })
})
