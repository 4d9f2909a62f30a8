/** Compares the plan for a job, in all small cases, with a model that lists the unsettled times. */
import type { JobRecord } from "@effect-simba/core/JobStore"
import { assert, describe, it } from "@effect/vitest"
import type { Next } from "../../src/internal/leadership/cronInstants.ts"
import { type Cause, type Decision, inForce, type Leader, plan } from "../../src/internal/leadership/jobPlan.ts"

type Spec = Parameters<typeof plan>[0]

const every = (period: number): Next => (after) => (Math.floor(after / period) + 1) * period

const period = 1000
const next = every(period)

const noRun: JobRecord = {
  at: 0,
  schedule: undefined,
  override: undefined,
  former: [],
  isPaused: false,
  wanted: undefined,
  run: undefined,
  success: undefined,
  missed: 0,
  cause: undefined
}

const ran = (run: Partial<NonNullable<JobRecord["run"]>>): JobRecord => ({
  ...noRun,
  run: {
    id: "1-aaaaaaaaaaaa:h",
    claim: "c",
    token: 7,
    scheduledAt: 0,
    attempt: 1,
    start: 0,
    end: undefined,
    outcome: undefined,
    ...run
  }
})

/** The unsettled scheduled times up to now. */
const instants = (at: number, now: number) => {
  const all: Array<number> = []
  for (let instant = next(at); instant <= now; instant = next(instant)) all.push(instant)
  return all
}

/** When the last run is retried. */
const repeatAt = (spec: Spec, { at, run }: JobRecord, leader: Leader, now: number) => {
  if (run?.scheduledAt !== at || run.outcome === "success" || run.attempt >= spec.attempts) return undefined
  const isOver = run.end !== undefined || run.token < leader.token
  const isYoung = now - at <= spec.catchUp || (run.outcome === "unstarted" && at >= leader.gained)
  if (!isOver || !isYoung) return undefined
  return run.attempt === 0 ? now : (run.end ?? leader.gained) + [1000, 2000, 4000][run.attempt - 1]!
}

const expected = (spec: Spec, record: JobRecord, isPaused: boolean, leader: Leader, now: number): Decision => {
  const { at, run, wanted } = record
  const hasBegun = run !== undefined && run.outcome !== "unstarted" && run.start <= now
  const ready = hasBegun ? run.start + spec.minInterval : 0
  const due = instants(at, now)
  const repeat = repeatAt(spec, record, leader, now)
  if (repeat !== undefined && !isPaused && (due.length === 0 || spec.misfire === "runAll")) {
    const from = Math.max(repeat, ready)
    return from > now ? { _tag: "Wait", until: due.length === 0 ? Math.min(from, Math.max(next(at), ready)) : from } : {
      _tag: "Run",
      mode: "run",
      at: run!.scheduledAt,
      attempt: run!.attempt + 1,
      isCatchUp: true,
      missed: 0,
      cause: "outage"
    }
  }
  // A run that was granted but never started is missed, unless it is retried
  const unstarted = run?.scheduledAt === at && run.outcome === "unstarted" && run.attempt === 0 ? [at] : []
  const ended = hasBegun ? run.end ?? 0 : 0
  const causeOf = (instant: number): Cause =>
    isPaused
      ? "paused"
      : instant < ready || instant < ended
      ? "running"
      : instant < leader.gained
      ? "noLeader"
      : instant < leader.free
      ? "running"
      : "outage"
  if (wanted !== undefined) {
    return now < ready ? { _tag: "Wait", until: ready } : {
      _tag: "Run",
      mode: "manual",
      at: wanted,
      attempt: 1,
      isCatchUp: false,
      missed: unstarted.length,
      cause: causeOf(at)
    }
  }
  if (due.length === 0) return { _tag: "Wait", until: next(at) }
  if (!isPaused && now < ready) return { _tag: "Wait", until: ready }
  const latest = due.at(-1)!
  const made = due.filter((instant) => instant >= now - spec.catchUp || instant === latest)
  const isLatestRun = latest >= leader.free || (spec.misfire !== "skip" && latest >= now - spec.catchUp)
  const chosen = isPaused || !isLatestRun ? undefined : spec.misfire === "runAll" ? made[0] : latest
  const missed = [...unstarted, ...due.filter((instant) => chosen === undefined || instant < chosen)]
  const cause = causeOf(missed.at(-1) ?? at)
  return chosen === undefined ? { _tag: "Miss", at: latest, missed: missed.length, cause } : {
    _tag: "Run",
    mode: "run",
    at: chosen,
    attempt: 1,
    isCatchUp: chosen !== latest || chosen < leader.free,
    missed: missed.length,
    cause
  }
}

const specs: ReadonlyArray<Spec> = (["skip", "runOnce", "runAll"] as const).flatMap((misfire) =>
  [0, 1000, 2500].flatMap((catchUp) => [0, 1500].map((minInterval) => ({ misfire, catchUp, minInterval, attempts: 3 })))
)

const leaders: ReadonlyArray<Leader> = [[0, 0], [0, 1000], [1000, 1000], [999, 2001], [1001, 1001], [3001, 3001]].map(
  ([gained, free]) => ({ gained: gained!, free: free!, token: 7 })
)

const nows = [0, 1, 999, 1000, 1001, 2000, 2500, 3000, 3500, 3501]

/**
 * Compares the plan with the model in all small cases with these records. Returns the kinds of decisions that occurred.
 */
