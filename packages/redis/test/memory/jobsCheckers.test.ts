/** Tests the job checkers with a hand-written history for each kind of violation. */
import { assert, describe, it } from "@effect/vitest"
import { jobsRunAsScheduled } from "../simulate/jobsChecker.ts"
import { ordersAreFollowed } from "../simulate/jobsOrderChecker.ts"
import { command, type Event, found, note, type View } from "../support/checkerHistory.ts"

const key = "simba:{m}:jobs"

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
      key,
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
      "0",
      "0"
    ],
    [reply]
  )
const end = (id: string, outcome: string) => command(0, ["EVALSHA", "sha", "1", key, "j", id, outcome])
const order = (name: string, job = "j", { reply = "1", when = 1 } = {}) =>
  command(when, ["EVALSHA", "sha", "2", "simba:{m}", key, name, job, ""], reply)
const forget = (reply: number, of = key) => command(1, ["DEL", of], reply)

describe("jobs run as scheduled", () => {
  const rules = { mutex: "m", jobs: [{ job: "j", period: 1000, attempts: 2 }], recovery: 5000 }
  const known: Partial<View> = { hash: () => new Map([["at:j", "1"]]), field: () => undefined }
  const kept = (events: ReadonlyArray<Event>, view: Partial<View> = {}) =>
    found(jobsRunAsScheduled(rules), events, { ...known, ...view })
  const run = (at: number, instant: number, { attempt = 1, client = "c1", token = 7 } = {}) =>
    note(at, "run", { job: "j", instant, attempt, token }, client)
  const ended = (at: number, { client = "c1", token = 7 } = {}) => note(at, "run ended", { job: "j", token }, client)

  it("finds runs that start twice, too often, concurrently, or under an older token", () => {
    assert.strictEqual(kept([run(50_000, 1000), ended(50_001), run(50_002, 2000), ended(50_003)]), "")
    const twice = [run(50_000, 1000), ended(50_001), run(50_002, 1000)]
    assert.strictEqual(kept(twice), "j of 1000, attempt 1 starts twice")
    assert.strictEqual(kept(twice, { lossAt: () => 40_000 }), "")
    assert.strictEqual(kept(twice, { serverStepAt: () => 40_000 }), "")
    assert.strictEqual(kept(twice, { lossAt: () => 39_999 }), "j of 1000, attempt 1 starts twice")
    const requested = [claim(1, "a", 1000), run(50_000, 1000), ended(50_001)]
    const [late, later] = [claim(2, "b", 1000), claim(2, "b", 1000, 0, { mode: "manual" })]
    assert.strictEqual(kept([...requested, later, run(50_002, 1000)]), "")
    assert.strictEqual(kept([...requested, late, run(50_002, 1000)]), "j of 1000, attempt 1 starts twice")
    assert.strictEqual(
      kept([...requested, later, run(50_002, 1000), ended(50_003), run(50_004, 1000)]),
      "j of 1000, attempt 1 starts twice"
    )
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

  it("accounts for operators who change a schedule, resume a job or delete its state", () => {
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
    const at = { "at:j": "5000" }
    for (const job of ["j", ""]) {
      assert.strictEqual(claims(1000, 6000, 0, at, [order("Resume", job)]), "")
      assert.match(claims(1000, 6000, 4, at, [order("Resume", job)]), /with 4 missed runs instead of 0/)
    }
    for (const ignored of [order("Resume", "j", { reply: "0" }), order("Resume", "k"), order("Pause")]) {
      assert.match(claims(1000, 6000, 0, at, [ignored]), /with 0 missed runs instead of 4/)
    }
    assert.strictEqual(claims(1000, 6000, 0, {}, [forget(1)]), "")
    assert.match(claims(1000, 6000, 0, {}, [forget(0)]), /instead of 4/)
    assert.match(claims(1000, 6000, 0, {}, [forget(1, "other")]), /instead of 4/)
  })

  it("allows a run that never started to count as missed, unless it was the second attempt or was retried", () => {
    const claims = (missed: number, attempt: string, between: ReadonlyArray<Event> = []) =>
      kept([claim(0, "a", 1000), end("a", "unstarted"), ...between, claim(2, "b", 2000, missed)], {
        field: (_, name) => name === "attempt:j" ? attempt : undefined
      })
    for (const missed of [0, 1]) assert.strictEqual(claims(missed, "0"), "")
    assert.match(claims(2, "0"), /with 2 missed runs instead of 0/)
    for (const wrong of [claims(1, "1"), claims(1, "0", [claim(1, "c", 1000)])]) {
      assert.match(wrong, /with 1 missed runs instead of 0/)
    }
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

describe("orders are followed", () => {
  /** The history may change the job hash and the time of the last loss between its events. */
  interface State {
    readonly hash: Map<string, string>
    lossAt: number
  }
  const followed = (play: (state: State) => Iterable<Event>) => {
    const state: State = { hash: new Map(), lossAt: -Infinity }
    return found(ordersAreFollowed({ mutex: "m", jobs: [{ job: "j" }, { job: "k" }] }), play(state), {
      field: (_, name) => state.hash.get(name),
      hash: () => state.hash,
      lossAt: () => state.lossAt,
      serverNow: () => 5000.9
    })
  }
  const manual = (when: number, id: string, at: number) => claim(when, id, at, 0, { mode: "manual" })
  /** Requests a run of `j` for the time 1000. */
  const request = function*({ hash }: State, reply = "1") {
    hash.set("wanted:j", "1000")
    yield order("Run", "j", { reply })
    hash.delete("wanted:j")
  }

  it("finds a run that is claimed while its job is paused", () => {
    const found = "a run of j for 1000 is claimed while it is paused"
    const run = claim(2, "a", 1000)
    assert.strictEqual(followed(() => [order("Pause"), run]), found)
    assert.strictEqual(followed(() => [order("Pause", ""), run]), found)
    assert.strictEqual(followed(() => [order("Pause", "k"), run]), "")
    assert.strictEqual(followed(() => [order("Pause", "j", { reply: "0" }), run]), "")
    assert.strictEqual(followed(() => [order("Pause"), order("Resume"), run]), "")
    assert.strictEqual(followed(() => [order("Pause"), order("Resume", "j", { reply: "0" }), run]), found)
    assert.strictEqual(followed(() => [order("Pause"), forget(1), run]), "")
    assert.strictEqual(followed(() => [order("Pause"), forget(0), run]), found)
    assert.strictEqual(followed(() => [run, order("Pause"), run]), "")
    assert.strictEqual(followed(() => [order("Pause"), claim(2, "a", 1000, 1, { mode: "miss" })]), "")
    assert.strictEqual(followed(() => [order("Pause"), claim(2, "a", 1000, 0, { reply: "Taken" })]), "")
    const lost = (...fields: ReadonlyArray<string>) =>
      followed(function*(state) {
        yield order("Pause")
        state.lossAt = 1
        for (const field of fields) state.hash.set(field, "1")
        yield run
        state.hash.clear()
      })
    assert.strictEqual(lost(), "")
    assert.strictEqual(lost("at:j", "paused:k"), "")
    for (const field of ["paused", "paused:j"]) assert.strictEqual(lost(field), found)
  })

  it("finds a resumed job that may catch up on times scheduled during its pause", () => {
    const resumed = (at: number, pause: string, resume: string) =>
      followed(({ hash }) => {
        for (const job of ["j", "k"]) hash.set(`at:${job}`, `${at}`)
        return [order("Pause", pause), order("Resume", resume)]
      })
    const found = (job: string) => `${job} is resumed, but may catch up on instants after 4999`
    assert.strictEqual(resumed(5000, "j", "j"), "")
    assert.strictEqual(resumed(4999, "j", "j"), found("j"))
    assert.strictEqual(resumed(4999, "", ""), `${found("j")}\n${found("k")}`)
    assert.strictEqual(resumed(4999, "k", "j"), "")
    assert.strictEqual(followed(() => [order("Pause"), order("Resume")]), "")
  })

  it("finds a requested run that is claimed twice, or for another time", () => {
    const claimed = (claims: ReadonlyArray<Event>, { lossAt = -Infinity, reply = "1" } = {}) =>
      followed(function*(state) {
        yield* request(state, reply)
        state.lossAt = lossAt
        yield* claims
      })
    const found = (at: number) => `a run of j that was requested at ${at} is claimed again`
    assert.strictEqual(claimed([manual(2, "a", 1000)]), "")
    assert.strictEqual(claimed([manual(2, "a", 1000), manual(3, "a", 1000)]), "")
    assert.strictEqual(claimed([manual(2, "a", 1000), manual(3, "b", 1000)]), found(1000))
    assert.strictEqual(claimed([manual(2, "a", 999)]), found(999))
    assert.strictEqual(claimed([manual(2, "a", 1000)], { reply: "0" }), found(1000))
    assert.strictEqual(claimed([forget(1), manual(2, "a", 1000)]), found(1000))
    assert.strictEqual(claimed([manual(2, "a", 999)], { lossAt: 0 }), "")
    assert.strictEqual(claimed([claim(2, "b", 999), manual(2, "a", 1000)]), "")
  })

  it("finds a request that is lost with its unstarted run", () => {
    const found = "the request for a run of j, which did not start, is forgotten"
    const unstarted = (
      { before = [], claim = "a", lossAt = -Infinity, outcome = "unstarted" }: {
        readonly before?: ReadonlyArray<Event>
        readonly claim?: string
        readonly lossAt?: number
        readonly outcome?: string
      } = {}
    ) =>
      followed(function*(state) {
        yield* request(state)
        yield manual(2, "a", 1000)
        state.lossAt = lossAt
        yield* before
        yield end(claim, outcome)
      })
    assert.strictEqual(unstarted(), found)
    assert.strictEqual(unstarted({ outcome: "success" }), "")
    assert.strictEqual(unstarted({ claim: "b" }), "")
    // The leader was lost, and the next one has started another run
    assert.strictEqual(unstarted({ before: [claim(3, "b", 2000)] }), "")
    assert.strictEqual(unstarted({ before: [claim(3, "b", 2000, 1, { mode: "miss" })] }), found)
    assert.strictEqual(unstarted({ lossAt: 2 }), "")
    assert.strictEqual(unstarted({ lossAt: 1 }), found)
    const forgotten = (at: number) => command(at, ["DEL", key], 1)
    assert.strictEqual(unstarted({ before: [forgotten(2)] }), "")
    assert.strictEqual(unstarted({ before: [forgotten(1)] }), found)
    const repeated = (next: ReadonlyArray<Event>) =>
      followed(function*(state) {
        yield* request(state)
        yield manual(2, "a", 1000)
        state.hash.set("wanted:j", "1000")
        yield end("a", "unstarted")
        state.hash.clear()
        yield* next
      })
    assert.strictEqual(repeated([manual(3, "b", 1000)]), "")
    assert.strictEqual(repeated([]), "the request for a run of j is forgotten")
    const newer = followed(function*(state) {
      yield* request(state)
      yield manual(2, "a", 1000)
      yield* request(state)
      yield end("a", "unstarted")
      yield manual(3, "b", 1000)
    })
    assert.strictEqual(newer, "")
  })

  it("finds jobs that stay paused, and requests that have not been followed, when the faults are over", () => {
    const left = (field: string) => followed(({ hash }) => (hash.set(field, "1000"), []))
    assert.strictEqual(left("paused"), "not converged\nj is still paused\nk is still paused")
    assert.strictEqual(left("paused:k"), "not converged\nk is still paused")
    assert.strictEqual(left("wanted:j"), "not converged\na requested run of j has not started")
    assert.strictEqual(left("at:j"), "")
    const wanted = followed(({ hash }) => (hash.set("wanted:j", "1000"), [order("Run")]))
    assert.strictEqual(wanted, left("wanted:j"))
    const requested = (lossAt: number, ...after: ReadonlyArray<Event>) =>
      followed(function*(state) {
        yield* request(state)
        state.lossAt = lossAt
        yield* after
      })
    assert.strictEqual(requested(0), "the request for a run of j is forgotten")
    assert.strictEqual(requested(1), "")
    assert.strictEqual(requested(-Infinity, forget(1)), "")
    assert.strictEqual(requested(-Infinity, forget(1, "other")), "the request for a run of j is forgotten")
  })

  it("finds a job that operators cannot read", () => {
    const read = (kind: string) => followed(() => [note(1, kind, { job: "j", problem: "no schedule" })])
    assert.strictEqual(read("malformed"), "an operator cannot read j: no schedule")
    assert.strictEqual(read("run"), "")
  })
})
