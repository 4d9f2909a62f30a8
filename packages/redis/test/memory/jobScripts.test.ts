/**
 * Compares the Lua scripts for jobs with the in-memory store using random operations, and tests when their keys expire.
 */
import type { FencingToken } from "@effect-simba/core/FencingToken"
import type { ClaimRequest, JobOrder, JobsRecord, JobStore } from "@effect-simba/core/JobStore"
import { LeaseId, MutexName } from "@effect-simba/core/MutexName"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { RedisMutex } from "@effect-simba/redis"
import { FakeRedis, TestRedis } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Context, Duration, Effect, Layer, Schema } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"

const mutex = MutexName.make("m")
const began = 1_750_000_000_000
const [lease, confirm] = [Duration.hours(10), Duration.seconds(1)]
const ids = ["1-aaaaaaaaaaaa:host", "2-bbbbbbbbbbbb:host"].map((id) => LeaseId.make(id))
const names = ["a", "a:b", "paused"]

/** The fake server starts at the same time as the test's clock. */
const server = Layer.fresh(
  RedisMutex.layerStore.pipe(Layer.provideMerge(TestRedis.layer({ epoch: 0, expiryDelay: [0, 0] })))
)

const setup = Effect.gen(function*() {
  yield* TestClock.setTime(began)
  const context = yield* Layer.build(server)
  const redis = Context.get(context, Redis)
  return {
    real: Context.get(context, MutexStore.MutexStore),
    server: Context.get(context, FakeRedis.FakeRedis),
    send: (command: string, ...args: ReadonlyArray<string>) => redis.send<unknown>(command, ...args)
  }
})

const to = (most: number) => Schema.Literals(Array.from({ length: most + 1 }, (_, i) => i))

const Step = Schema.TaggedUnion({
  Pass: { millis: Schema.Literals([1, 1, 2, 499, 500, 500, 1000, 5000]) },
  /** 2 means that nobody owns the mutex. */
  Own: { by: to(2) },
  Read: {
    by: to(2),
    named: Schema.Array(Schema.Struct({
      job: to(2),
      schedule: to(1),
      /** 0 means that the schedule has no fixed period. */
      every: Schema.Literals([0, 700, 1000]),
      keep: Schema.Literals([1, 1000, 5000, 60_000, 60_000])
    })).check(Schema.isMaxLength(3))
  },
  Claim: {
    by: Schema.Literals([0, 0, 0, 0, 0, 0, 0, 0, 1]),
    job: Schema.Literals([0, 0, 0, 0, 1, 2]),
    claim: to(3),
    /** The difference between the request's token and the owner's. */
    token: Schema.Literals([...Array.from({ length: 12 }, () => 0), 1, -1]),
    mode: Schema.Literals(["run", "run", "run", "run", "manual", "miss"]),
    at: Schema.Literals(["now", "now", "now", "now", "next", "decided", "scheduled", "wanted", "wanted", "wanted"]),
    off: Schema.Literals([0, 0, 0, 0, 0, 0, 1, -1]),
    missed: Schema.Literals([0, 0, 1, 2]),
    minInterval: Schema.Literals([0, 0, 0, 1, 500, 1000]),
    attempts: Schema.Literals([1, 2, 3])
  },
  End: {
    job: Schema.Literals([0, 0, 0, 0, 1, 2]),
    isLatest: Schema.Literals([true, true, true, true, true, false]),
    outcome: Schema.Literals(["success", "failure", "unstarted", "interrupted"])
  },
  Steer: {
    order: Schema.Literals(["Run", "Run", "Run", "Pause", "Resume", "Resume", "Reschedule", "StepDown"]),
    /** 3 means all jobs. */
    job: Schema.Literals([0, 0, 1, 3]),
    /** 2 means the program's own schedule. */
    schedule: to(2)
  }
})
type Step = typeof Step.Type

const schedules = ["every 1000", "every 2000"]

const causes = ["", "outage", "paused"]

const orderOf = ({ job, order, schedule }: Extract<Step, { readonly _tag: "Steer" }>): JobOrder => {
  const name = names[job]
  switch (order) {
    case "StepDown":
      return { _tag: order }
    case "Pause":
    case "Resume":
      return { _tag: order, job: name }
    case "Run":
      return { _tag: order, job: name ?? "unknown" }
    default:
      return { _tag: order, job: name ?? "unknown", schedule: schedules[schedule] }
  }
}

