import { assert, describe, it } from "@effect/vitest"
import { makeFixture, START } from "./differential/fixture.ts"

const messages = (pushes: ReadonlyArray<{ readonly channel: string; readonly message: string }>) =>
  pushes.map(({ channel, message }) => `${channel} ${message}`)

describe("expiry", () => {
  it("keeps a key for the whole millisecond of its deadline", () => {
    const { advance, peer } = makeFixture({ expiryDelayMillis: [1000, 1000] })
    const a = peer()
    a.run("SET", "k", "v", "PX", "900")
    advance(900)
    assert.strictEqual(a.run("GET", "k"), "v")
    assert.strictEqual(a.run("PTTL", "k"), 0)
    advance(1)
    assert.isNull(a.run("GET", "k"))
  })

  it("publishes an expiry after the delay, or as soon as the key is accessed", () => {
    const { advance, engine, peer } = makeFixture({ expiryDelayMillis: [50, 50] })
    const [a, b] = [peer(), peer()]
    a.run("CONFIG", "SET", "notify-keyspace-events", "Ex")
    b.run("SUBSCRIBE", "__keyevent@0__:expired")
    a.run("SET", "k", "v", "PX", "100")
    a.run("SET", "touched", "v", "PX", "100")
    assert.strictEqual(engine.nextWake(), (START + 151) * 1000)
    advance(120)
    assert.strictEqual(a.run("DBSIZE"), 2)
    a.run("EXISTS", "touched")
    assert.deepStrictEqual(messages(b.pushes), ["__keyevent@0__:expired touched"])
    advance(40)
    assert.deepStrictEqual(messages(b.pushes), ["__keyevent@0__:expired touched", "__keyevent@0__:expired k"])
    assert.isUndefined(engine.nextWake())
  })

  it("schedules its next wake-up for the earliest expiry", () => {
    const { advance, engine, peer } = makeFixture()
    const a = peer()
    a.run("SET", "k", "v", "PX", "100")
    a.run("PEXPIRE", "k", "1000")
    assert.strictEqual(engine.nextWake(), (START + 1001) * 1000)
    a.run("SET", "j", "v", "PX", "10")
    assert.strictEqual(engine.nextWake(), (START + 11) * 1000)
    advance(500)
    assert.deepStrictEqual(engine.keys(), [{ db: 0, key: "k", type: "string", expiresAt: START + 1000 }])
    a.run("PERSIST", "k")
    assert.isUndefined(engine.nextWake())
  })

  it("keeps only the latest expiry of a key that is set and deleted repeatedly", () => {
    const { advance, engine, peer } = makeFixture()
    const a = peer()
    a.run("SET", "first", "v", "PX", "4000")
    for (const last of ["100", "30"]) {
      for (let i = 0; i < 6000; i++) {
        a.run("SET", "k", "v", "PX", "5000")
        if (i % 3 === 0) a.run("DEL", "k")
        if (i % 3 === 1) a.run("SET", "k", "v")
      }
      assert.isAtMost(engine.scheduled, 1001)
      a.run("SET", "k", "v", "PX", last)
      advance(Number(last))
      assert.strictEqual(a.run("GET", "k"), "v")
      advance(1)
      assert.strictEqual(a.run("DBSIZE"), 1)
    }
    advance(10_000)
    assert.isUndefined(engine.nextWake())
    assert.strictEqual(engine.scheduled, 0)
  })

  it("time stands still inside a script", () => {
    let micros = START * 1000
    const { peer } = makeFixture({ nowMicros: () => (micros += 700) })
    const reply = peer().run(
      "EVAL",
      "local a = redis.call('TIME') for i = 1, 100 do redis.call('GET', 'x') end local b = redis.call('TIME') " +
        "return {a[1] == b[1] and a[2] == b[2]}",
      "0"
    )
    assert.deepStrictEqual(reply, [1])
  })

  it("publishes the same keyspace events as Redis", () => {
    const { peer } = makeFixture()
    const [a, b] = [peer(), peer()]
    a.run("CONFIG", "SET", "notify-keyspace-events", "KEA")
    assert.deepStrictEqual(a.run("CONFIG", "GET", "notify-keyspace-events"), ["notify-keyspace-events", "AKE"])
    b.run("PSUBSCRIBE", "__keyevent@*__:*")
    a.run("SET", "s", "1", "PX", "1000")
    a.run("RENAME", "s", "t")
    a.run("RPUSH", "l", "1")
    a.run("LPOP", "l")
    a.run("XADD", "x", "1-1", "a", "b")
    a.run("XGROUP", "CREATE", "x", "g", "0")
    a.run("HSET", "h", "f", "1")
    a.run("ZADD", "z", "1", "m")
    a.run("DEL", "t")
    assert.deepStrictEqual(messages(b.pushes), [
      "__keyevent@0__:set s",
      "__keyevent@0__:expire s",
      "__keyevent@0__:rename_from s",
      "__keyevent@0__:rename_to t",
      "__keyevent@0__:rpush l",
      "__keyevent@0__:lpop l",
      "__keyevent@0__:del l",
      "__keyevent@0__:xadd x",
      "__keyevent@0__:xgroup-create x",
      "__keyevent@0__:hset h",
      "__keyevent@0__:zadd z",
      "__keyevent@0__:del t"
    ])
    a.run("CONFIG", "SET", "notify-keyspace-events", "KEx")
    assert.deepStrictEqual(a.run("CONFIG", "GET", "notify-keyspace-events"), ["notify-keyspace-events", "xKE"])
  })
})

