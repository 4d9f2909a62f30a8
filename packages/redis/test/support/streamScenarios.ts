/**
 * Scenarios for data-stream consumers on Redis. Tests on real servers, and `memory/streams.test.ts` on the fake one,
 * run them under their own titles.
 */
import type * as StreamClient from "@effect-simba/core/streams/StreamClient"
import type { StreamLease } from "@effect-simba/core/streams/StreamLease"
import * as StreamMessages from "@effect-simba/core/streams/StreamMessages"
import { assert } from "@effect/vitest"
import { Clock, Effect, Fiber, Latch, Option, Schedule, Schema, type Scope } from "effect"
import { capturingLogs, freshName, until } from "./harness.ts"

export type Lease = StreamLease

/** A consumer with its own connections, like a separate process. */
export interface Process {
  readonly client: StreamClient.StreamClient["Service"]
  /** Forks an effect into the process's scope. */
  readonly start: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<Fiber.Fiber<A, E>>
  readonly close: Effect.Effect<void>
  /** Cuts the process's connections permanently. */
  readonly kill: Effect.Effect<void>
}

export interface Stage {
  readonly open: (options: StreamClient.Options) => Effect.Effect<Process, unknown, Scope.Scope>
  readonly send: (...args: ReadonlyArray<string>) => Effect.Effect<unknown, unknown>
  /** Suspends the server, which does not reply until `resume`. */
  readonly pause: Effect.Effect<void>
  readonly resume: Effect.Effect<void>
  /** Whether all names in a service share a hash tag, as a Cluster requires. */
  readonly isTagged?: boolean
}

const scenario =
  <A, E>(script: (stage: Stage) => Generator<Effect.Effect<unknown, E, Scope.Scope>, A>) =>
  (stage: Stage): Effect.Effect<A, E> =>
    Effect.scoped(Effect.gen(() => script(stage))).pipe(Effect.provide(capturingLogs([])))

const named = (stage: Stage, label: string, count: number) => {
  const name = freshName(label).replaceAll(" ", "-")
  const service = stage.isTagged === true ? `{${name}}` : name
  const streams = Array.from({ length: count }, (_, i) => ({ stream: `${service}:s${i}`, info: { i } }))
  return { service, streams, lbs: `${service}-input`, group: `${service}-group` }
}

const count = (process: Process) => Effect.map(process.client.owned, ({ length }) => length)

const owns = (process: Process, n: number) => until(`${n} owned`, Effect.map(count(process), (owned) => owned === n))

const pendingCount = (stage: Stage, lbs: string, group: string) =>
  Effect.map(stage.send("XPENDING", lbs, group), (reply) => Number((reply as ReadonlyArray<unknown>)[0]))

/** Disables sweeps for the duration of a test, so that only messages and events can reveal an orphan. */
const neverSweeps = { sweepInterval: "1 hour" } satisfies Partial<StreamClient.Options>

/** Renews so often that leases survive a stall of one second. */
const renewsOften = { heartbeatInterval: "250 millis" } as const

export const finished = scenario(function*(stage) {
  const { group, lbs, service, streams } = named(stage, "finished", 20)
  const a = yield* stage.open({ service, processName: "a", capacity: 4 })
  const b = yield* stage.open({ service, processName: "b", capacity: 4 })
  const observed: Array<unknown> = []
  const handler = (lease: Lease) =>
    Effect.andThen(Effect.sleep("50 millis"), Effect.sync(() => observed.push([lease.stream, lease.info["i"]])))
  yield* a.client.announceAll(streams)
  yield* a.start(a.client.run(handler))
  yield* b.start(b.client.run(handler))
  yield* until("all done", Effect.map(stage.send("XLEN", lbs), (n) => Number(n) === 0))
  assert.strictEqual(yield* pendingCount(stage, lbs, group), 0)
  assert.deepStrictEqual(observed.map(String).sort(), streams.map(({ info, stream }) => `${stream},${info.i}`).sort())
  assert.deepStrictEqual(yield* stage.send("KEYS", `${service}:*`), [])
})