const claimOf = (
  { at, attempts, by, claim, job, minInterval, missed, mode, off, token }: Extract<Step, { readonly _tag: "Claim" }>,
  { jobs, now }: JobsRecord,
  owned: number
): ClaimRequest | undefined => {
  const record = jobs.get(names[job]!)
  // A runner always reads a job before it claims a run
  if (record === undefined) return undefined
  const instants = {
    now,
    next: record.at + 1,
    decided: record.at,
    scheduled: record.run?.scheduledAt ?? now,
    wanted: record.wanted ?? now
  }
  return {
    mutex,
    job: names[job]!,
    id: ids[by]!,
    token: owned + token as FencingToken,
    claim: String(claim),
    // A claim for the requested time is for a manual run
    mode: at === "wanted" && off === 0 ? "manual" : mode,
    at: instants[at] + off,
    missed,
    cause: causes[missed]!,
    minInterval: Duration.millis(minInterval),
    attempts,
    changed: off === -1 ? 0 : record.former.at(-1)?.until ?? 0,
    after: off === 1 ? record.at - 1 : record.at
  }
}

const run = Effect.fnUntraced(function*(steps: ReadonlyArray<Step>) {
  const { real } = yield* setup
  const model = Context.get(yield* Layer.build(MutexStore.layerMemory), MutexStore.MutexStore)
  const both = <A, E>(ask: (store: MutexStore.MutexStore["Service"]) => Effect.Effect<A, E>) =>
    Effect.gen(function*() {
      const [one, other] = [yield* ask(real), yield* ask(model)]
      assert.deepStrictEqual(one, other)
      return one
    })
  const jobs = <A, E>(ask: (store: JobStore) => Effect.Effect<A, E>) => both((store) => ask(store.jobs))
  let owner: LeaseId | undefined
  let token = 0
  let known = yield* jobs((store) => store.read({ mutex, jobs: [] }))
  for (const step of steps) {
    switch (step._tag) {
      case "Pass":
        yield* TestClock.adjust(step.millis)
        break
      case "Own": {
        const last = owner
        if (last !== undefined) yield* both((store) => MutexStore.release(store, { mutex, id: last, lease, confirm }))
        const next = owner = ids[step.by]
        if (next === undefined) break
        const result = yield* both((store) =>
          MutexStore.acquire(store, { mutex, id: next, mode: "try", lease, confirm })
        )
        if (result._tag === "Granted") token = result.token
        break
      }
      case "Read": {
        const named = step.named.map(({ every, job, keep, schedule }) => ({
          name: names[job]!,
          schedule: schedules[schedule]!,
          every: every === 0 ? undefined : every,
          keep: Duration.millis(keep)
        }))
        yield* jobs((store) => store.read({ mutex, id: ids[step.by], jobs: named }))
        break
      }
      case "Claim": {
        const request = claimOf(step, known, token)
        if (request !== undefined) yield* jobs((store) => store.claim(request))
        break
      }
      case "End": {
        const { isLatest, job, outcome } = step
        const claim = isLatest ? known.jobs.get(names[job]!)?.run?.claim ?? "none" : "none"
        yield* jobs((store) => store.end({ mutex, job: names[job]!, claim, outcome }))
        break
      }
      case "Steer":
        yield* jobs((store) => store.steer(mutex, orderOf(step)))
    }
    known = yield* jobs((store) => store.read({ mutex, jobs: [] }))
  }
})

const named = (job: number, keep: 1 | 60_000) => ({ job, schedule: 0, every: 0, keep }) as const

const steps = (...tags: ReadonlyArray<Step["_tag"]>) =>
  Arbitrary.map(
    Arbitrary.array(Arbitrary.schema(Schema.Union(tags.map((tag) => Step.cases[tag]))), {
      minLength: 60,
      maxLength: 80
    }),
    (some): ReadonlyArray<Step> => [
      { _tag: "Own", by: 0 },
      { _tag: "Read", by: 0, named: [named(0, 60_000), named(1, 60_000), named(2, 1)] },
      ...some
    ]
  )