const decides = (records: ReadonlyArray<JobRecord>) => {
  const observed = new Set<string>()
  for (const spec of specs) {
    for (const leader of leaders) {
      for (const record of records) {
        for (const now of nows) {
          for (const isPaused of [false, true]) {
            const decision = plan(spec, next, record, isPaused, leader, now)
            observed.add(decision._tag)
            const name = JSON.stringify({ spec, leader, run: record.run, isPaused, now })
            assert.deepStrictEqual(decision, expected(spec, record, isPaused, leader, now), name)
            assert.isTrue(decision._tag !== "Wait" || decision.until > now, `would wait in vain: ${name}`)
          }
        }
      }
    }
  }
  return [...observed].sort()
}

describe("a leader's decision about a job", { tags: ["B33"] }, () => {
  it("agrees with the model if the job has never run", () => {
    assert.deepStrictEqual(decides([noRun]), ["Miss", "Run", "Wait"])
  })

  it("agrees with the model if the last run succeeded, failed, or has not ended", () => {
    const ends = [{ end: 500, outcome: "success" }, { end: 900, outcome: "failure" }, {}] as const
    assert.deepStrictEqual(decides(ends.map((end) => ran({ start: 400, ...end }))), ["Miss", "Run", "Wait"])
  })

  it("agrees with the model if the last run failed, never started, or belongs to a dead leader", () => {
    const runs = [
      { attempt: 2, end: 700, outcome: "failure" },
      { attempt: 3, end: 700, outcome: "failure" },
      { attempt: 0, end: 700, outcome: "unstarted" },
      { attempt: 0, end: 700, outcome: "unstarted", scheduledAt: -1000 },
      { attempt: 1, end: 700, outcome: "unstarted" },
      { token: 6 },
      { token: 8 },
      { scheduledAt: -1000, end: 700, outcome: "failure" }
    ] as const
    assert.deepStrictEqual(decides(runs.map((run) => ran(run))), ["Miss", "Run", "Wait"])
  })

  it("runs a requested job immediately, or as soon as its minimum interval has passed, even if the job is paused", () => {
    const wanted = [noRun, ran({ start: 1000, end: 1001, outcome: "success" })].map((record) => ({
      ...record,
      wanted: 5
    }))
    assert.deepStrictEqual(decides(wanted), ["Run", "Wait"])
  })

  it("retries a failed run before it starts a requested one", () => {
    const runs = [{ attempt: 1, end: 700, outcome: "failure" }, { attempt: 0, end: 700, outcome: "unstarted" }] as const
    const wanted = [...runs.map((run) => ran(run)), ran({ token: 6 })].map((record) => ({ ...record, wanted: 5 }))
    assert.deepStrictEqual(decides(wanted), ["Run", "Wait"])
  })

  it("ignores the minimum interval if the last start is in the future because the clock was set back", () => {
    assert.deepStrictEqual(decides([ran({ start: 1001, end: 1002, outcome: "success" })]), ["Miss", "Run", "Wait"])
  })

  it("retries a failed run after pauses that double, up to a minute", () => {
    const spec = { misfire: "skip", catchUp: 1e9, minInterval: 0, attempts: 100 } as const
    const hourly = every(3_600_000)
    const pauses = [1, 2, 3, 6, 7, 8, 50].map((attempt) => {
      const record = ran({ attempt, end: 10, outcome: "failure" })
      const decision = plan(spec, hourly, record, false, { gained: 0, free: 0, token: 7 }, 10)
      return decision._tag === "Wait" ? decision.until - 10 : NaN
    })
    assert.deepStrictEqual(pauses, [1000, 2000, 4000, 32_000, 60_000, 60_000, 60_000])
  })

  it("counts at most a thousand missed runs", () => {
    const spec = { misfire: "skip", catchUp: 0, minInterval: 0, attempts: 1 } as const
    const missed = [999, 1000, 1001, 50_000].map((now) => {
      const decision = plan(spec, every(1), noRun, true, { gained: 0, free: 0, token: 7 }, now)
      return decision._tag === "Miss" ? [decision.at, decision.missed] : []
    })
    assert.deepStrictEqual(missed, [[999, 999], [1000, 1000], [1001, 1000], [50_000, 1000]])
  })
})

it("a changed schedule has its old scheduled times until the change, and its new ones from then on", () => {
  const [former, present] = [every(3), every(5)]
  for (let changed = 0; changed <= 16; changed++) {
    const both = inForce(present, [{ next: former, until: changed }])
    const all = Array.from({ length: 40 }, (_, i) => i + 1).filter((at) => at % (at <= changed ? 3 : 5) === 0)
    for (let after = 0; after < 30; after++) {
      assert.strictEqual(both(after), all.find((at) => at > after), `${changed}, after ${after}`)
    }
  }
})

it("each previous schedule determines the scheduled times from when it was set until it was replaced", () => {
  const [first, second, present] = [every(3), every(2), every(5)]
  for (let from = 0; from <= 10; from++) {
    for (let changed = from; changed <= 12; changed++) {
      const all = inForce(present, [{ next: first, until: from }, { next: second, until: changed }])
      const instants = Array.from({ length: 40 }, (_, i) => i + 1).filter((at) =>
        at % (at <= from ? 3 : at <= changed ? 2 : 5) === 0
      )
      for (let after = 0; after < 30; after++) {
        assert.strictEqual(all(after), instants.find((at) => at > after), `${from}, ${changed}, after ${after}`)
      }
    }
  }
})
