/** Tests the checkers for data stream owners, with a hand-written history for each kind of violation. */
import { assert, describe, it } from "@effect/vitest"
import * as ownership from "../../src/streams/internal/checkers/ownership.ts"
import { type History, verdict } from "../support/handwritten.ts"
import { lock as oneStream, model as oneStreamModel } from "../support/streamHistory.ts"

const lock = { ...oneStream, resources: ["s", "t"] }
const model = { ...oneStreamModel, streams: ["s", "t"], paused: "paused" }

const announce = (history: History, entry: string, stream = "s") =>
  history.send("XADD", "input", entry, "stream", stream)
const read = (history: History, consumer: string) =>
  history.send("XREADGROUP", "GROUP", "group", consumer, "STREAMS", "input", ">")

describe("orphans are taken", () => {
  /** Consumer `a` in `c1` joins and `s` is announced at 10 s. The checker runs every 100 ms. */
  const orphans = (play: (history: History) => void, capacity = 1) =>
    verdict(ownership.noOrphans(model, { own: 5000, go: 7000 }, 1000), lock)((history) => {
      history.send("XGROUP", "CREATE", "input", "group", "0", "MKSTREAM")
      history.wait(10_000)
      history.note("joined", { consumer: "a", capacity })
      announce(history, "1-0")
      play(history)
    })
  const found = (since = "10.100") => `1-0 (s) has had no owner since ${since} s, but c1 is not full`
  /** Asserts that a violation is found exactly at this instant, in milliseconds. */
  const foundAt = (at: number, play: (history: History) => void, since?: string, capacity?: number) => {
    assert.strictEqual(orphans((history) => (play(history), history.wait(at - 1 - history.now)), capacity), "")
    assert.strictEqual(
      orphans((history) => (play(history), history.wait(at - history.now)), capacity),
      found(since ?? `${((at - 5100) / 1000).toFixed(3)}`)
    )
  }
  const never = (play: (history: History) => void, capacity?: number) =>
    assert.strictEqual(orphans((history) => (play(history), history.wait(20_000)), capacity), "")

  it("reports an announcement without an owner, and reports it again only after the same time", () => {
    foundAt(15_200, () => {}, "10.100")
    assert.strictEqual(orphans((history) => history.wait(10_200)), found())
    never((history) => history.send("SET", "owner:s", "b", "PX", "60000"))
    never((history) => history.send("SET", "entry:s:1-0", "b", "PX", "60000"))
    never((history) => history.send("HSET", "paused", "s", "1"))
    never((history) => history.send("XDEL", "input", "1-0"))
    never((history) => (read(history, "a"), history.send("XACK", "input", "group", "1-0")))
    // Unreadable announcements do not count
    never((history) => (history.send("XDEL", "input", "1-0"), history.send("XADD", "input", "2-0", "x", "y")))
  })

  it("measures from the end of a pause or lease, or from data loss plus the time to recover", () => {
    foundAt(18_200, (history) => {
      history.send("HSET", "paused", "s", "1")
      history.wait(3050)
      history.send("HDEL", "paused", "s")
    }, "13.100")
    foundAt(18_100, (history) => {
      history.send("SET", "owner:s", "b", "PX", "60000")
      history.wait(2950)
      history.send("DEL", "owner:s")
    }, "13.000")
    // The owner last changed between two checks
    foundAt(18_000, (history) => {
      history.wait(2950)
      history.send("SET", "owner:s", "b", "PX", "60000")
      history.send("DEL", "owner:s")
    }, "12.950")
    foundAt(18_100, (history) => void (history.state.lossAt = 12_000), "13.000")
  })

  it("expects takeovers only by running consumers with free capacity that have had time to recover", () => {
    never((history) => history.note("left"))
    never((history) => history.fault("kill"))
    never((history) => history.note("crashed"))
    const own = (history: History, by = "a", millis = 60_000) =>
      history.send("SET", "owner:t", by, "PX", String(millis))
    never(own)
    foundAt(15_200, own, "10.100", 2)
    foundAt(15_200, (history) => own(history, "b"), "10.100")
    // The other data stream's lease ends at 12 s
    foundAt(17_200, (history) => own(history, "a", 2000), "12.100")
    foundAt(18_100, (history) => void (history.client().disturbedAt = 12_000), "13.000")
    foundAt(18_200, (history) => {
      history.client().process.state = "paused"
      history.wait(3050)
      history.client().process.state = "running"
    }, "13.100")
    foundAt(18_200, (history) => {
      history.wait(1000)
      own(history)
      history.wait(2050)
      history.send("DEL", "owner:t")
    }, "13.100")
    foundAt(18_100, (history) => {
      history.note("left")
      history.wait(2950)
      history.note("joined", { consumer: "a", capacity: 1 })
    }, "13.000")
  })

  it("rereads leases after a fault, because faults change them without commands", () => {
    const lost = (isReported: boolean) => (history: History) => {
      history.send("SET", "owner:s", "b", "PX", "60000")
      history.wait(2950)
      history.lose("DEL", "owner:s")
      if (isReported) history.fault("failover", "server")
    }
    foundAt(18_100, lost(true), "13.000")
    never(lost(false))
  })

  it("starts over when the entry is delivered, and allows more time for Go consumers", () => {
    const claim = (history: History, consumer: string) => history.send("XCLAIM", "input", "group", consumer, "0", "1-0")
    const delivered = (consumer: string) => (history: History) => (history.wait(2950), read(history, consumer))
    foundAt(18_100, delivered("a"), "13.000")
    foundAt(18_100, (history) => (delivered("a")(history), history.wait(1000), claim(history, "b")), "13.000")
    const go = (history: History) => delivered("stock-a")(history)
    foundAt(20_100, go, "13.000")
    foundAt(22_100, (history) => (delivered("a")(history), history.wait(2000), claim(history, "stock-a")), "15.000")
    // A consumer that the server has forgotten through data loss counts as a Go consumer
    const lost = (at: number) => (history: History) => (delivered("a")(history), history.state.lossAt = at)
    foundAt(20_100, lost(11_950), "13.000")
    foundAt(18_100, lost(11_949), "13.000")
  })
})

