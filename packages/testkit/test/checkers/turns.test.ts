/** Tests the checkers for grants and turns, with a hand-written history for each kind of violation. */
import { Checker } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { type History, lock, take, verdict } from "../support/handwritten.ts"

const subscribe = (history: History, id = "a", client = "c1") => history.sendAs(client, "SUBSCRIBE", `channel:${id}`)
const unsubscribe = (history: History) => history.sendAs("c1", "UNSUBSCRIBE", "channel:a")
const queue = (history: History, id = "a", place = 5, client = "c1", resource = "m") =>
  history.sendAs(client, "ZADD", `queue:${resource}`, String(place), id)

describe("no grant is wasted", () => {
  const found = "m was granted to a, which never used it; consecutive wasted grants without a reason: 1"

  /** `a` queues after `before` and is granted the mutex at 10 s, but does not use it before `after`, a second later. */
  const wasted = (
    before: (history: History) => void = () => {},
    after: (history: History) => void = () => {},
    also = {}
  ) =>
    verdict(Checker.rules.noFlapping({ recovery: 1000 }), { ...lock, ...also })((history) => {
      subscribe(history)
      before(history)
      history.wait(10_000 - history.now)
      queue(history)
      take(history, "a", 100)
      after(history)
      history.wait(1000)
    })

  it("accepts a grant that is used, released, or released by force", () => {
    assert.strictEqual(wasted(), found)
    const granted = (id: string) => wasted(() => {}, (history) => history.note("granted", { resource: "m", id }))
    assert.strictEqual(granted("a"), "")
    assert.strictEqual(granted("b"), found)
    assert.strictEqual(wasted(() => {}, (history) => history.note("ensured", { resource: "m", id: "a" })), found)
    const sent = (...args: ReadonlyArray<string>) => wasted(() => {}, (history) => history.send(...args))
    assert.strictEqual(sent("DEL", "owner:m", "a"), "")
    assert.strictEqual(sent("DEL", "owner:m", "b"), found)
    assert.strictEqual(sent("DEL", "owner:m"), found)
    assert.strictEqual(sent("UNLINK", "owner:m", "a"), "")
    assert.strictEqual(wasted(() => {}, (history) => take(history, "b", 60_000)), found)
    assert.strictEqual(wasted(() => {}, (history) => history.enter("closing")), "")
    assert.strictEqual(wasted(() => {}, (history) => history.enter("liveness")), found)
  })

  it("excuses data loss, server clock steps, and faults that affect the owner shortly before the grant", () => {
    for (const what of ["lossAt", "serverStepAt"] as const) {
      const at = (at: number) => wasted((history) => void (history.state[what] = at))
      assert.strictEqual(at(10_000), "")
      assert.strictEqual(at(9999), found)
    }
    const disturbed = (at: number, name = "c1") => wasted((history) => void (history.client(name).disturbedAt = at))
    assert.strictEqual(disturbed(9000), "")
    assert.strictEqual(disturbed(8999), found)
    assert.strictEqual(disturbed(9000, "c2"), found)
    const resumed = (at: number) => wasted((history) => void (history.client().process.resumedAt = at))
    assert.strictEqual(resumed(9000), "")
    assert.strictEqual(resumed(8999), found)
    assert.strictEqual(wasted(() => {}, (history) => void (history.client().process.state = "paused")), "")
  })

  it("excuses owners without a running process, and requests that may come from a dead process", () => {
    assert.strictEqual(wasted(() => {}, () => {}, { asked: () => [] }), "")
    const gone = (how: (history: History, name: string) => void) => {
      const at = (millis: number, name = "c1") => wasted((history) => (history.wait(millis), how(history, name)))
      assert.strictEqual(at(6001), "")
      assert.strictEqual(at(6000), found)
      assert.strictEqual(at(6001, "c2"), found)
      assert.strictEqual(wasted(() => {}, (history) => how(history, "c1")), "")
      assert.strictEqual(wasted(() => {}, (history) => how(history, "c2")), found)
    }
    gone((history, name) => history.fault("kill", name))
    gone((history, name) => history.note("crashed", {}, name))
    assert.strictEqual(wasted(() => {}, (history) => history.fault("pause")), found)
    assert.strictEqual(wasted(() => {}, (history) => history.note("failed")), found)
    // An id belongs to the first process that requests it
    const first = wasted((history) => {
      queue(history, "a", 5, "c2")
      history.client().disturbedAt = 10_000
    })
    assert.strictEqual(first, found)
  })

  it("excuses owners whose grant or release may have been undone by an earlier fault", () => {
    const early = (history: History) => void (history.client().disturbedAt = 0)
    const excused = (before: (history: History) => void, also = {}) => {
      assert.strictEqual(wasted(before, () => {}, also), found)
      assert.strictEqual(wasted((history) => (before(history), early(history)), () => {}, also), "")
    }
    assert.strictEqual(wasted(early), found)
    // Has left, or has reported an earlier grant
    excused((history) => history.send("ZREM", "queue:m", "a"))
    excused((history) => {
      take(history, "a", 100)
      history.note("granted", { resource: "m", id: "a" })
      history.wait(1000)
    })
    // Is not subscribed
    excused(unsubscribe)
    excused(() => {}, { queued: () => [] })
    const listening = (history: History) => {
      unsubscribe(history)
      queue(history)
      take(history, "a", 100)
      history.send("DEL", "owner:m", "other")
      subscribe(history)
      early(history)
    }
    assert.match(wasted(listening), /wasted grants without a reason: 2$/)
    assert.strictEqual(
      wasted((history) => (unsubscribe(history), early(history)), () => {}, { channel: undefined }),
      found
    )
  })
})