/** The handlers of 2,000 data streams fail at the same moment without losing a lease. */
export const failing = scenario(function*(stage) {
  const size = 2000
  const { service, streams } = named(stage, "failing", size)
  const a = yield* stage.open({ service, processName: "a", capacity: size, leaseDuration: "5 seconds" })
  const begun = new Set<string>()
  const allBegun = Latch.makeUnsafe()
  const allRestarted = Latch.makeUnsafe()
  let repeated = 0
  const handler = ({ stream }: Lease) =>
    Effect.gen(function*() {
      if (begun.has(stream)) {
        if (++repeated === size) yield* allRestarted.open
        return yield* Effect.never
      }
      begun.add(stream)
      if (begun.size === size) yield* allBegun.open
      yield* allBegun.await
      return yield* Effect.fail("at once")
    })
  yield* a.client.announceAll(streams)
  yield* a.start(a.client.run(handler, { retry: Schedule.spaced("100 millis"), onError: () => Effect.void }))
  yield* owns(a, size)
  const tokens = (yield* a.client.owned).map(({ token }) => token)
  yield* allRestarted.await
  yield* Effect.sleep("6 seconds")
  const after = yield* a.client.owned
  assert.deepStrictEqual(after.map(({ token }) => token), tokens, "no lease was lost")
  assert.isTrue(after.every(({ failures }) => failures === 1))
})

export const orphans = scenario(function*(stage) {
  const { service, streams } = named(stage, "orphans", 5)
  const a = yield* stage.open({ service, processName: "a", rebalance: false, ...renewsOften })
  const b = yield* stage.open({ service, processName: "b", rebalance: false, ...renewsOften })
  yield* a.client.announceAll(streams)
  yield* a.start(a.client.run(Effect.never))
  yield* owns(a, 5)
  const tokens = (yield* a.client.owned).map(({ stream, token }) => [stream, token] as const)
  yield* b.start(b.client.run(Effect.never))
  yield* Effect.sleep("2500 millis")
  assert.strictEqual(yield* count(b), 0)
  const died = yield* Clock.currentTimeMillis
  yield* a.kill
  yield* owns(b, 5)
  assert.isAtLeast((yield* Clock.currentTimeMillis) - died, 900, "not before the lease expires")
  const after = new Map((yield* b.client.owned).map(({ stream, token }) => [stream, token]))
  for (const [stream, token] of tokens) assert.isAbove(after.get(stream)!, token)
  assert.isTrue((yield* b.client.owned).every(({ failures }) => failures === 1))
})

export const expiries = scenario(function*(stage) {
  const { service, streams } = named(stage, "expiries", 5)
  const a = yield* stage.open({ service, processName: "a", enableEvents: true })
  const b = yield* stage.open({ service, processName: "b", enableEvents: true, rebalance: false, ...neverSweeps })
  yield* a.client.announceAll(streams)
  yield* a.start(a.client.run(Effect.never))
  yield* owns(a, 5)
  yield* b.start(b.client.run(Effect.never))
  yield* Effect.sleep("1 second")
  yield* a.kill
  yield* owns(b, 5)
})

export const handedBack = scenario(function*(stage) {
  const { service, streams } = named(stage, "handed-back", 5)
  const a = yield* stage.open({ service, processName: "a", rebalance: false, ...renewsOften })
  const b = yield* stage.open({ service, processName: "b", rebalance: false, ...renewsOften, ...neverSweeps })
  yield* a.client.announceAll(streams)
  yield* a.start(a.client.run((lease) => Effect.andThen(lease.revoked, lease.yield)))
  yield* owns(a, 5)
  yield* b.start(b.client.run(Effect.never))
  yield* Effect.sleep("1 second")
  yield* a.close
  yield* owns(b, 5)
  assert.isTrue((yield* b.client.owned).every(({ failures }) => failures === 0))
})

