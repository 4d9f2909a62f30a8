/** Tests when a checker excuses a client for relying on a lease that the server no longer knows. */
import { Checker } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { type History, lock, take, verdict } from "../support/handwritten.ts"

const ensure = verdict(Checker.rules.ensureIsTruthful, lock)
const work = verdict(Checker.rules.workIsProtected, lock)

const ensured = (history: History, left = 1) => history.note("ensured", { resource: "m", id: "a", left })

const believedBy = (owner: string) => `a passed ensure while m belonged to ${owner}`

/** `a` owns the mutex for a second from 100, and passes ensure at 1500, after `play`. */
const late = (play: (history: History) => void, before: (history: History) => void = () => {}) =>
  ensure((history) => {
    before(history)
    history.wait(100 - history.now)
    take(history, "a")
    play(history)
    history.wait(1500 - history.now)
    ensured(history)
  })

describe("ensure is truthful", () => {
  it("requires the server to know the owner", () => {
    assert.strictEqual(ensure((history) => (take(history, "a"), history.wait(500), ensured(history))), "")
    assert.strictEqual(late(() => {}), believedBy("nobody"))
    assert.strictEqual(late((history) => (history.wait(1300), take(history, "b"))), believedBy("b"))
  })

  it("requires the deadline to be in the future", () => {
    assert.strictEqual(
      ensure((history) => (take(history, "a"), ensured(history, 0))),
      "ensure of a passed after its deadline"
    )
  })

  it("excuses the event-loop turn that was running at the deadline", () => {
    const slow = (lateness: number) => (history: History) => {
      history.client().process.processor.lateness = lateness
    }
    const replaced = (lateness: number) => (history: History) => {
      slow(lateness)(history)
      history.wait(1300)
      take(history, "b")
    }
    assert.strictEqual(late(slow(400)), "")
    assert.strictEqual(late(slow(399)), believedBy("nobody"))
    assert.strictEqual(late(replaced(400)), "")
    assert.strictEqual(late(replaced(399)), believedBy("b"))
    // The successor took the mutex at the deadline or earlier
    const taken = (at: number) => (history: History) => {
      slow(400)(history)
      history.wait(at - history.now)
      take(history, "b", 5000)
    }
    assert.strictEqual(late(taken(1100)), "")
    assert.strictEqual(late(taken(1099)), believedBy("b"))
    // On the server's clock, the deadline is in the future again
    assert.strictEqual(
      late((history) => {
        slow(10_000)(history)
        history.wait(1300)
        take(history, "b", 5000)
        history.state.server.stepClock(-900)
      }),
      believedBy("b")
    )
  })

  it("excuses data loss since the grant", () => {
    const lostAt = (at: number) => (history: History) => void (history.state.lossAt = at)
    assert.strictEqual(late(lostAt(100)), "")
    assert.strictEqual(late(lostAt(99)), believedBy("nobody"))
    // An id that was never granted
    const unknown = (at: number) => ensure((history) => (lostAt(at)(history), ensured(history)))
    assert.strictEqual(unknown(0), "")
    assert.strictEqual(unknown(-Infinity), believedBy("nobody"))
  })

  it("measures from the first grant that the client has noticed, or from the last one", () => {
    const twice = (noted: boolean) =>
      ensure((history) => {
        history.wait(100)
        take(history, "a")
        if (noted) history.note("granted", { resource: "m", id: "a" })
        history.wait(100)
        history.state.lossAt = history.now
        history.send("DEL", "owner:m")
        history.wait(100)
        take(history, "a")
        history.send("DEL", "owner:m")
        ensured(history)
      })
    assert.strictEqual(twice(true), "")
    assert.strictEqual(twice(false), believedBy("nobody"))
  })

  it("excuses forward server clock steps since the first request", () => {
    const forward = (at: number) => (history: History) => void (history.state.serverForwardAt = at)
    const asked = (history: History) => (history.wait(50), history.send("ZADD", "queue:m", "1", "a"))
    assert.strictEqual(late(forward(50), asked), "")
    assert.strictEqual(late(forward(49), asked), believedBy("nobody"))
    assert.strictEqual(late(forward(99)), believedBy("nobody"))
    const unknown = (at: number) => ensure((history) => (forward(at)(history), ensured(history)))
    assert.strictEqual(unknown(0), "")
    assert.strictEqual(unknown(-Infinity), believedBy("nobody"))
  })

  it("excuses a forced release until the lease would have expired", () => {
    const forced = (at: number, id = "a") =>
      ensure((history) => {
        take(history, "a")
        history.wait(500)
        history.send("UNLINK", "owner:m", id)
        history.wait(at - history.now)
        ensured(history)
      })
    assert.strictEqual(forced(999), "")
    assert.strictEqual(forced(1000), believedBy("nobody"))
    assert.strictEqual(forced(999, "b"), believedBy("nobody"))
  })

  it("excuses a suspension since the grant if the wall clock was set since the request", () => {
    const slept = (until: number, stepped: number) => (history: History) => {
      history.client().process.sleptUntil = until
      history.client().steppedAt = stepped
    }
    assert.strictEqual(late(slept(100, 100)), "")
    assert.strictEqual(late(slept(99, 100)), believedBy("nobody"))
    assert.strictEqual(late(slept(100, 99)), believedBy("nobody"))
  })

  const resumed = (ago: number, lateness = 0, wasSuspended = false) => (history: History) => {
    Object.assign(history.client().process, { resumedAt: 1500 - ago, wasSuspended })
    history.client().process.processor.lateness = lateness
  }

  it("excuses the first turn after a pause", () => {
    assert.strictEqual(late(resumed(1)), "")
    assert.strictEqual(late(resumed(2)), believedBy("nobody"))
    assert.strictEqual(late(resumed(10, 10)), "")
    assert.strictEqual(late(resumed(11, 10)), believedBy("nobody"))
    assert.strictEqual(late(resumed(2, 0, true)), believedBy("nobody"))
  })

  it("excuses work for 1.1 seconds after a suspension, because a timer has to end it", () => {
    const worked = (kind: string, play: (history: History) => void) =>
      work((history) => {
        take(history, "a")
        play(history)
        history.wait(1500)
        history.note(kind, { resource: "m", id: "a" })
      })
    for (const kind of ["begin", "step"]) {
      assert.strictEqual(worked(kind, resumed(1101, 0, true)), "")
      assert.strictEqual(worked(kind, resumed(1102, 0, true)), "a worked while m belonged to nobody")
      assert.strictEqual(worked(kind, resumed(2)), "a worked while m belonged to nobody")
    }
    assert.strictEqual(worked("end", () => {}), "")
  })
})