describe("the job scripts and the in-memory store return the same results for", () => {
  it.effect.prop(
    "claims and ends of runs",
    [steps("Claim", "Claim", "Claim", "End", "End", "Pass", "Pass")],
    ([steps]) => run(steps),
    { arbitrary: { runs: 25, seed: "runs" } }
  )

  it.effect.prop(
    "reads and operator requests",
    [steps("Read", "Read", "Steer", "Steer", "Claim", "Pass", "Own")],
    ([steps]) => run(steps),
    { arbitrary: { runs: 25, seed: "orders" } }
  )

  it.effect.prop(
    "all operations together",
    [steps("Read", "Claim", "Claim", "Claim", "End", "End", "Steer", "Pass", "Pass", "Own")],
    ([steps]) => run(steps),
    { arbitrary: { runs: 25, seed: "all" } }
  )
})

describe("a run", () => {
  /** Runs the operations with the scripts and with the in-memory store. */
  const onBoth = (
    play: (store: MutexStore.MutexStore["Service"], token: FencingToken) => Effect.Effect<void, unknown>
  ) =>
    Effect.gen(function*() {
      const { real } = yield* setup
      const model = Context.get(yield* Layer.build(MutexStore.layerMemory), MutexStore.MutexStore)
      for (const store of [real, model]) {
        const granted = yield* MutexStore.acquire(store, { mutex, id: ids[0]!, mode: "try", lease, confirm })
        yield* store.jobs.read({ mutex, id: ids[0]!, jobs: [{ name: "a", schedule: "s", keep: Duration.hours(1) }] })
        assert(granted._tag === "Granted")
        yield* play(store, granted.token)
      }
    })
  const claim = (token: FencingToken, claim: string, mode: ClaimRequest["mode"], at: number, minInterval = 0) => ({
    mutex,
    job: "a",
    id: ids[0]!,
    token,
    claim,
    mode,
    at,
    after: at - 1,
    missed: 0,
    cause: "",
    minInterval: Duration.millis(minInterval),
    attempts: 1,
    changed: 0
  })
  const wanted = (store: MutexStore.MutexStore["Service"]) =>
    Effect.map(store.jobs.read({ mutex, jobs: [] }), ({ jobs }) => jobs.get("a")!.wanted)

  it.effect("waits for minInterval even if the last run started and ended in the same millisecond", () =>
    onBoth(({ jobs }, token) =>
      Effect.gen(function*() {
        yield* TestClock.adjust(1)
        const { now } = yield* jobs.claim(claim(token, "1", "run", (yield* jobs.read({ mutex, jobs: [] })).now))
        yield* jobs.end({ mutex, job: "a", claim: "1", outcome: "success" })
        yield* jobs.steer(mutex, { _tag: "Run", job: "a" })
        assert.deepInclude(yield* jobs.claim(claim(token, "2", "manual", now, 500)), { _tag: "Early", wait: 500 })
        assert.deepInclude(yield* jobs.claim(claim(token, "2", "manual", now)), { _tag: "Claimed" })
      })
    ))

  it.effect("does not repeat an earlier request if the scheduled run never started", () =>
    onBoth((store, token) =>
      Effect.gen(function*() {
        const { jobs } = store
        yield* jobs.steer(mutex, { _tag: "Run", job: "a" })
        const requested = (yield* wanted(store))!
        yield* jobs.claim(claim(token, "1", "manual", requested))
        yield* jobs.end({ mutex, job: "a", claim: "1", outcome: "unstarted" })
        assert.strictEqual(yield* wanted(store), requested)
        yield* jobs.claim(claim(token, "2", "manual", requested))
        yield* jobs.end({ mutex, job: "a", claim: "2", outcome: "success" })
        yield* TestClock.adjust(1)
        const { now } = yield* jobs.read({ mutex, jobs: [] })
        assert.deepInclude(yield* jobs.claim(claim(token, "3", "run", now)), { _tag: "Claimed" })
        yield* jobs.end({ mutex, job: "a", claim: "3", outcome: "unstarted" })
        assert.isUndefined(yield* wanted(store))
      })
    ))
})