export const hanging = scenario(function*(stage) {
  const { service, streams } = named(stage, "hanging", 3)
  const a = yield* stage.open({ service, processName: "a", ...renewsOften })
  let interrupted = 0
  yield* a.client.announceAll(streams)
  yield* a.start(a.client.run(Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++))))
  yield* owns(a, 3)
  const leases = yield* a.client.owned
  const reasons = yield* Effect.forkChild(Effect.forEach(leases, ({ lost }) => lost, { concurrency: "unbounded" }))
  yield* stage.pause
  const losses = yield* Fiber.join(reasons)
  assert.deepStrictEqual(losses.map(({ reason }) => reason._tag), ["BackendGone", "BackendGone", "BackendGone"])
  yield* until("interrupted", Effect.sync(() => interrupted === 3))
  yield* stage.resume
  yield* owns(a, 3)
  for (const lease of leases) assert.isFalse(yield* lease.isHeld)
})

export const groupGone = scenario(function*(stage) {
  const { group, lbs, service, streams } = named(stage, "group-gone", 4)
  const a = yield* stage.open({ service, processName: "a", ...renewsOften })
  yield* a.client.announceAll(streams.slice(0, 2))
  yield* a.start(a.client.run(Effect.never))
  yield* owns(a, 2)
  const before = yield* a.client.owned
  yield* stage.send("XGROUP", "DESTROY", lbs, group)
  // Wait longer than a lease. The new group delivers owned entries again to its first reader.
  const b = yield* stage.open({ service, processName: "b", rebalance: false, ...renewsOften })
  yield* b.start(b.client.run(Effect.never))
  yield* Effect.sleep("4 seconds")
  for (const lease of before) yield* lease.ensure
  yield* a.client.announceAll(streams.slice(2))
  yield* until(
    "four owned",
    Effect.gen(function*() {
      return (yield* count(a)) + (yield* count(b)) === 4
    })
  )
  yield* before[0]!.done
  yield* Effect.sleep("4 seconds")
  assert.strictEqual((yield* count(a)) + (yield* count(b)), 3)
})

export const malformed = scenario(function*(stage) {
  const { lbs, service, streams } = named(stage, "malformed", 2)
  const a = yield* stage.open({ service, processName: "a" })
  yield* a.client.announceAll(streams.slice(0, 1))
  yield* stage.send("XADD", lbs, "*", "lbs-input", "no JSON")
  yield* stage.send("XADD", lbs, "*", "something", "else")
  yield* a.client.announceAll(streams)
  yield* a.start(a.client.run(Effect.never))
  yield* owns(a, 2)
  yield* until("dead-lettered", Effect.map(a.client.deadLetters(), ({ length }) => length === 2))
  assert.strictEqual(Number(yield* stage.send("XLEN", lbs)), 2)
})

export const poison = scenario(function*(stage) {
  const { lbs, service, streams } = named(stage, "poison", 2)
  // The time between two failures is longer than `deadLetterAfter`
  const a = yield* stage.open({ service, processName: "a", maxFailures: 3, deadLetterAfter: "10 millis" })
  let runs = 0
  yield* a.client.announceAll(streams)
  yield* a.start(a.client.run(
    (lease) => lease.stream === streams[0]!.stream ? Effect.suspend(() => Effect.fail(++runs)) : Effect.never,
    { retry: Schedule.spaced("20 millis") }
  ))
  yield* until("dead-lettered", Effect.map(a.client.deadLetters(), ({ length }) => length === 1))
  assert.strictEqual(runs, 3)
  yield* owns(a, 1)
  assert.strictEqual(Number(yield* stage.send("XLEN", lbs)), 1)
  const [letter] = yield* a.client.deadLetters()
  assert.isTrue(yield* a.client.redrive(letter!.id))
  yield* until("dead-lettered again", Effect.sync(() => runs === 6))
})