describe("everybody is served in turn", () => {
  const played = (play: (history: History) => void, options = {}, also = {}) =>
    verdict(
      Checker.rules.servedInTurn({ barges: 1, turn: 5000, recovery: 1000, ...options }),
      { ...lock, ...also }
    )((history) => {
      subscribe(history)
      history.wait(10_000)
      play(history)
    })

  /**
   * Other contenders take the mutex this many times. Each holds it for 100 ms, then leaves it free for another 100 ms.
   */
  const others = (history: History, count: number, name = "b") => {
    for (let i = 0; i < count; i++) {
      const id = `${name}${history.now}`
      take(history, id, 60_000, "c2")
      history.wait(100)
      history.send("DEL", "owner:m", id)
      history.wait(100)
    }
  }
  const found = (ahead = 0, since = "10.000") =>
    `${ahead + 2} others were granted m since ${since} s, when ${ahead} were ahead of a`

  it("allows as many grants as there were waiters ahead, plus barges", () => {
    assert.strictEqual(played((history) => (queue(history), others(history, 1))), "")
    assert.strictEqual(played((history) => (queue(history), others(history, 2))), found())
    const ahead = (before: (history: History) => void, count: number) =>
      played((history) => {
        before(history)
        queue(history)
        others(history, count)
      })
    const owned = (history: History) => take(history, "x", 60_000)
    assert.strictEqual(ahead(owned, 2), "")
    assert.strictEqual(ahead(owned, 3), found(1))
    const waiter = (place: number, resource = "m") => (history: History) => queue(history, "z", place, "c3", resource)
    const silent = (before: (history: History) => void) => (history: History) => (before(history))
    assert.strictEqual(ahead(silent(waiter(4)), 2), "")
    assert.strictEqual(ahead(silent(waiter(5)), 2), found())
    assert.strictEqual(ahead(silent(waiter(4, "n")), 2), found())
  })

  it("counts only turns for this resource, until the waiter is served or leaves, or its process ends", () => {
    const then = (play: (history: History) => void) =>
      played((history) => {
        queue(history)
        play(history)
        others(history, 3)
      })
    assert.strictEqual(
      played((history) => {
        queue(history, "a", 5, "c1", "n")
        others(history, 3)
      }),
      ""
    )
    const served = (history: History) => (take(history, "a"), history.send("DEL", "owner:m", "a"))
    assert.strictEqual(then(served), "")
    assert.strictEqual(then((history) => history.send("ZREM", "queue:m", "a")), "")
    assert.strictEqual(then((history) => (history.send("ZREM", "queue:m", "a"), queue(history))), "")
    assert.strictEqual(then((history) => history.fault("kill")), "")
    assert.strictEqual(then((history) => history.note("crashed")), "")
    for (
      const play of [
        (history: History) => history.fault("kill", "c2"),
        (history: History) => history.fault("pause"),
        (history: History) => history.note("crashed", {}, "c2"),
        (history: History) => history.note("failed", {}, "c2"),
        (history: History) => history.note("any")
      ]
    ) assert.match(then(play), /others were granted m since 10.000 s, when 0 were ahead of a/)
  })

  it("counts only the last wait in a line", () => {
    const line = { line: (id: string) => id.split("/")[0]!, channel: undefined }
    const queuedTwice = (resource: string) =>
      played(
        (history) => {
          queue(history, "a/1")
          history.wait(10)
          queue(history, "a/2", 6, "c1", resource)
          others(history, 2)
        },
        {},
        line
      )
    assert.match(queuedTwice("m"), /^2 others were granted m since 10.010 s, when 0 were ahead of a\/2$/)
    assert.match(queuedTwice("n"), /^2 others were granted m since 10.000 s, when 0 were ahead of a\/1$/)
  })

  it("finds a waiter that waits longer than the turns take", () => {
    const waits = (millis: number, turns = 0) =>
      played((history) => {
        queue(history)
        others(history, turns)
        take(history, "a0", 60_000, "c2")
        history.send("DEL", "owner:m", "a0")
        history.wait(10_000 + millis - history.now)
      }, { barges: 10 })
    assert.strictEqual(waits(10_000), "")
    assert.strictEqual(waits(10_250), "a has waited for m for 10.250 s, while others had 1 turns")
    assert.strictEqual(waits(15_000, 1), "")
    assert.strictEqual(waits(15_250, 1), "a has waited for m for 15.250 s, while others had 2 turns")
  })

  it("restarts its count after a fault, or after the waiter was not subscribed", () => {
    const after = (disturb: (history: History) => void, calm: (history: History) => void, count: number) =>
      played((history) => {
        queue(history)
        others(history, 1)
        disturb(history)
        others(history, 3)
        calm(history)
        others(history, count)
      })
    const silent = (count: number) => after(unsubscribe, (history) => (history.wait(200), subscribe(history)), count)
    assert.strictEqual(silent(1), "")
    assert.strictEqual(silent(2), found(0, "11.000"))
    const paused = (count: number) =>
      after(
        (history) => void (history.client().process.state = "paused"),
        (history) => {
          history.client().process.state = "running"
          history.client().process.resumedAt = history.now
          history.wait(1200)
        },
        count
      )
    assert.strictEqual(paused(1), "")
    assert.strictEqual(paused(2), found(0, "12.000"))
    // The owner counts as ahead
    const owned = (count: number) =>
      played((history) => {
        queue(history)
        history.client().disturbedAt = history.now
        take(history, "x", 60_000)
        history.wait(1400)
        others(history, count)
      })
    assert.strictEqual(owned(2), "")
    assert.strictEqual(owned(3), found(1, "11.250"))
  })

  it("excuses a wait that the client ended during a fault, until the next request", () => {
    const ended =
      (fields: Record<string, string | number>, at: number | undefined, client = "c1") => (history: History) => {
        if (at !== undefined) history.client(client).disturbedAt = at
        history.note("waited", { resource: "m", ...fields }, client)
      }
    const then = (play: (history: History) => void, repeats = false) =>
      played((history) => {
        queue(history)
        history.wait(100)
        play(history)
        history.wait(2000)
        if (repeats) queue(history)
        others(history, 4)
      })
    assert.strictEqual(then(ended({ wait: 1 }, 9100)), "")
    assert.match(then(ended({ wait: 1 }, 9100), true), /^2 others were granted/)
    assert.match(then(ended({ wait: 1 }, 9000)), /others were granted/)
    assert.match(then(ended({ wait: 1 }, undefined)), /others were granted/)
    assert.match(then(ended({ wait: 1, resource: "n" }, 9100)), /others were granted/)
    assert.match(then(ended({ wait: 1 }, 9100, "c2")), /others were granted/)
    const twice = (
      history: History
    ) => (ended({ wait: 1, served: 1 }, 9100)(history), ended({ wait: 1 }, 9100)(history))
    assert.match(then(twice), /others were granted/)
    assert.strictEqual(then((history) => (twice(history), ended({ wait: 1 }, 9100)(history))), "")
  })

  it("excuses a late request from an id that was previously granted the mutex", () => {
    const late = (wasGranted: boolean, disturbedAt: number) =>
      played((history) => {
        if (wasGranted) {
          take(history, "a")
          history.send("DEL", "owner:m", "x")
        }
        history.client().disturbedAt = disturbedAt
        history.wait(100)
        queue(history)
        history.wait(2000)
        others(history, 4)
      })
    assert.strictEqual(late(true, 9100), "")
    assert.match(late(false, 9100), /others were granted/)
    assert.match(late(true, 9000), /others were granted/)
  })

  it("does not count a barge shortly after a release during faults", () => {
    const barges = (pause: number, phase: "safety" | "liveness", name = "foreign") =>
      played((history) => {
        history.enter(phase)
        queue(history)
        for (let i = 0; i < 3; i++) {
          others(history, 1, name)
          history.wait(pause - 100)
        }
      }, { notice: 500, foreign: (id: string) => id.startsWith("foreign") })
    assert.strictEqual(barges(500, "safety"), "")
    assert.match(barges(501, "safety"), /^2 others were granted/)
    assert.match(barges(500, "liveness"), /^2 others were granted/)
    assert.match(barges(500, "safety", "b"), /^2 others were granted/)
  })
})
