/** Tests the arrival-order checkers, with a hand-written history for each kind of violation. */
import { Checker } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { type History, lock, take, verdict } from "../support/handwritten.ts"

describe("first come, first served", () => {
  const played = (play: (history: History) => void, also = {}) =>
    verdict(Checker.rules.firstComeFirstServed, { ...lock, ...also })(play)
  const subscribe = (history: History, client: string, id: string) =>
    history.sendAs(client, "SUBSCRIBE", `channel:${id}`)
  const queue = (history: History, client: string, id: string, place: number, resource = "m") =>
    history.sendAs(client, "ZADD", `queue:${resource}`, String(place), id)
  const passed = (since = "0.100") => `m was granted to b although a has waited since ${since} s`

  /** `a` queues at 100 and `b` at 200, and `b` is granted the mutex at 300. */
  const overtaken = (
    before: (history: History) => void = () => {},
    { a = 1, b = 2 }: { readonly a?: number; readonly b?: number } = {}
  ) =>
    played((history) => {
      subscribe(history, "c1", "a")
      subscribe(history, "c2", "b")
      history.wait(100)
      queue(history, "c1", "a", a)
      history.wait(100)
      queue(history, "c2", "b", b)
      history.wait(100)
      before(history)
      take(history, "b", 1000, "c2")
    })

  it("compares places, and ranks a waiter without a place last", () => {
    assert.strictEqual(overtaken(), passed())
    assert.strictEqual(overtaken(() => {}, { a: 3 }), "")
    assert.strictEqual(overtaken(() => {}, { a: 2 }), "")
    const newcomer = played((history) => {
      subscribe(history, "c1", "a")
      queue(history, "c1", "a", 1_000_000)
      take(history, "b")
    })
    assert.strictEqual(newcomer, passed("0.000"))
  })

  it("measures a wait from its first request, and ranks it by its last place", () => {
    assert.strictEqual(overtaken((history) => queue(history, "c1", "a", 1.5)), passed())
    assert.strictEqual(overtaken((history) => queue(history, "c1", "a", 3)), "")
    assert.strictEqual(
      overtaken((history) => {
        history.state.lossAt = 300
        queue(history, "c1", "a", 1.5)
      }),
      ""
    )
  })

  it("forgets waiters that have been served, have released, or are not subscribed", () => {
    const unsubscribe = (history: History) => history.sendAs("c1", "UNSUBSCRIBE", "channel:a")
    const leave = (history: History) => history.send("ZREM", "queue:m", "a")
    assert.strictEqual(overtaken(unsubscribe), "")
    assert.strictEqual(overtaken(leave), "")
    // A late request from the released id does not count
    assert.strictEqual(overtaken((history) => (leave(history), queue(history, "c1", "a", 1))), "")
    assert.strictEqual(
      overtaken((history) => (unsubscribe(history), subscribe(history, "c1", "a"))),
      passed()
    )
    assert.strictEqual(
      overtaken((history) => {
        take(history, "a")
        history.send("DEL", "owner:m")
      }),
      ""
    )
    // `a` has no place until the next check
    assert.strictEqual(
      overtaken((history) => {
        unsubscribe(history)
        history.send("GET", "owner:m")
        subscribe(history, "c1", "a")
      }),
      ""
    )
    assert.strictEqual(
      overtaken((history) => {
        unsubscribe(history)
        history.send("GET", "owner:m")
        queue(history, "c1", "a", 1)
      }),
      ""
    )
  })

  it("compares all waiters if they do not need subscriptions", () => {
    const polling = (between: (history: History) => void = () => {}) =>
      played((history) => {
        queue(history, "c1", "a", 1)
        between(history)
        take(history, "b", 1000, "c2")
      }, { channel: undefined })
    assert.strictEqual(polling(), passed("0.000"))
    assert.strictEqual(polling((history) => history.send("ZREM", "queue:m", "a")), "")
    assert.strictEqual(polling((history) => history.note("crashed")), "")
    assert.strictEqual(polling((history) => history.fault("kill")), "")
    assert.strictEqual(polling((history) => history.note("crashed", {}, "c2")), passed("0.000"))
  })

  it("compares waiters for the same resource, but not within one line", () => {
    const elsewhere = played((history) => {
      subscribe(history, "c1", "a")
      queue(history, "c1", "a", 1, "n")
      take(history, "b")
    })
    assert.strictEqual(elsewhere, "")
    const inLine = played((history) => {
      subscribe(history, "c1", "a")
      queue(history, "c1", "a", 1)
      take(history, "b")
    }, { line: () => "all" })
    assert.strictEqual(inLine, "")
    const served = overtaken((history) => (take(history, "b"), history.send("DEL", "owner:m", "b")))
    assert.strictEqual(served, `${passed()}\n${passed()}`)
  })

  it("accepts a call that grants the mutex and then queues a waiter", () => {
    const both = (args: ReadonlyArray<string>) => args[0] === "EVAL" ? [{ resource: "m", id: "a", place: 1 }] : []
    const called = played((history) => {
      subscribe(history, "c1", "a")
      history.send("EVAL", "redis.call('SET', KEYS[1], 'b')", "1", "owner:m")
    }, { queued: both })
    assert.strictEqual(called, "")
  })

  it("excuses data loss, server clock steps, and faults that affect the waiter after it has queued", () => {
    for (const what of ["lossAt", "serverStepAt"] as const) {
      const since = (at: number) => overtaken((history) => void (history.state[what] = at))
      assert.strictEqual(since(100), "")
      assert.strictEqual(since(99), passed())
    }
    const fault = (client: string, at: number) => overtaken((history) => void (history.client(client).disturbedAt = at))
    assert.strictEqual(fault("c1", 100), "")
    assert.strictEqual(fault("c1", 99), passed())
    assert.strictEqual(fault("c2", 300), passed())
  })

  it("excuses a later waiter with a smaller place after a clock step", () => {
    const later = (stepAt: number, pause: number) =>
      played((history) => {
        history.state.serverStepAt = stepAt
        subscribe(history, "c1", "a")
        history.wait(100)
        queue(history, "c2", "b", 2)
        history.wait(pause)
        queue(history, "c1", "a", 1)
        history.wait(100)
        take(history, "b", 1000, "c2")
      })
    assert.strictEqual(later(-Infinity, 100), passed("0.200"))
    assert.strictEqual(later(0, 100), "")
    assert.strictEqual(later(0, 0), "")
    assert.strictEqual(overtaken((history) => void (history.state.serverStepAt = 0)), passed())
  })
})