export const redrivenAll = scenario(function*(stage) {
  const { service, streams } = named(stage, "redriven-all", 5)
  const a = yield* stage.open({ service, processName: "a", maxFailures: 1, deadLetterAfter: 0 })
  let isDown = true
  yield* a.client.announceAll(streams)
  yield* a.start(a.client.run(
    (lease) => isDown ? Effect.fail(lease.info["i"] === 0 ? "broken" : "down") : Effect.never,
    { onError: () => Effect.void }
  ))
  yield* until("dead-lettered", Effect.map(a.client.deadLetters(), ({ length }) => length === 5))
  isDown = false
  const filter = ({ reason }: { readonly reason: string }) => reason.includes("down")
  assert.strictEqual(yield* a.client.redriveAll({ filter, limit: 3 }), 3)
  yield* owns(a, 3)
  assert.strictEqual(yield* a.client.redriveAll({ filter }), 1)
  assert.strictEqual(yield* a.client.redriveAll({ filter }), 0)
  assert.strictEqual(yield* a.client.redriveAll(), 1)
  yield* owns(a, 5)
})

export const balanced = scenario(function*(stage) {
  const { service, streams } = named(stage, "balanced", 6)
  const running = new Set<string>()
  const handler = (lease: Lease) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        assert.isFalse(running.has(lease.stream))
        running.add(lease.stream)
      }),
      () => Effect.andThen(lease.revoked, lease.yield),
      () => Effect.sync(() => running.delete(lease.stream))
    )
  const options = {
    service,
    heartbeatInterval: "300 millis",
    leaseDuration: "1500 millis",
    confirmTimeout: "700 millis"
  } satisfies StreamClient.Options
  const a = yield* stage.open({ ...options, processName: "a" })
  yield* a.client.announceAll(streams)
  yield* a.start(a.client.run(handler))
  yield* owns(a, 6)
  const b = yield* stage.open({ ...options, processName: "b" })
  yield* b.start(b.client.run(handler))
  yield* owns(b, 3)
  yield* owns(a, 3)
  assert.isTrue((yield* b.client.owned).every(({ failures, info }) => failures === 0 && typeof info["i"] === "number"))
})

export const checkpoints = scenario(function*(stage) {
  const { service, streams } = named(stage, "checkpoints", 1)
  const stream = streams[0]!.stream
  const a = yield* stage.open({ service, processName: "a" })
  const b = yield* stage.open({ service, processName: "b" })
  const observed: Array<string> = []
  const handler = (crashAfter: number) => (lease: Lease) =>
    Effect.gen(function*() {
      let last = "0-0"
      const checkpoint = yield* lease.checkpoint
      if (checkpoint._tag === "Some") last = checkpoint.value.id
      for (let n = 0; n < crashAfter;) {
        for (const message of yield* lease.messagesAfter(last as never, 3)) {
          observed.push(message.id)
          yield* lease.commit(message.id)
          last = message.id
          n++
        }
      }
      return yield* Effect.never
    })
  yield* a.client.announceAll(streams)
  yield* a.start(a.client.run(handler(6)))
  for (let i = 1; i <= 6; i++) yield* stage.send("XADD", stream, `${i}-0`, "n", String(i))
  yield* until("six messages are processed", Effect.sync(() => observed.length >= 6))
  const [stale] = yield* a.client.owned
  yield* a.kill
  yield* b.start(b.client.run(handler(3)))
  yield* owns(b, 1)
  for (let i = 7; i <= 9; i++) yield* stage.send("XADD", stream, `${i}-0`, "n", String(i))
  yield* until("nine messages are processed", Effect.sync(() => observed.length >= 9))
  assert.deepStrictEqual(observed, Array.from({ length: 9 }, (_, i) => `${i + 1}-0`))
  assert.strictEqual((yield* Effect.flip(stale!.commit("5-0" as never)))._tag, "LeaseLost")
})