it.effect("a former schedule is dropped once its scheduled times are settled up to its last millisecond", () =>
  Effect.gen(function*() {
    const { real } = yield* setup
    const model = Context.get(yield* Layer.build(MutexStore.layerMemory), MutexStore.MutexStore)
    for (const { jobs } of [real, model]) {
      yield* jobs.read({ mutex, jobs: [{ name: "a", schedule: "s", keep: Duration.hours(1) }] })
      const reschedule = (schedule: string) => jobs.steer(mutex, { _tag: "Reschedule", job: "a", schedule })
      yield* reschedule("one")
      yield* TestClock.adjust(1)
      yield* reschedule("two")
      // Resuming settles all scheduled times up to now
      yield* jobs.steer(mutex, { _tag: "Pause", job: "a" })
      yield* jobs.steer(mutex, { _tag: "Resume", job: "a" })
      yield* reschedule("three")
      const { jobs: known, now } = yield* jobs.read({ mutex, jobs: [] })
      assert.deepStrictEqual(known.get("a")!.former, [{ schedule: "two", until: now }])
    }
  }))

describe("a mutex's job hash", () => {
  const key = "simba:{m}:jobs"
  const month = 30 * 24 * 60 * 60 * 1000
  const job = (name: string, keep: number) => ({ name, schedule: "every 1000", keep: Duration.millis(keep) })

  it.effect("expires with the job that is kept longest, but never while a job is paused", () =>
    Effect.gen(function*() {
      const { real, send } = yield* setup
      const { read, steer } = real.jobs
      const expiry = send("PTTL", key)
      yield* read({ mutex, jobs: [job("a", 1000), job("b", 3000), job("c", 2000)] })
      assert.strictEqual(yield* expiry, 3000)
      for (const name of ["a", undefined]) {
        yield* steer(mutex, { _tag: "Pause", job: name })
        assert.strictEqual(yield* expiry, -1)
        yield* read({ mutex, jobs: [] })
        assert.strictEqual(yield* expiry, -1)
        // The next read sets the exact expiry, and a month leaves plenty of time for that read
        yield* steer(mutex, { _tag: "Resume", job: name })
        assert.strictEqual(yield* expiry, month)
        yield* read({ mutex, jobs: [] })
        assert.strictEqual(yield* expiry, 3000)
      }
      // Resuming one job while all are paused does not give the hash an expiry
      yield* steer(mutex, { _tag: "Pause" })
      yield* steer(mutex, { _tag: "Resume", job: "a" })
      yield* read({ mutex, jobs: [] })
      assert.strictEqual(yield* expiry, -1)
      yield* steer(mutex, { _tag: "Resume" })
      yield* read({ mutex, jobs: [] })
      // A shorter retention does not shorten the expiry
      yield* read({ mutex, jobs: [job("b", 10)] })
      assert.strictEqual(yield* expiry, 3000)
    }))

  it.effect("does not expire if one job is resumed while another is paused", () =>
    Effect.gen(function*() {
      const { real, send } = yield* setup
      const { read, steer } = real.jobs
      yield* read({ mutex, jobs: [job("a", 1000), job("b", 3000)] })
      for (const other of ["b", undefined]) {
        yield* steer(mutex, { _tag: "Pause", job: "a" })
        yield* steer(mutex, { _tag: "Pause", job: other })
        yield* steer(mutex, { _tag: "Resume", job: "a" })
        assert.strictEqual(yield* send("PTTL", key), -1)
        yield* steer(mutex, { _tag: "Resume", job: other })
        assert.strictEqual(yield* send("PTTL", key), month)
      }
    }))

  it.effect("can be read, paused and resumed despite malformed jobs, which a leader's read or a resumption repairs", () =>
    Effect.gen(function*() {
      const { real, send } = yield* setup
      const { read, steer } = real.jobs
      for (const garbage of ["soon", "", "nan", "inf", "-1", "1e3", "9".repeat(17), "9".repeat(400)]) {
        yield* read({ mutex, jobs: [job("a", 60_000), job("b", 60_000), job("c", 60_000)] })
        yield* send("HSET", key, "until:a", garbage, "at:b", garbage)
        const { jobs, malformed } = yield* read({ mutex, jobs: [] })
        assert.deepStrictEqual([[...jobs.keys()], [...malformed.keys()]], [["c"], ["a", "b"]], garbage)
        yield* read({ mutex, jobs: [job("a", 60_000)] })
        yield* steer(mutex, { _tag: "Pause" })
        assert.isTrue(yield* steer(mutex, { _tag: "Resume" }))
        assert.sameMembers([...(yield* read({ mutex, jobs: [] })).jobs.keys()], ["a", "b", "c"])
      }
    }))

  it.effect("has no expiry if a job's retention is unknown", () =>
    Effect.gen(function*() {
      const { real, send } = yield* setup
      yield* send("HSET", key, "at:a", "1")
      const { jobs } = yield* real.jobs.read({ mutex, jobs: [] })
      assert.deepStrictEqual([...jobs.keys()], ["a"])
      assert.strictEqual(yield* send("PTTL", key), -1)
    }))

  it.effect("does not count as paused merely because a schedule, a cause or an id contains that word", () =>
    Effect.gen(function*() {
      const { real, send } = yield* setup
      yield* real.jobs.read({ mutex, jobs: [{ ...job("a", 1000), schedule: "paused" }] })
      yield* send("HSET", key, "cause:a", "paused", "run:a", "paused:a")
      assert.isFalse((yield* real.jobs.read({ mutex, jobs: [{ ...job("a", 2000), schedule: "paused" }] })).isPaused)
      assert.strictEqual(yield* send("PTTL", key), 2000)
    }))

  it.effect("keeps a job's last settled time if the job is paused and resumed after the clock was set back", () =>
    Effect.gen(function*() {
      const { real, send, server } = yield* setup
      for (const name of ["a", undefined]) {
        yield* real.jobs.read({ mutex, jobs: [job("a", 60_000)] })
        yield* server.stepClock(-5000)
        yield* real.jobs.steer(mutex, { _tag: "Pause", job: name })
        yield* real.jobs.steer(mutex, { _tag: "Resume", job: name })
        assert.strictEqual((yield* real.jobs.read({ mutex, jobs: [] })).jobs.get("a")!.at, began)
      }
      yield* send("HSET", key, "at:a", "9007199254740991")
      yield* real.jobs.steer(mutex, { _tag: "Pause", job: "a" })
      yield* real.jobs.steer(mutex, { _tag: "Resume", job: "a" })
      assert.strictEqual((yield* real.jobs.read({ mutex, jobs: [] })).jobs.get("a")!.at, Number.MAX_SAFE_INTEGER)
    }))

  it.effect("does not contain a forgotten job, even if the first process to read the hash declares that job", () =>
    Effect.gen(function*() {
      const { real } = yield* setup
      const model = Context.get(yield* Layer.build(MutexStore.layerMemory), MutexStore.MutexStore)
      for (const { jobs } of [real, model]) {
        const { now } = yield* jobs.read({ mutex, jobs: [job("a", 1000), job("b", 1000), job("c", 1000)] })
        for (const order of [{ _tag: "Run", job: "a" }, { _tag: "Pause", job: "b" }] as const) {
          assert.isTrue(yield* jobs.steer(mutex, order))
        }
        yield* TestClock.adjust(1001)
        const after = yield* jobs.read({ mutex, jobs: [job("a", 1000), job("b", 1000)] })
        assert.sameMembers([...after.jobs.keys()], ["a", "b"])
        assert.deepInclude(after.jobs.get("a"), { at: now + 1001, wanted: undefined })
        // A paused job is never forgotten
        assert.deepInclude(after.jobs.get("b"), { at: now, isPaused: true })
      }
    }))

  it.effect("is named in the error if it has the wrong type", () =>
    Effect.gen(function*() {
      const { real, send } = yield* setup
      yield* send("RPUSH", key, "x")
      const error = yield* Effect.flip(real.jobs.read({ mutex, jobs: [job("a", 1000)] }))
      assert.include(error.message, `one of the keys "simba:{m}", "${key}"`)
    }))

  it.effect("is not created by requests for unknown jobs", () =>
    Effect.gen(function*() {
      const { real, send } = yield* setup
      yield* real.jobs.read({ mutex, jobs: [] })
      for (const order of [{ _tag: "Pause" }, { _tag: "StepDown" }, { _tag: "Run", job: "a" }] as const) {
        assert.isFalse(yield* real.jobs.steer(mutex, order))
      }
      yield* real.jobs.end({ mutex, job: "a", claim: "c", outcome: "success" })
      assert.strictEqual(yield* send("EXISTS", key), 0)
    }))
})
