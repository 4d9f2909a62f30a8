/** Tests the checkers for waiters, with a hand-written history for each kind of violation. */
import { Checker } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { type History, lock, take, verdict } from "../support/handwritten.ts"

const wait = (history: History, more = {}, client = "c1") =>
  history.note("waiting", { resource: "m", wait: 1, ...more }, client)
const waited = (history: History, client = "c1") => history.note("waited", { resource: "m", wait: 1 }, client)

describe("nobody sleeps while the lock is free", () => {
  const sleeps = (play: (history: History) => void, recovery?: number) =>
    verdict(Checker.rules.nobodyOversleeps({ bound: 1000, afterLoss: 5000, recovery }), lock)(play)
  const slept = (name: string, seconds: string) => `${name} has slept for ${seconds} s although m is free`

  it("finds a sleeper by checking every 250 ms", () => {
    const sleeper = (millis: number) => sleeps((history) => (wait(history), history.wait(millis)))
    // The first check finds the lock free
    assert.strictEqual(sleeper(1499), "")
    assert.strictEqual(sleeper(1500), slept("c1", "1.250"))
  })

  it("measures from the release, the end of the lease, or the start of the wait", () => {
    const after = (play: (history: History) => void, millis: number) =>
      sleeps((history) => {
        wait(history)
        take(history, "a", 5000)
        history.wait(2000)
        play(history)
        history.wait(millis)
      })
    assert.strictEqual(after(() => {}, 2500), "")
    const release = (history: History) => history.send("DEL", "owner:m", "a")
    // The first check after the release finds it free
    assert.strictEqual(after(release, 1250), "")
    assert.strictEqual(after(release, 1500), slept("c1", "1.250"))
    assert.strictEqual(after((history) => (release(history), history.wait(900), take(history, "b", 100)), 1000), "")
    assert.strictEqual(after((history) => (waited(history), release(history)), 5000), "")
    assert.strictEqual(
      after((history) => (waited(history), release(history), wait(history)), 1500),
      slept("c1", "1.250")
    )
  })

  it("starts over when the lock is granted between two checks", () => {
    assert.strictEqual(
      sleeps((history) => {
        wait(history)
        history.wait(900)
        take(history, "b", 1)
        history.send("DEL", "owner:m", "b")
        history.wait(1000)
      }),
      ""
    )
  })

  it("starts over when a server clock step restores an expired owner", () => {
    assert.strictEqual(
      sleeps((history) => {
        wait(history)
        take(history, "a", 248)
        // A check finds the lease expired before the server removes it
        history.wait(250)
        history.state.serverStepAt = history.now
        history.state.server.stepClock(-200)
        history.send("PEXPIRE", "owner:m", "60000")
        history.wait(10_000)
        history.send("DEL", "owner:m", "a")
        history.wait(1000)
      }),
      ""
    )
  })

  it("ignores waiters for another resource, and waiters in processes that are not running or are gone", () => {
    const gone = (play: (history: History) => void) =>
      sleeps((history) => {
        wait(history)
        play(history)
        history.wait(3000)
      })
    assert.strictEqual(gone((history) => (waited(history), wait(history, { resource: "x" }))), "")
    assert.strictEqual(gone((history) => (history.client().process.state = "paused")), "")
    assert.strictEqual(gone((history) => history.fault("kill")), "")
    assert.strictEqual(gone((history) => history.note("crashed")), "")
    assert.match(gone((history) => history.fault("kill", "c2")), /^c1 has slept/)
    assert.match(gone((history) => history.fault("pause")), /^c1 has slept/)
    assert.match(gone((history) => history.note("crashed", {}, "c2")), /^c1 has slept/)
    assert.match(gone((history) => history.note("granted", { wait: 1 })), /^c1 has slept/)
    // The same number in another process
    assert.match(gone((history) => waited(history, "c2")), /^c1 has slept/)
    assert.match(
      gone((history) => (history.client().generation++, waited(history), history.client().generation--)),
      /^c1 has slept/
    )
  })

  it("measures from when a waiter recovers from a fault or resumes", () => {
    const disturbed = (set: (history: History) => void, millis: number, more = {}, recovery?: number) =>
      sleeps((history) => {
        wait(history, more)
        set(history)
        history.wait(millis)
      }, recovery)
    const fault = (history: History) => void (history.client().disturbedAt = 1000)
    assert.strictEqual(disturbed(fault, 2000), "")
    assert.match(disturbed(fault, 2250), /1\.250 s/)
    assert.strictEqual(disturbed(fault, 2500, {}, 500), "")
    assert.match(disturbed(fault, 2750, {}, 500), /1\.250 s/)
    assert.strictEqual(disturbed(fault, 3000, { recovery: 1000 }, 500), "")
    assert.match(disturbed(fault, 3250, { recovery: 1000 }, 500), /1\.250 s/)
    const resumed = (history: History) => void (history.client().process.resumedAt = 1000)
    assert.strictEqual(disturbed(resumed, 2000), "")
    assert.match(disturbed(resumed, 2250), /1\.250 s/)
  })

  it("allows more time after data loss or a server clock step", () => {
    for (const what of ["lossAt", "serverStepAt"] as const) {
      const after = (at: number, millis: number) =>
        sleeps((history) => {
          history.state[what] = at
          wait(history)
          history.wait(millis)
        })
      assert.strictEqual(after(500, 5250), "")
      assert.strictEqual(after(500, 5500), slept("c1", "5.250"))
      // After five seconds, the normal limit applies again
      assert.strictEqual(after(-3500, 1500), "")
      assert.strictEqual(after(-3501, 1500), slept("c1", "1.250"))
    }
  })

  it("allows more time if two other processes are unresponsive", () => {
    const silent = (set: (history: History) => void, recovery = 0) =>
      sleeps((history) => {
        wait(history)
        set(history)
        history.wait(2000)
      }, recovery)
    const dead = (...names: ReadonlyArray<string>) => (history: History) => {
      for (const name of names) history.client(name).process.state = "dead"
    }
    assert.match(silent(dead("c2")), /c1 has slept/)
    assert.strictEqual(silent(dead("c2", "c3")), "")
    const disturbed = (at: number) => (history: History) => {
      for (const name of ["c2", "c3"]) history.client(name).disturbedAt = at
    }
    // The lock has been free since the first check, at 250 ms
    assert.strictEqual(silent(disturbed(-750)), "")
    assert.match(silent(disturbed(-751)), /c1 has slept/)
    assert.strictEqual(silent(disturbed(-1250), 500), "")
    assert.match(silent(disturbed(-1251), 500), /c1 has slept/)
    // The waiter itself does not count
    assert.match(silent((history) => (disturbed(-2000)(history), dead("c2")(history))), /c1 has slept/)
    const late = sleeps((history) => {
      wait(history)
      dead("c2", "c3")(history)
      history.wait(5500)
    })
    assert.strictEqual(late, slept("c1", "5.250"))
  })
})

