/** Tests the checkers in `simulate` with a hand-written history for each kind of violation. */
import { tokenStride } from "@effect-simba/core/MutexStore"
import type { Checker, Simulation } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { forcedReleasesAreHeard } from "../simulate/forcedReleases.ts"
import { measure } from "../simulate/freeWaits.ts"
import { jobsRunAsScheduled } from "../simulate/jobsChecker.ts"
import { turnsEnd } from "../simulate/localTurns.ts"

type View = Parameters<Checker.Checker["start"]>[0]
type Event = Simulation.Event
type Fields = Readonly<Record<string, string | number>>

const calm: Partial<View> = {
  lossAt: () => -Infinity,
  serverStepAt: () => -Infinity,
  clockStepAt: () => -Infinity,
  disturbedAt: () => -Infinity,
  resumedAt: () => -Infinity,
  lateness: () => 0,
  subscribers: () => 1
}

/** Returns the violations that a checker finds during and at the end of the history. */
const found = (checker: Checker.Checker, events: ReadonlyArray<Event>, view: Partial<View> = {}) => {
  const messages: Array<string> = []
  const violated = (message: string) => void messages.push(message)
  const { isConverged, onConverged, onEvent } = checker.start({ ...calm, ...view, violated } as View)
  for (const event of events) onEvent?.(event)
  const hasConverged = isConverged?.() ?? true
  onConverged?.()
  return hasConverged ? messages.join("\n") : `not converged\n${messages.join("\n")}`
}

const note = (at: number, kind: string, fields: Fields, client = "c1"): Event => ({
  _tag: "Note",
  at,
  client,
  generation: 1,
  kind,
  fields
})
const command = (at: number, args: ReadonlyArray<string>, reply: unknown = "OK"): Event =>
  ({ _tag: "Command", at, command: { client: "c1", role: "commands", args, reply, micros: 0 } }) as Event
const owner = (at: number, from: string | undefined, to: string | undefined, args: ReadonlyArray<string> = []): Event =>
  ({
    _tag: "Owner",
    at,
    resource: "m",
    from,
    to,
    since: 0,
    deadline: 0,
    token: 1,
    command: { client: "c1", role: "commands", args, reply: "OK", micros: 0 }
  }) as Event

describe("turns end", () => {
  const granted = (at: number, token: number, id = "a") => note(at, "granted", { id, token })
  const step = (at: number, kind = "step") => note(at, kind, { id: "a" })
  const turns = (events: ReadonlyArray<Event>, view?: Partial<View>, localTurn = 1000) =>
    found(turnsEnd({ localTurn }), events, view)
  const late = (age: number) => `a went to another fiber ${age} ms after its turn began`

  it("finds late hand-offs from the old holder's last note, allowing for a slow clock", () => {
    const after = (age: number, view?: Partial<View>) =>
      turns([granted(500, 100), step(500 + age), granted(9000, 101)], view)
    assert.strictEqual(after(1021), "")
    assert.strictEqual(after(1022), late(1022))
    assert.strictEqual(turns([granted(500, 100), step(600), step(1600, "waiting"), granted(9000, 101)]), "")
    // A turn spans all of its holders
    assert.strictEqual(
      turns([granted(500, 100), step(1400), granted(1401, 101), step(1600), granted(1601, 102)]),
      late(1100)
    )
    // The turn's clock stops while the machine sleeps
    assert.strictEqual(after(1022, { resumedAt: () => 500 }), "")
    assert.strictEqual(after(1022, { resumedAt: () => 499 }), late(1022))
  })

  it("ignores grants, other owners, and the same holder", () => {
    assert.strictEqual(turns([granted(0, 100), step(5000), granted(5001, 100 + tokenStride)]), "")
    assert.strictEqual(turns([granted(0, 100), step(5000), granted(5001, 99 + tokenStride)]), late(5000))
    assert.strictEqual(turns([granted(0, 100), step(5000), granted(5001, 100)]), "")
    assert.strictEqual(turns([granted(0, 100), step(5000), granted(5001, 101, "b")]), "")
  })

  it("finds every hand-off if local turns are disabled", () => {
    const disabled = "a went to another fiber with token 101, although local turns are disabled"
    assert.strictEqual(turns([granted(0, 100), granted(0, 101)], {}, 0), disabled)
    assert.strictEqual(turns([granted(0, 100), granted(0, 100 + tokenStride)], {}, 0), "")
  })
})