describe("no ping-pong", () => {
  const checker = ownership.noPingPong(model, 1000, 10_000)
  const handOver = (history: History, from: string, to: string) =>
    history.send("EVAL", "redis.call('SET', KEYS[1], ARGV[1])", "1", "owner:s", to, from)
  const join = (history: History, value: string) => history.send("HSET", "members", "a", value)

  /** `s` goes from 1 to 2 at 20 s, and to 3 after `between`. */
  const moves = (between: (history: History) => void, before: (history: History) => void = () => {}) =>
    verdict(checker, {
      ...lock,
      released: (args) => args[0] === "EVAL" ? { resource: "s", id: `s#${args[5]}` } : undefined
    })((history) => {
      join(history, "8|0")
      history.wait(1000)
      history.send("SET", "owner:s", "1")
      before(history)
      history.wait(20_000 - history.now)
      handOver(history, "1", "2")
      between(history)
      handOver(history, "2", "3")
    })
  const found = "s was handed over at 20.000 s, and again, although no member joined or left"
  const later = "s was handed over at 20.000 s, and again later, although nothing had changed"
  const at = (millis: number, act: (history: History) => void) =>
  (
    history: History
  ) => (history.wait(millis - history.now), act(history))
  const taken = (history: History) => history.send("SET", "owner:t", "1")

  it("has one limit for a hand-over without a membership change, and another for a change of shares", () => {
    assert.strictEqual(moves((history) => history.wait(9999)), found)
    assert.strictEqual(moves((history) => history.wait(10_000)), later)
    assert.strictEqual(moves((history) => (taken(history), history.wait(9999))), found)
    assert.strictEqual(moves((history) => (taken(history), history.wait(10_000))), "")
  })

  it("accepts changes that happened up to the settling time before the first hand-over", () => {
    const changed = (act: (history: History) => void, millis: number, wait: number) =>
      moves((history) => history.wait(wait), at(millis, act))
    const joins = (history: History) => join(history, "9|0")
    assert.strictEqual(changed(joins, 19_000, 5000), "")
    assert.strictEqual(changed(joins, 18_999, 5000), found)
    assert.strictEqual(changed(taken, 19_000, 10_000), "")
    assert.strictEqual(changed(taken, 18_999, 10_000), later)
  })

  it("counts only changes to the set of members and their capacities, including those by expiring keys", () => {
    assert.strictEqual(moves((history) => join(history, "9|0")), "")
    assert.strictEqual(moves((history) => join(history, "8|1")), found)
    assert.strictEqual(moves((history) => history.send("SET", "any", "1")), found)
    const expires = (history: History) => history.send("PEXPIRE", "members", "19500")
    assert.strictEqual(moves((history) => history.wait(2000), expires), "")
    assert.strictEqual(
      moves((history) => history.wait(2000), (history) => history.send("SET", "x", "1", "PX", "19500")),
      found
    )
  })

  it("forgets a hand-over when the data stream is then taken or lost in another way", () => {
    assert.strictEqual(
      moves((history) => (history.send("DEL", "owner:s"), history.send("SET", "owner:s", "2"))),
      ""
    )
    assert.strictEqual(moves((history) => history.send("SET", "owner:s", "2")), found)
    // A release without a successor, and a new owner that replaces one that did not release
    assert.strictEqual(
      moves((history) => history.send("EVAL", "redis.call('DEL', KEYS[1])", "1", "owner:s", "", "2")),
      ""
    )
    assert.strictEqual(
      moves((history) => (history.send("SET", "owner:s", "4"), history.send("SET", "owner:s", "2"))),
      ""
    )
  })
})