describe("in order within a process", () => {
  const ask = (history: History, wait: number, more = {}, client = "c1") =>
    history.note("waiting", { resource: "m", wait, ...more }, client)
  const serve = (history: History, wait: number, served = 1, client = "c1") =>
    history.note("waited", { resource: "m", wait, served }, client)
  const order = (play: (history: History) => void, after: (history: History) => void = () => {}) =>
    verdict(Checker.rules.inOrderWithinLines, lock)((history) => {
      play(history)
      after(history)
      history.wait(1)
      history.note("any")
    })
  const passed = "c1#1/2 was served before c1#1/1, which has waited since 0.100 s"
  const both = (first = {}, second = {}) => (history: History) => {
    history.wait(100)
    ask(history, 1, first)
    ask(history, 2, second)
    history.wait(100)
    serve(history, 2)
  }

  it("finds a waiter that is served before an earlier one in the same process and for the same resource", () => {
    assert.strictEqual(order(both()), passed)
    assert.strictEqual(order(both({}, { resource: "n" })), "")
    assert.strictEqual(order((history) => (ask(history, 1), ask(history, 2), serve(history, 1))), "")
    assert.strictEqual(order((history) => (ask(history, 1), ask(history, 2), serve(history, 2, 0))), "")
    assert.strictEqual(order((history) => (ask(history, 1, {}, "c2"), ask(history, 2), serve(history, 2))), "")
    assert.strictEqual(order((history) => (ask(history, 1), serve(history, 2))), "")
    const restarted = order((history) => {
      ask(history, 1)
      history.client().generation++
      ask(history, 2)
      serve(history, 2)
    })
    assert.strictEqual(restarted, "")
  })

  it("accepts an earlier waiter that gives up or requests again at the same instant", () => {
    assert.strictEqual(order(both(), (history) => serve(history, 1, 0)), "")
    assert.strictEqual(order(both(), (history) => (serve(history, 1, 0), ask(history, 1))), "")
    assert.strictEqual(order(both(), (history) => (history.note("any"), serve(history, 1, 0))), "")
    assert.strictEqual(order(both(), (history) => history.note("any")), passed)
    assert.match(order(both(), (history) => (history.wait(1), serve(history, 1, 0))), /^c1#1\/2 was served before/)
  })

  it("excuses waiters with later requests, unordered processes, faults, and killed processes", () => {
    assert.strictEqual(order(both({ recovery: 1 })), "")
    assert.strictEqual(order(both({}, { recovery: 1 })), passed)
    const unordered = (from: number, until: number) =>
      order((history) => {
        const { pace } = history.client().process.processor
        history.wait(100)
        for (const [step, run] of [() => ask(history, 1), () => ask(history, 2), () => serve(history, 2)].entries()) {
          pace.isOrdered = step < from || step >= until
          run()
        }
      })
    assert.strictEqual(unordered(0, 1), "")
    assert.strictEqual(unordered(1, 2), passed)
    assert.strictEqual(unordered(2, 3), "")
    const disturbed = (at: number, client = "c1") =>
      order((history) => (both()(history), history.client(client).disturbedAt = at))
    assert.strictEqual(disturbed(100), passed)
    const before = (at: number) => order((history) => (history.client().disturbedAt = at, both()(history)))
    assert.strictEqual(before(100), "")
    assert.strictEqual(before(99), passed)
    assert.strictEqual(
      order((history) => (ask(history, 1), history.fault("kill"), ask(history, 2), serve(history, 2))),
      ""
    )
    const alive = (fault: string, client: string) =>
      order((history) => {
        history.wait(100)
        ask(history, 1)
        history.fault(fault, client)
        ask(history, 2)
        serve(history, 2)
      })
    assert.strictEqual(alive("kill", "c2"), passed)
    assert.strictEqual(alive("pause", "c1"), passed)
  })
})