describe("forced releases are noticed", () => {
  const lock = {
    forced: (args: ReadonlyArray<string>) => args[0] === "force" ? { resource: "m", id: args[1]! } : undefined,
    channel: (_: string, id: string) => `channel:${id}`
  } as unknown as View["lock"]
  const forced = owner(1000, "a", undefined, ["force", "a"])
  const believes = (at: number, kind = "ensured") => note(at, kind, { id: "a" })
  const noticed = (events: ReadonlyArray<Event>, view: Partial<View> = {}) =>
    found(forcedReleasesAreHeard({ within: 100, recovery: 50 }), events, { lock, ...view })
  const late = (millis = 101) => `a relies on its lease ${millis} ms after its forced release`

  it("finds clients that rely on the lease for too long", () => {
    for (const kind of ["ensured", "begin", "step"]) {
      assert.strictEqual(noticed([forced, believes(1100, kind)]), "")
      assert.strictEqual(noticed([forced, believes(1101, kind)]), late())
    }
    assert.strictEqual(noticed([forced, believes(2000, "end")]), "")
    assert.strictEqual(noticed([forced, note(2000, "step", { id: "b" })]), "")
    assert.strictEqual(noticed([owner(1000, "a", undefined, ["DEL"]), believes(2000)]), "")
    assert.strictEqual(noticed([owner(1000, "a", undefined, ["force", "b"]), believes(2000)]), "")
    assert.strictEqual(noticed([forced, owner(1200, undefined, "a"), believes(2000)]), "")
    assert.strictEqual(noticed([forced, owner(1200, undefined, "b"), believes(1101)]), late())
    assert.strictEqual(noticed([forced, believes(1110)], { lateness: () => 10 }), "")
    assert.strictEqual(noticed([forced, believes(1111)], { lateness: () => 10 }), late(111))
  })

  it("starts at the first note about the grant if that is later", () => {
    const granted = (at: number) => note(at, "granted", { id: "a" })
    assert.strictEqual(noticed([forced, granted(1050), believes(1150)]), "")
    assert.strictEqual(noticed([forced, granted(1050), believes(1151)]), late())
    assert.strictEqual(noticed([granted(0), forced, granted(1050), believes(1101)]), late())
  })

  it("excuses clients whose renewal failed or that may have missed the message", () => {
    const subscribe = (channel: string) => command(1010, ["SUBSCRIBE", channel])
    assert.strictEqual(noticed([forced, subscribe("channel:a"), believes(1101)]), "")
    assert.strictEqual(noticed([forced, subscribe("channel:b"), believes(1101)]), late())
    assert.strictEqual(noticed([forced, believes(1101)], { subscribers: () => 0 }), "")
    for (const what of ["disturbedAt", "resumedAt"] as const) {
      assert.strictEqual(noticed([forced, believes(1101)], { [what]: () => 950 }), "")
      assert.strictEqual(noticed([forced, believes(1101)], { [what]: () => 949 }), late())
    }
    const failed = (at: number, client = "c1", text = "1 lease(s) could not be renewed"): Event => ({
      _tag: "Log",
      at,
      client,
      level: "WARN",
      text
    })
    assert.strictEqual(noticed([forced, failed(1000), believes(1101)]), "")
    for (const log of [failed(999), failed(1000, "c2"), failed(1000, "c1", "any")]) {
      assert.strictEqual(noticed([forced, log, believes(1101)]), late())
    }
  })
})

describe("waits for a free mutex", () => {
  const waiting = (at: number, wait = 1, resource = "m") => note(at, "waiting", { wait, resource })
  const waited = (at: number, wait = 1) => note(at, "waited", { wait })

  it("start with the wait or the release, whichever is later, and end with a grant or the wait", () => {
    const longest = (events: ReadonlyArray<Event>) => {
      const { found, onEvent } = measure()
      return [Math.max(0, ...events.map(onEvent)), found.longest]
    }
    const held = [owner(0, undefined, "a"), waiting(100), owner(300, "a", undefined)]
    assert.deepStrictEqual(longest([...held, owner(350, undefined, "b")]), [50, 50])
    assert.deepStrictEqual(longest([...held, waited(340), owner(900, undefined, "b")]), [40, 40])
    assert.deepStrictEqual(longest([...held, waiting(400, 2), waited(410, 1), owner(420, undefined, "b")]), [110, 110])
    assert.deepStrictEqual(longest([owner(0, undefined, "a"), waiting(100), waited(900)]), [0, 0])
    assert.deepStrictEqual(longest([...held, waited(900, 2), owner(301, undefined, "b")]), [1, 1])
    assert.deepStrictEqual(longest([waiting(0, 1, "n"), ...held, owner(350, undefined, "b")]), [50, 50])
  })

  it("counts hand-overs to another owner", () => {
    const { found, onEvent } = measure()
    for (const to of ["a", "b", "b", undefined, "b", "a"]) onEvent(owner(0, undefined, to))
    assert.strictEqual(found.handOvers, 2)
  })
})