describe("everybody is served", () => {
  const served = (play: (history: History) => void) => {
    let hasConverged = true
    const found = verdict(Checker.rules.everybodyIsServed, lock)((history) => {
      history.wait(500)
      play(history)
      hasConverged = history.converge()
    })
    assert.strictEqual(hasConverged, found === "")
    return found
  }
  const enter = (history: History) => (history.wait(500), history.enter("liveness"))
  const found = "c1 has waited for m since 0.500 s, and faults ended at 1.000 s"

  it("finds clients that were already waiting when the faults ended", () => {
    assert.strictEqual(served((history) => (wait(history), enter(history))), found)
    assert.strictEqual(served((history) => (wait(history), enter(history), waited(history))), "")
    assert.strictEqual(served((history) => (enter(history), history.wait(1), wait(history))), "")
    assert.strictEqual(
      served((history) => (enter(history), wait(history))),
      "c1 has waited for m since 1.000 s, and faults ended at 1.000 s"
    )
    assert.strictEqual(served((history) => (wait(history), enter(history), history.fault("kill"))), "")
  })

  it("measures from the start of the liveness phase, not of another phase", () => {
    assert.strictEqual(
      served((history) => {
        wait(history)
        enter(history)
        history.wait(500)
        history.enter("safety")
      }),
      found
    )
  })
})