describe("client-side caching", () => {
  it("a read that finds a key expired invalidates it for clients that have read it before", () => {
    const { advance, engine } = makeFixture({ expiryDelayMillis: [1000, 1000] })
    const track = () => {
      const pushes: Array<unknown> = []
      const session = engine.connectBinary((push) => pushes.push(push))
      const run = (...args: ReadonlyArray<string>) => session.execute(args, () => {})
      run("HELLO", "3")
      run("CLIENT", "TRACKING", "ON")
      return { pushes, run }
    }
    const [a, b] = [track(), track()]
    a.run("SET", "k", "v", "PX", "10")
    b.run("GET", "k")
    advance(20)
    a.run("GET", "k")
    assert.deepStrictEqual(a.pushes, [])
    assert.deepStrictEqual(b.pushes, [{ _tag: "invalidate", keys: ["k"] }])
  })
})

describe("control", () => {
  it("loses the last writes, and restores a snapshot", () => {
    const { engine, peer } = makeFixture({ undoDepth: 3 })
    const a = peer()
    a.run("SET", "k", "1")
    a.run("SET", "k", "2", "PX", "1000")
    const snapshot = engine.snapshot()
    a.run("EVAL", "redis.call('SET', 'k', 3) redis.call('RPUSH', 'l', 1)", "0")
    a.run("GET", "k")
    a.run("RPUSH", "l", "2")
    assert.strictEqual(engine.rollback(2), 2)
    assert.strictEqual(a.run("GET", "k"), "2")
    assert.strictEqual(a.run("PTTL", "k"), 1000)
    assert.strictEqual(a.run("EXISTS", "l"), 0)
    a.run("FLUSHALL")
    assert.strictEqual(a.run("DBSIZE"), 0)
    engine.restore(snapshot)
    assert.strictEqual(a.run("GET", "k"), "2")
  })

  it("loses a SWAPDB like any other write", () => {
    const { engine, peer } = makeFixture({ undoDepth: 3 })
    const a = peer()
    a.run("SET", "k", "1")
    a.run("SWAPDB", "0", "1")
    assert.strictEqual(engine.rollback(1), 1)
    assert.strictEqual(a.run("GET", "k"), "1")
    a.run("MULTI")
    for (const number of ["1", "2"]) {
      a.run("SET", "k", "0")
      a.run("SWAPDB", "0", number)
    }
    a.run("EXEC")
    assert.strictEqual(engine.rollback(1), 1)
    assert.strictEqual(a.run("GET", "k"), "1")
    for (const number of ["1", "2"]) {
      a.run("SELECT", number)
      assert.strictEqual(a.run("DBSIZE"), 0)
    }
  })

  it("rejects commands in an error state", () => {
    const { engine, peer } = makeFixture()
    const a = peer()
    engine.setErrorState("READONLY")
    assert.strictEqual(a.run("SET", "k", "1"), "-READONLY You can't write against a read only replica.")
    assert.isNull(a.run("GET", "k"))
    engine.setErrorState("LOADING")
    assert.strictEqual(a.run("GET", "k"), "-LOADING Redis is loading the dataset in memory")
    engine.setErrorState(undefined)
    assert.strictEqual(a.run("SET", "k", "1"), "OK")
  })

  it("drops all sessions on a restart", () => {
    const { engine, peer } = makeFixture()
    const a = peer()
    let closed = 0
    const b = engine.connect(() => {}, { onClose: () => closed++ })
    a.run("SUBSCRIBE", "c")
    assert.strictEqual(engine.subscriptions(), 1)
    engine.restart({ keepData: false })
    assert.strictEqual(engine.subscriptions(), 0)
    assert.strictEqual(closed, 1)
    b.execute(["PING"], () => assert.fail("a dropped session gets no reply"))
  })

  it("rejects most commands in a subscribed session", () => {
    const { peer } = makeFixture()
    const a = peer()
    a.run("SUBSCRIBE", "c")
    assert.match(String(a.run("GET", "k")), /^-ERR Can't execute 'get': only \(P\|S\)SUBSCRIBE/)
  })
})