export const processed = scenario(function*(stage) {
  const { group, lbs, service, streams } = named(stage, "processed", 3)
  const open = (processName: string) => stage.open({ service, processName, rebalance: false })
  const observed: Array<{ readonly by: string; readonly stream: string; readonly n: number }> = []
  const startOn = (process: Process, by: string) =>
    process.start(process.client.run((lease) =>
      StreamMessages.process(
        Schema.Struct({ n: Schema.FiniteFromString }),
        ({ value }) => Effect.sync(() => observed.push({ by, stream: lease.stream, n: value.n })),
        { until: ({ value }) => value.n === 30 }
      )
    ))
  const append = (from: number, to: number) =>
    Effect.gen(function*() {
      for (let n = from; n <= to; n++) {
        for (const { stream } of streams) yield* stage.send("XADD", stream, "*", "n", String(n))
      }
    })
  const observedBy = (by: string, stream: string) =>
    observed.flatMap((one) => one.by === by && one.stream === stream ? one.n : [])
  const reached = (by: string, last: number) =>
    until(
      `${by} has processed ${last}`,
      Effect.sync(() => streams.every(({ stream }) => observedBy(by, stream).at(-1) === last))
    )

  const a = yield* open("a")
  yield* a.client.announceAll(streams)
  yield* startOn(a, "a")
  yield* owns(a, 3)
  yield* append(1, 10)
  yield* reached("a", 10)
  const b = yield* open("b")
  yield* startOn(b, "b")
  yield* a.kill
  yield* append(11, 20)
  yield* reached("b", 20)
  const c = yield* open("c")
  yield* startOn(c, "c")
  yield* b.close
  yield* owns(c, 3)
  assert.isTrue((yield* c.client.owned).every(({ failures }) => failures === 0))
  yield* append(21, 30)
  yield* until("all done", Effect.map(stage.send("XLEN", lbs), (n) => Number(n) === 0))
  assert.strictEqual(yield* pendingCount(stage, lbs, group), 0)

  for (const { stream } of streams) {
    const inOrder = (by: string, from: number, last: number) =>
      assert.deepStrictEqual(observedBy(by, stream), Array.from({ length: last - from + 1 }, (_, i) => from + i))
    inOrder("a", 1, 10)
    // Process b repeats message 10 if process a's last commit was lost
    inOrder("b", observedBy("b", stream)[0] === 10 ? 10 : 11, 20)
    inOrder("c", 21, 30)
  }
  const left = yield* stage.send("KEYS", `${service}:*`)
  assert.deepStrictEqual([...left as ReadonlyArray<string>].sort(), streams.map(({ stream }) => stream).sort())
})

/**
 * Messages trimmed before they were read are counted. A data stream that is deleted and rewritten is read from its
 * beginning.
 */
export const gaps = scenario(function*(stage) {
  const { service, streams } = named(stage, "gaps", 1)
  const stream = streams[0]!.stream
  const a = yield* stage.open({ service, processName: "a" })
  const observed: Array<number> = []
  const found: Array<StreamMessages.Gap> = []
  const missed = () => found.reduce((sum, { missed }) => sum + Option.getOrElse(missed, () => NaN), 0)
  const rewrite = Effect.gen(function*() {
    assert.strictEqual(observed.length + missed(), 5 * 401)
    assert.isAbove(missed(), 0)
    found.length = 0
    yield* stage.send("DEL", stream)
    yield* stage.send("XADD", stream, "5-0", "n", "1000")
  })
  yield* a.client.announceAll(streams)
  yield* a.start(a.client.run(
    StreamMessages.process(
      Schema.Struct({ n: Schema.FiniteFromString }),
      ({ value }) => value.n === 999 ? Effect.orDie(rewrite) : Effect.sync(() => void observed.push(value.n)),
      { onGap: (gap) => Effect.sync(() => void found.push(gap)) }
    )
  ))
  const add = "for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[2], '*', 'n', i) end"
  for (let burst = 0; burst < 5; burst++) {
    yield* stage.send("XADD", stream, "*", "n", "0")
    yield* stage.send("EVAL", add, "1", stream, "400", "20")
    yield* until("the last message of a burst is processed", Effect.sync(() => observed.at(-1) === 400))
  }
  yield* until(
    "all messages are processed or reported as missed",
    Effect.sync(() => observed.length + missed() === 5 * 401)
  )
  yield* stage.send("XADD", stream, "*", "n", "999")
  yield* until("the rewritten data stream is read from its beginning", Effect.sync(() => observed.at(-1) === 1000))
  assert.deepStrictEqual(found.map(({ reason, until }): unknown => [reason, until]), [["Rewritten", "5-0"]])
  yield* stage.send("XADD", stream, "6-0", "n", "1001")
  const checkpoint = Effect.map(stage.send("GET", `simba:checkpoint:${stream}`), String)
  yield* until("committed", Effect.map(checkpoint, (text) => text === "6-0@@@@2"))
  assert.deepStrictEqual(observed.slice(-2), [1000, 1001])
})