describe("jobs run as scheduled", () => {
  const rules = { mutex: "m", jobs: [{ job: "j", period: 1000, attempts: 2 }], recovery: 5000 }
  const known: Partial<View> = { hash: () => new Map([["at:j", "1"]]), field: () => undefined }
  const kept = (events: ReadonlyArray<Event>, view: Partial<View> = {}) =>
    found(jobsRunAsScheduled(rules), events, { ...known, ...view })
  const run = (at: number, instant: number, { attempt = 1, client = "c1", token = 7 } = {}) =>
    note(at, "run", { job: "j", instant, attempt, token }, client)
  const ended = (at: number, { client = "c1", token = 7 } = {}) => note(at, "run ended", { job: "j", token }, client)
  const claim = (
    when: number,
    id: string,
    at: number,
    missed = 0,
    { cause = "outage", mode = "run", reply = "Claimed" } = {}
  ) =>
    command(
      when,
      [
        "EVALSHA",
        "sha",
        "2",
        "simba:{m}",
        "simba:{m}:jobs",
        "id",
        "7",
        "j",
        id,
        mode,
        `${at}`,
        `${missed}`,
        cause,
        "0",
        "2",
        "0"
      ],
      [reply]
    )
  const end = (id: string, outcome: string) => command(0, ["EVALSHA", "sha", "1", "simba:{m}:jobs", "j", id, outcome])

  it("finds runs that start twice, too often, concurrently, or under an older token", () => {
    assert.strictEqual(kept([run(50_000, 1000), ended(50_001), run(50_002, 2000), ended(50_003)]), "")
    const twice = [run(50_000, 1000), ended(50_001), run(50_002, 1000)]
    assert.strictEqual(kept(twice), "j of 1000, attempt 1 starts twice")
    assert.strictEqual(kept(twice, { lossAt: () => 40_000 }), "")
    assert.strictEqual(kept(twice, { serverStepAt: () => 40_000 }), "")
    assert.strictEqual(kept(twice, { lossAt: () => 39_999 }), "j of 1000, attempt 1 starts twice")
    assert.strictEqual(kept([run(0, 1000, { attempt: 2 })]), "")
    assert.strictEqual(kept([run(0, 1000, { attempt: 3 })]), "j of 1000, attempt 3 exceeds the job's attempts")
    assert.strictEqual(
      kept([run(0, 1000), run(1, 2000)]),
      "j of 2000, attempt 1 starts before the run for 1000 has ended"
    )
    assert.strictEqual(kept([run(0, 1000), run(1, 2000, { token: 8 }), run(2, 3000, { token: 8, client: "c2" })]), "")
    const older = [run(50_000, 1000), run(50_001, 2000, { client: "c2", token: 6 })]
    assert.strictEqual(kept(older), "j of 2000, attempt 1 starts under token 6, after a run under 7")
    for (const what of ["lossAt", "clockStepAt"] as const) {
      assert.strictEqual(kept(older, { [what]: () => 40_000 }), "")
      assert.match(kept(older, { [what]: () => 39_999 }), /under token 6/)
    }
  })

  it("finds scheduled times that are neither run nor missed, and scheduled times missed without a known cause", () => {
    assert.strictEqual(kept([claim(0, "a", 1000), claim(1, "b", 4000, 2)]), "")
    const text = (missed: number, mode = "run", right = 2) =>
      `j goes from 1000 to 4000 (${mode}) with ${missed} missed runs instead of ${right}`
    assert.strictEqual(kept([claim(0, "a", 1000), claim(1, "b", 4000, 1)]), text(1))
    assert.strictEqual(kept([claim(0, "a", 1000), claim(1, "b", 4000, 3)]), text(3))
    assert.strictEqual(kept([claim(0, "a", 1000), claim(1, "b", 4000, 3, { mode: "miss" })]), "")
    assert.strictEqual(kept([claim(0, "a", 1000), claim(1, "b", 4000, 2, { mode: "miss" })]), text(2, "miss", 3))
    for (const ignored of [{ mode: "manual" }, { reply: "Taken" }]) {
      assert.strictEqual(kept([claim(0, "a", 1000), claim(1, "b", 4000, 9, ignored)]), "")
    }
    assert.strictEqual(kept([claim(0, "a", 1000), claim(1, "a", 4000, 9)]), "")
    assert.strictEqual(kept([claim(5, "a", 1000), claim(6, "b", 4000, 1)], { lossAt: () => 5 }), "")
    assert.strictEqual(kept([claim(5, "a", 1000), claim(6, "b", 4000, 1)], { lossAt: () => 4 }), text(1))
    assert.strictEqual(
      kept([claim(0, "a", 1000, 1, { cause: "" })]),
      "j misses 1 runs with the unknown cause \"\""
    )
  })

  it("takes account of operators who change a schedule, resume a job or delete its state", () => {
    const having = (fields: Record<string, string>) => ({ field: (_: string, name: string) => fields[name] })
    const claims = (from: number, to: number, missed: number, fields = {}, between: ReadonlyArray<Event> = []) =>
      kept([claim(0, "a", from), ...between, claim(2, "b", to, missed)], having(fields))
    assert.match(claims(1000, 1500, 0), /^j runs for 1500, which is not a scheduled time/)
    const override = { "override:j": "every 2000", "schedule:j": "every 500" }
    assert.strictEqual(claims(2000, 6000, 1, override), "")
    assert.match(claims(2000, 5000, 0, override), /not a scheduled time/)
    assert.strictEqual(claims(2000, 9000, 2, { "schedule:j": "cron UTC */3 * * * * *" }), "")
    const replaced = { "replaced:j": "1000 every 10\n4000 every 2000", "schedule:j": "every 1000" }
    assert.strictEqual(claims(2000, 6000, 2, replaced), "")
    assert.match(claims(2000, 6000, 3, replaced), /with 3 missed runs instead of 2/)
    const resume = (reply: string, job = "j", order = "Resume") =>
      command(1, ["EVALSHA", "sha", "2", "simba:{m}", "simba:{m}:jobs", order, job, ""], reply)
    const at = { "at:j": "5000" }
    for (const job of ["j", ""]) {
      // A leader that does not know about the resumption counts from its last claim
      for (const missed of [0, 4]) assert.strictEqual(claims(1000, 6000, missed, at, [resume("1", job)]), "")
      assert.match(claims(1000, 6000, 5, at, [resume("1", job)]), /with 5 missed runs instead of 0/)
    }
    for (const ignored of [resume("0"), resume("1", "k"), resume("1", "j", "Pause")]) {
      assert.match(claims(1000, 6000, 0, at, [ignored]), /with 0 missed runs instead of 4/)
    }
    const forget = (reply: number, key = "simba:{m}:jobs") => command(1, ["DEL", key], reply)
    assert.strictEqual(claims(1000, 6000, 0, {}, [forget(1)]), "")
    assert.match(claims(1000, 6000, 0, {}, [forget(0)]), /instead of 4/)
    assert.match(claims(1000, 6000, 0, {}, [forget(1, "other")]), /instead of 4/)
  })

  it("finds a claimed run that has an end but never started", () => {
    const began = "j of 1000 never started, but is recorded as success"
    assert.strictEqual(kept([claim(0, "a", 1000), end("a", "success")]), began)
    assert.strictEqual(kept([claim(0, "a", 1000), end("a", "unstarted")]), "")
    assert.strictEqual(kept([claim(0, "a", 1000), end("b", "success")]), "")
    assert.strictEqual(kept([claim(0, "a", 1000), run(1, 1000), end("a", "success")]), "")
    assert.strictEqual(kept([claim(0, "a", 1000), end("a", "success"), run(1, 1000)]), "")
    assert.strictEqual(kept([claim(0, "a", 1000), run(1, 2000), end("a", "success")]), began)
  })

  it("finds jobs that do not run again after the faults or have no record", () => {
    const liveness: Event = { _tag: "Phase", at: 1000, phase: "liveness" }
    const overdue = "j does not run again within 5000 ms after the last fault"
    assert.strictEqual(kept([liveness, run(6000, 1000)]), "")
    assert.strictEqual(kept([liveness, run(6001, 1000)]), overdue)
    assert.strictEqual(kept([run(0, 1000), liveness]), `not converged\n${overdue}`)
    assert.strictEqual(kept([], { hash: () => new Map() }), "j has no record on the server")
  })
})