describe("released after the work ended", () => {
  const released = (play: (history: History) => void, id = "a") =>
    verdict(Checker.rules.releasedAfterWork, lock)((history) => {
      take(history, "a")
      history.note("begin", { resource: "m", id: "a" })
      play(history)
      history.send("DEL", "owner:m", id)
    })
  const found = "a released m while its work was running"

  it("finds a release while work is running, but not after the work or its process has ended", () => {
    assert.strictEqual(released(() => {}), found)
    assert.strictEqual(released(() => {}, "b"), "")
    assert.strictEqual(released((history) => history.note("stopped", { resource: "m", id: "a" })), found)
    assert.strictEqual(released((history) => history.note("end", { resource: "m", id: "a" })), "")
    assert.strictEqual(released((history) => history.fault("kill")), "")
    assert.strictEqual(released((history) => history.note("crashed")), "")
    assert.strictEqual(released((history) => history.fault("kill", "c2")), found)
    assert.strictEqual(released((history) => history.fault("pause")), found)
  })
})

describe("nothing is left behind", () => {
  const left = (play: (history: History) => void, also = {}) =>
    verdict(Checker.rules.nothingIsLeft, { ...lock, ...also })((history) => {
      play(history)
      history.close()
    })

  it("finds all keys except those that may remain", () => {
    const keys = (history: History) => {
      history.send("SET", "x", "1")
      history.send("SET", "y", "1", "PX", "60000")
      history.disconnect()
    }
    assert.strictEqual(left(keys), "found keys that `keep` does not accept: x, y")
    assert.strictEqual(
      left(keys, { keep: (_: string, expires: boolean) => expires }),
      "found keys that `keep` does not accept: x"
    )
    assert.strictEqual(left(keys, { keep: () => true }), "")
  })

  it("finds connections, subscriptions, fibers and timers", () => {
    assert.strictEqual(left((history) => history.send("PING")), "1 connections are left")
    assert.strictEqual(
      left((history) => history.send("SUBSCRIBE", "channel")),
      "1 subscriptions are left\n1 connections are left"
    )
    const of = (state: "running" | "dead") => (history: History) => {
      Object.assign(history.client("c2").process, { state, openFibers: 2, openTimers: 3 })
    }
    assert.strictEqual(left(of("running")), "2 fibers are left\n3 timers are left")
    assert.strictEqual(left(of("dead")), "")
  })
})