describe("live Go consumers are left alone", () => {
  const key = "entry:s:1-0"
  const alone = (play: (history: History) => void) =>
    verdict(ownership.liveGoConsumersAreLeftAlone(model), lock)((history) => {
      history.wait(100)
      announce(history, "1-0")
      history.sendAs("stock", "SET", key, "stock-a", "PX", "2000")
      history.wait(1000)
      play(history)
    })
  const found = (left = "1.000") => `c1 took ${key} from stock-a, ${left} s before it expired`
  const take = (history: History, client = "c1") => history.sendAs(client, "SET", key, "b", "PX", "2000")

  it("finds a lease that another consumer takes or deletes before it expires", () => {
    assert.strictEqual(alone(take), found())
    assert.strictEqual(alone((history) => history.send("DEL", key)), found())
    assert.strictEqual(alone((history) => take(history, "stock")), "")
    assert.strictEqual(alone((history) => history.send("SET", key, "stock-a", "PX", "9000")), "")
    assert.match(alone((history) => (history.wait(1000), take(history))), /, 0\.000 s before/)
    assert.strictEqual(alone((history) => (history.wait(1001), take(history))), "")
    // An effect-simba consumer's lease
    assert.strictEqual(
      alone((history) => (history.wait(1500), take(history), history.send("SET", key, "c", "PX", "9"))),
      ""
    )
    // The lease is forgotten after it was deleted
    assert.strictEqual(
      alone((history) => (history.sendAs("stock", "DEL", key), history.wait(100), take(history))),
      ""
    )
    assert.strictEqual(alone((history) => history.send("SET", "entry:s:2-0", "b")), "")
  })

  it("counts a lease without an expiry until it is gone", () => {
    assert.match(
      alone((history) => (history.sendAs("stock", "PERSIST", key), history.wait(60_000), take(history))),
      /, Infinity s before/
    )
  })

  it("excuses data loss and clock steps since the grant, not just since the last renewal", () => {
    for (const what of ["lossAt", "serverStepAt"] as const) {
      const since = (at: number) =>
        alone((history) => {
          history.sendAs("stock", "SET", key, "stock-a", "PX", "2000")
          history.state[what] = at
          take(history)
        })
      assert.strictEqual(since(100), "")
      assert.strictEqual(since(99), found("2.000"))
    }
  })

  it("finds work under a Go consumer's lease, unless the owner was suspended", () => {
    const works = (kind: string, play: (history: History) => void = () => {}, entry = "1-0") =>
      alone((history) => {
        play(history)
        history.note(kind, { resource: "s", id: "s#1", entry })
      })
    const working = `s#1 works under ${key}, which belongs to stock-a`
    assert.strictEqual(works("begin"), working)
    assert.strictEqual(works("step"), working)
    assert.strictEqual(works("end"), "")
    assert.strictEqual(works("step", () => {}, "2-0"), "")
    assert.strictEqual(works("step", (history) => (history.wait(1500), take(history))), "")
    const suspended = (ago: number) => (history: History) =>
      void Object.assign(history.client().process, { resumedAt: history.now - ago, wasSuspended: true })
    assert.strictEqual(works("step", suspended(1101)), "")
    assert.strictEqual(works("step", suspended(1102)), working)
    // Data loss since the grant also excuses it
    const lost = (at: number) => (history: History) => {
      history.send("SET", "owner:s", "1")
      history.state.lossAt = at
    }
    assert.strictEqual(works("step", lost(1100)), "")
    assert.strictEqual(works("step", lost(1099)), working)
  })
})