/**
 * An owner reports messages that the previous owner missed without noticing, no matter which position it starts from.
 */
export const passedOver = scenario(function*(stage) {
  const { service, streams } = named(stage, "passed", 3)
  const found = new Map<string, ReadonlyArray<unknown>>()
  const a = yield* stage.open({ service, processName: "a" })
  const add = "for i = 1, 30 do redis.call('XADD', KEYS[1], i .. '-0', 'n', i) end"
  for (const { stream } of streams) {
    yield* stage.send("EVAL", add, "1", stream)
    yield* stage.send("XTRIM", stream, "MINID", "7-0")
    yield* stage.send("XDEL", stream, "11-0")
    // The previous owner read four messages: 1, 2, 9 and 10
    yield* stage.send("SET", `simba:checkpoint:${stream}`, "10-0@@@@4")
  }
  yield* a.client.announceAll(streams)
  yield* a.start(a.client.run((lease) => {
    const index = streams.findIndex(({ stream }) => stream === lease.stream)
    return StreamMessages.process(Schema.Struct({ n: Schema.FiniteFromString }), () => Effect.void, {
      after: [undefined, Option.some("10-0"), Option.some("12-0")][index],
      until: ({ value }) => value.n === 30,
      onGap: ({ after, missed, until }) =>
        Effect.sync(() => void found.set(lease.stream, [after, until, Option.getOrUndefined(missed)]))
    })
  }))
  const position = (stream: string) => Effect.map(stage.send("GET", `simba:checkpoint:${stream}`), String)
  for (const { stream } of streams) {
    yield* until("read to the end", Effect.map(position(stream), (text) => /^30-0@@[^@]+@@30$/.test(text)))
    assert.deepStrictEqual(found.get(stream), ["10-0", "30-0", 7])
  }
})

/** A message with the largest possible id is processed once. Then the reader waits, although no message can follow. */
export const largestId = scenario(function*(stage) {
  const { service, streams } = named(stage, "largest", 1)
  const stream = streams[0]!.stream
  const largest = "18446744073709551615-18446744073709551615"
  const observed: Array<string> = []
  const a = yield* stage.open({ service, processName: "a" })
  yield* a.client.announceAll(streams)
  yield* stage.send("XADD", stream, largest, "n", "1")
  const fiber = yield* a.start(a.client.run(
    StreamMessages.process(Schema.Struct({ n: Schema.String }), ({ id }) => Effect.sync(() => void observed.push(id)))
  ))
  const checkpoint = Effect.map(stage.send("GET", `simba:checkpoint:${stream}`), String)
  yield* until("committed", Effect.map(checkpoint, (text) => text.startsWith(largest)))
  yield* Effect.sleep("1500 millis")
  assert.deepStrictEqual(observed, [largest])
  assert.isUndefined(fiber.pollUnsafe())
  assert.deepStrictEqual((yield* a.client.owned).map(({ failures, stream }) => ({ failures, stream })), [
    { failures: 0, stream }
  ])
})
