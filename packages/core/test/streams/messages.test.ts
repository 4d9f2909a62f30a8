/** Tests `StreamMessages` on a scripted lease: reading, gaps, commits, attempts, revocations and losses. */
import { SimbaError } from "@effect-simba/core"
import { FencingToken } from "@effect-simba/core/FencingToken"
import { StreamError, StreamMessages, StreamMetrics } from "@effect-simba/core/streams"
import { StreamLease } from "@effect-simba/core/streams/StreamLease"
import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  Clock,
  Data,
  Duration,
  Effect,
  Exit,
  Fiber,
  Logger,
  Metric,
  Option,
  Schedule,
  Schema,
  SchemaTransformation,
  Stream
} from "effect"
import { TestClock } from "effect/testing"
import { message, ScriptedLease } from "../support/scriptedLease.ts"
import { suspending } from "../support/suspending.ts"

const Numbered = Schema.Struct({ n: Schema.FiniteFromString.check(Schema.isInt()) })

const numbered = (n: number | string, id = `${n}-0`) => message(id, { n: String(n) })

const isEnd = ({ value }: { readonly value: { readonly n: number } }) => value.n === 0

const end = (id: string) => numbered(0, id)

/** Processes messages, and records them. */
const processing = (
  lease: ScriptedLease,
  options?: StreamMessages.ProcessOptions<typeof Numbered.Type>,
  handler: (n: number) => Effect.Effect<void, string> = () => Effect.void
) => {
  const observed: Array<number> = []
  const run = StreamMessages.process(
    Numbered,
    ({ value }) => Effect.andThen(handler(value.n), Effect.sync(() => observed.push(value.n))),
    options
  ).pipe(Effect.provide(lease.layer))
  return { observed, run }
}

/** Collects gaps as strings in the form `after until missed`. */
const collected = () => {
  const gaps: Array<string> = []
  const onGap = ({ after, missed, reason, until }: StreamMessages.Gap) =>
    Effect.sync(() => {
      const count = Option.getOrElse(missed, () => "?")
      gaps.push(
        `${after} ${until} ${reason === "Deleted" ? count : reason === "LostEnd" ? `lost ${count}` : "restarted"}`
      )
    })
  return { gaps, onGap }
}

const commits = (lease: ScriptedLease) => lease.calls.filter((call) => call.startsWith("commit"))
const reads = (lease: ScriptedLease) => lease.calls.filter((call) => call.startsWith("read"))

const start = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

const failureOf = (exit: Exit.Exit<unknown, unknown>): unknown =>
  Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined

describe("process", () => {
  it.effect("delivers all messages in order, commits each one, waits for more, and ends after the last one", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered(2))
      const { run, observed } = processing(lease, { until: isEnd })
      const fiber = yield* start(run)
      yield* Effect.yieldNow
      assert.deepStrictEqual(observed, [1, 2])
      assert.isUndefined(fiber.pollUnsafe())
      lease.add(numbered(3), end("4-0"), numbered(5))
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(observed, [1, 2, 3, 0])
      assert.deepStrictEqual(commits(lease), ["commit 1-0", "commit 2-0", "commit 3-0", "commit 4-0"])
    }))

  it.effect("starts after the checkpoint", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.checkpoint = numbered(2).id
      lease.add(numbered(1), numbered(2), numbered(3), end("4-0"))
      for (const until of [isEnd, undefined]) {
        const { run, observed } = processing(lease, { until })
        const fiber = yield* start(run)
        yield* Effect.yieldNow
        assert.deepStrictEqual(observed, [3, 0])
        yield* Fiber.interrupt(fiber)
        lease.checkpoint = numbered(2).id
        lease.end = "Open"
      }
      assert.deepStrictEqual(reads(lease), ["read 2-0", "read 2-0", "read 4-0"])
    }))

  it.effect("reports how many messages were deleted before they were read, both at the start and in later bursts", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(...[1, 2, 3, 4, 5, 6].map((n) => numbered(n)))
      lease.checkpoint = numbered(2).id
      lease.offset = 2
      lease.trim(2)
      const { gaps, onGap } = collected()
      const before = yield* Metric.value(StreamMetrics.stream.gaps)
      const { run, observed } = processing(lease, { onGap })
      const fiber = yield* start(run)
      yield* Effect.yieldNow
      assert.deepStrictEqual(gaps, ["2-0 5-0 2"])
      // The reader gets the first message in a burst immediately. Most others are trimmed before it reads them.
      for (let burst = 1; burst <= 5; burst++) {
        const all = Array.from({ length: 2000 }, (_, i) => numbered(burst * 10_000 + i))
        lease.add(all[0]!)
        yield* Effect.yieldNow
        lease.burst(100, ...all.slice(1))
        yield* TestClock.adjust("100 millis")
      }
      yield* TestClock.adjust("1 second")
      assert.strictEqual(observed.length, 2 + 5 * 101)
      const missed = gaps.slice(1).map((gap) => Number(gap.split(" ")[2]))
      assert.strictEqual(missed.reduce((a, b) => a + b), 5 * (2000 - 101))
      assert.strictEqual(
        yield* Effect.map(Metric.value(StreamMetrics.stream.gaps), ({ count }) => count - before.count),
        gaps.length
      )
      // Each gap is reported once
      yield* TestClock.adjust("5 minutes")
      assert.strictEqual(1 + missed.length, gaps.length)
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("reports missing messages in time, even if the wall clock was set back", () =>
    Effect.gen(function*() {
      const { clock, suspension } = yield* suspending
      const lease = new ScriptedLease()
      lease.add(numbered(1))
      const { gaps, onGap } = collected()
      const { run } = processing(lease, { onGap })
      const fiber = yield* start(Effect.provideService(run, Clock.Clock, clock))
      yield* Effect.yieldNow
      suspension.millis = -60 * 60 * 1000
      for (let n = 2; n <= 10; n += 2) {
        lease.burst(1, numbered(n), numbered(n + 1))
        yield* TestClock.adjust("500 millis")
      }
      assert.isNotEmpty(gaps)
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("reports messages that an earlier owner missed without noticing, regardless of the start position", () =>
    Effect.gen(function*() {
      for (const after of [undefined, "10-0", "12-0"]) {
        const lease = new ScriptedLease()
        lease.add(...Array.from({ length: 30 }, (_, i) => numbered(i + 1)))
        lease.trim(24)
        // The earlier owner read messages 1, 2, 9 and 10. Its lease ended before it noticed the gap.
        lease.checkpoint = numbered(10).id
        lease.offset = 4
        const { gaps, onGap } = collected()
        const { run } = processing(lease, {
          onGap,
          until: ({ value }) => value.n === 30,
          after: after === undefined ? undefined : Option.some(after)
        })
        yield* run
        assert.deepStrictEqual([gaps, lease.offset], [[`10-0 30-0 6`], 30])
      }
    }))

  it.effect("reports its own missed messages within a second, even if the checkpoint has no offset", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(...Array.from({ length: 30 }, (_, i) => numbered(i + 1)))
      lease.checkpoint = numbered(5).id
      const { gaps, onGap } = collected()
      const { run, observed } = processing(
        lease,
        { onGap, batch: 2, until: ({ value }) => value.n === 30 },
        (n) => n === 7 ? Effect.sync(() => lease.trim(10)) : Effect.void
      )
      yield* run
      assert.deepStrictEqual(observed.slice(0, 3), [6, 7, 21])
      assert.deepStrictEqual([gaps, lease.offset], [["5-0 30-0 13"], 30])
    }))

  it.effect("reports a gap before the next message is processed, even if messages are slow or it is the last one", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1))
      const { gaps, onGap } = collected()
      const { run, observed } = processing(
        lease,
        { until: isEnd, onGap },
        (n) =>
          Effect.andThen(Effect.sleep("1 second"), n === 4 ? Effect.sync(() => assert.lengthOf(gaps, 1)) : Effect.void)
      )
      const fiber = yield* start(run)
      yield* Effect.yieldNow
      lease.burst(1, numbered(2), numbered(3), numbered(4))
      yield* TestClock.adjust("1500 millis")
      assert.deepStrictEqual(gaps, ["0-0 4-0 2"])
      lease.burst(1, numbered(5), end("6-0"))
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(observed, [1, 4, 0])
      assert.deepStrictEqual(gaps, ["0-0 4-0 2", "1-0 6-0 1"])
    }))

  it.effect("reports messages that were added and deleted while it waited, but not those that were trimmed after it had read them", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered(2))
      const { gaps, onGap } = collected()
      const fiber = yield* start(processing(lease, { onGap }).run)
      yield* TestClock.adjust("1 minute")
      lease.trim(0)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(gaps, [])
      lease.burst(0, numbered(3))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(gaps, ["2-0 3-0 1"])
      yield* TestClock.adjust("5 minutes")
      assert.lengthOf(gaps, 1)
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("if a checkpoint has no offset, a gap after it has no count, but the next commit has an offset", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered(2), numbered(3), numbered(4))
      lease.checkpoint = numbered(1).id
      lease.trim(2)
      const { gaps, onGap } = collected()
      const fiber = yield* start(processing(lease, { onGap }).run)
      yield* Effect.yieldNow
      assert.deepStrictEqual(gaps, ["1-0 3-0 ?"])
      assert.strictEqual(lease.offset, 4)
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("on a server without counters, reports a gap only if all messages were deleted", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.added = undefined
      lease.add(numbered(1), numbered(2), numbered(3))
      lease.checkpoint = numbered(1).id
      lease.trim(1)
      const { gaps, onGap } = collected()
      const fiber = yield* start(processing(lease, { onGap }).run)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(gaps, [])
      assert.isUndefined(lease.offset)
      lease.burst(0, numbered(4))
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(gaps, ["3-0 4-0 ?"])
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("reads from the beginning if a data stream is recreated with smaller ids before or during processing", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1))
      lease.checkpoint = numbered(50).id
      lease.offset = 50
      const { gaps, onGap } = collected()
      const { run, observed } = processing(lease, { onGap, commitEvery: 3 })
      const fiber = yield* start(run)
      yield* Effect.yieldNow
      assert.deepStrictEqual(gaps, ["50-0 1-0 restarted"])
      assert.deepStrictEqual(observed, [1])
      assert.strictEqual(lease.checkpoint, "0-0")
      lease.add(numbered(60), numbered(61))
      yield* Effect.yieldNow
      assert.strictEqual(lease.checkpoint, "61-0")
      // Uncommitted processed messages belong to the old data stream
      lease.add(numbered(62))
      yield* Effect.yieldNow
      lease.rewrite(numbered(2), numbered(3))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(observed, [1, 60, 61, 62, 2, 3])
      assert.deepStrictEqual(gaps, ["50-0 1-0 restarted", "62-0 2-0 restarted"])
      assert.strictEqual(lease.checkpoint, "0-0")
      lease.add(numbered(4))
      yield* Effect.yieldNow
      assert.deepStrictEqual([lease.checkpoint, lease.offset], ["4-0", 3])
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("after a failover that lost the newest messages, continues after the last delivered message that still exists", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      const at = (n: number) => numbered(n, `${1_770_000_000_000 + n}-0`)
      lease.add(...Array.from({ length: 30 }, (_, i) => at(i + 1)))
      lease.trim(20)
      const { gaps, onGap } = collected()
      const { run, observed } = processing(lease, { onGap })
      const fiber = yield* start(run)
      yield* Effect.yieldNow
      assert.deepStrictEqual(gaps.splice(0), [`0-0 ${at(11).id} 10`])
      // The new primary has messages up to 25, and a checkpoint at 20. The id of its next message is smaller than the
      // id of the last lost message.
      const replicated = lease.stream.slice(0, 15)
      lease.rewrite(...Array.from({ length: 10 }, (_, i) => at(i + 1)), ...replicated, at(28))
      lease.trim(16)
      lease.checkpoint = at(20).id
      lease.offset = 20
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(observed, [...Array.from({ length: 20 }, (_, i) => i + 11), 28])
      assert.deepStrictEqual(gaps, [`${at(25).id} ${at(30).id} lost 5`])
      assert.deepStrictEqual([lease.checkpoint, lease.offset], [at(28).id, 26])
      assert.notInclude(lease.calls.join(), "seek")
      // If no new message has arrived, the last remaining message is committed
      lease.rewrite(...Array.from({ length: 10 }, (_, i) => at(i + 1)), ...replicated)
      lease.trim(15)
      lease.checkpoint = at(20).id
      lease.offset = 20
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([lease.checkpoint, lease.offset], [at(25).id, 25])
      assert.strictEqual(observed.at(-1), 28)
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("when a recreated data stream loses its newest messages, ignores ids that it read before the stream was recreated", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      const at = (n: number) => numbered(n, `${1_770_000_000_000 + n}-0`)
      const all = (count: number) => Array.from({ length: count }, (_, i) => at(i + 1))
      lease.add(at(100), at(101))
      const { gaps, onGap } = collected()
      const { run, observed } = processing(lease, { onGap })
      const fiber = yield* start(run)
      yield* Effect.yieldNow
      lease.rewrite(...all(10))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(gaps.splice(0), [`${at(101).id} ${at(1).id} restarted`])
      lease.rewrite(...all(6))
      lease.checkpoint = at(4).id
      lease.offset = 4
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(gaps, [`${at(6).id} ${at(10).id} lost 4`])
      assert.deepStrictEqual(observed, [100, 101, ...Array.from({ length: 10 }, (_, i) => i + 1)])
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("processes the last message even if its data stream was deleted or recreated after the read", () =>
    Effect.gen(function*() {
      for (const how of ["deleted", "recreated"]) {
        const lease = new ScriptedLease()
        lease.add(numbered(1), end("2-0"))
        const { gaps, onGap } = collected()
        const { run, observed } = processing(lease, {
          onGap,
          until: (message) => {
            if (!isEnd(message)) return false
            if (how === "deleted") Object.defineProperty(lease, "extent", { get: () => Option.none() })
            else lease.rewrite(numbered(1))
            return true
          }
        })
        yield* run
        assert.deepStrictEqual([observed, gaps], [[1, 0], []])
      }
    }))

  it.effect("continues after the checkpoint if no delivered message is known to remain", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered(2), numbered(3))
      const { gaps, onGap } = collected()
      const { run, observed } = processing(lease, { onGap })
      const fiber = yield* start(run)
      yield* Effect.yieldNow
      lease.checkpoint = numbered(1).id
      lease.offset = 1
      lease.rewrite(numbered(1), numbered(2))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(observed, [1, 2, 3, 2])
      assert.deepStrictEqual(gaps, ["1-0 3-0 lost 2"])
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("reads a recreated data stream with a different first message from the beginning, even if it contains the checkpoint", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(10), numbered(20), numbered(30))
      const { gaps, onGap } = collected()
      const { run, observed } = processing(lease, { onGap, commitEvery: 3 })
      const fiber = yield* start(run)
      yield* Effect.yieldNow
      lease.checkpoint = numbered(10).id
      lease.rewrite(numbered(5), numbered(20))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(observed, [10, 20, 30, 5, 20])
      assert.deepStrictEqual(gaps, ["30-0 5-0 restarted"])
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("by default, logs warnings about gaps and about an expired checkpoint", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => void lines.push(String(message)))
      const linesOf = (
        lease: ScriptedLease,
        options?: Pick<StreamMessages.ProcessOptions<typeof Numbered.Type>, "after">
      ) =>
        Effect.gen(function*() {
          lines.length = 0
          yield* Effect.provide(processing(lease, { until: isEnd, ...options }).run, Logger.layer([logger]))
          return [...lines]
        })
      const trimmed = new ScriptedLease()
      trimmed.add(numbered(1), numbered(2), end("3-0"))
      trimmed.trim(1)
      assert.deepStrictEqual(yield* linesOf(trimmed), ["2 message(s) were deleted before they were read"])
      const rewritten = new ScriptedLease()
      rewritten.checkpoint = numbered(50).id
      rewritten.add(end("3-0"))
      assert.include((yield* linesOf(rewritten))[0], "deleted and written again")
      const shorter = new ScriptedLease()
      shorter.add(numbered(1), numbered(2), numbered(3))
      const fiber = yield* start(linesOf(shorter))
      yield* Effect.yieldNow
      shorter.checkpoint = numbered(1).id
      shorter.offset = 1
      shorter.rewrite(numbered(1), end("2-0"))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* Fiber.join(fiber), [
        "The server lost 2 message(s) that had been read; continuing after the last remaining one"
      ])
      const year2026 = 1_770_000_000_000
      yield* TestClock.setTime(year2026 + 7 * 86_400_000)
      const old = new ScriptedLease()
      old.add(end(`${year2026}-0`))
      assert.include((yield* linesOf(old))[0], "checkpointRetention")
      // There is no warning if the application keeps its own position
      old.checkpoint = undefined
      old.end = "Open"
      assert.deepStrictEqual(yield* linesOf(old, { after: Option.none() }), [])
      for (const id of [`${year2026 + 1}-0`, "1-0"]) {
        const young = new ScriptedLease()
        young.add(end(id))
        assert.deepStrictEqual(yield* linesOf(young), [])
      }
    }))

  it.effect("reads a long stream in batches and delivers each message once", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      const all = Array.from({ length: 25 }, (_, index) => index + 1)
      lease.add(...all.map((n) => numbered(n)), end("26-0"))
      const { run, observed } = processing(lease, { until: isEnd, batch: 10 })
      yield* run
      assert.deepStrictEqual(observed, [...all, 0])
      assert.deepStrictEqual(reads(lease), ["read 0-0", "read 10-0", "read 20-0"])
    }))

  it.effect("commits the last message as the end, so successors have nothing to do even if everything is trimmed", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1), end("2-0"))
      yield* processing(lease, { until: isEnd, commitEvery: 10 }).run
      assert.strictEqual(lease.end, "Ended")
      lease.stream.length = 0
      const { run, observed } = processing(lease, { until: isEnd })
      yield* run
      assert.deepStrictEqual(observed, [])
    }))

  it.effect("reads up to the next end if a data stream is announced again after its end", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1), end("2-0"))
      lease.checkpoint = end("2-0").id
      lease.end = "Reopened"
      const { run, observed } = processing(lease, { until: isEnd })
      const fiber = yield* start(run)
      yield* TestClock.adjust("1 day")
      lease.add(numbered(3))
      yield* TestClock.adjust("1 hour")
      assert.isUndefined(fiber.pollUnsafe())
      lease.add(end("4-0"))
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(observed, [3, 0])
    }))

  it.effect("is done if a data stream is announced again after its end and then deleted", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.checkpoint = end("2-0").id
      lease.end = "Reopened"
      const fiber = yield* start(processing(lease, { until: isEnd }).run)
      yield* TestClock.adjust("1 hour")
      assert.isUndefined(fiber.pollUnsafe())
      lease.end = "Ended"
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
    }))

  it.effect("is done if a data stream is recreated with smaller ids and deleted before it is read", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1))
      lease.checkpoint = end("8-0").id
      lease.end = "Reopened"
      const { gaps, onGap } = collected()
      const { run, observed } = processing(lease, {
        until: isEnd,
        onGap: (gap) => Effect.andThen(onGap(gap), Effect.sync(() => lease.trim(0)))
      })
      const fiber = yield* start(run)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(gaps.slice(0, 1), ["8-0 1-0 restarted"])
      assert.deepStrictEqual([lease.checkpoint, lease.end], ["0-0", "Reopened"])
      assert.isUndefined(fiber.pollUnsafe())
      lease.end = "Ended"
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(observed, [])
    }))

  it.effect("with infinite attempts, a handler error ends processing, and the next run starts after the last commit", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered(2), numbered(3), end("4-0"))
      const { run, observed } = processing(
        lease,
        { until: isEnd, commitEvery: 10, attempts: Infinity },
        (n) => n === 3 ? Effect.fail("no three") : Effect.void
      )
      assert.strictEqual(failureOf(yield* Effect.exit(run)), "no three")
      assert.deepStrictEqual(observed, [1, 2])
      assert.strictEqual(lease.checkpoint, "2-0")
      const next = processing(lease, { until: isEnd })
      yield* next.run
      assert.deepStrictEqual(next.observed, [3, 0])
    }))

  it.effect("commits after every `commitEvery` messages, and reports progress between commits", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(...[1, 2, 3, 4, 5].map((n) => numbered(n)), end("6-0"), numbered(7))
      const { run } = processing(lease, { until: isEnd, commitEvery: 4 })
      yield* run
      assert.deepStrictEqual(lease.calls.slice(2), [
        "progress",
        "progress",
        "progress",
        "commit 4-0",
        "progress",
        "progress",
        "commit 6-0"
      ])
    }))

  it.effect("commits after `commitWithin`, either between messages or while it waits", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      const { run } = processing(
        lease,
        { commitEvery: 100, commitWithin: "1 second" },
        () => Effect.sleep("400 millis")
      )
      const fiber = yield* start(run)
      lease.add(numbered(1), numbered(2), numbered(3), numbered(4), numbered(5))
      // The first message is done after 400 ms. The commit is due 1 s later. At that time, the fourth message is being
      // processed, until 1,600 ms.
      yield* TestClock.adjust("1599 millis")
      assert.deepStrictEqual(commits(lease), [])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(commits(lease), ["commit 4-0"])
      // The fifth message is done at 2,000 ms
      yield* TestClock.adjust("1399 millis")
      assert.deepStrictEqual(commits(lease), ["commit 4-0"])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(commits(lease), ["commit 4-0", "commit 5-0"])
      yield* TestClock.adjust("1 minute")
      assert.lengthOf(commits(lease), 2)
      yield* Fiber.interrupt(fiber)
    }))

  it.effect(
    "dead-letters undecodable messages in order, with the reason, and continues",
    () =>
      Effect.gen(function*() {
        const lease = new ScriptedLease()
        lease.add(numbered(1), numbered("x", "2-0"), message("3-0", { other: "1" }), numbered(4), end("5-0"))
        const { run, observed } = processing(lease, { until: isEnd })
        yield* run
        assert.deepStrictEqual(observed, [1, 4, 0])
        assert.deepStrictEqual(lease.dead.map(([id]) => id), ["2-0", "3-0"])
        assert.include(lease.dead[0]![1], "[\"n\"]")
        assert.include(lease.dead[1]![1], "[\"n\"]")
        assert.deepStrictEqual(lease.calls.slice(2), [
          "commit 1-0",
          "dead-letter 2-0",
          "commit 2-0",
          "dead-letter 3-0",
          "commit 3-0",
          "commit 4-0",
          "commit 5-0"
        ])
      }),
    { tags: ["G2"] }
  )

  it.effect("an undecodable message does not move the checkpoint past messages that are buffered in a window", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered(2), numbered("x", "3-0"), numbered(4))
      const windows: Array<ReadonlyArray<number>> = []
      const reading = StreamMessages.messages(Numbered).pipe(
        Stream.grouped(100),
        Stream.runForEach((window) => Effect.sync(() => void windows.push(window.map(({ value }) => value.n)))),
        Effect.provide(lease.layer)
      )
      const fiber = yield* start(reading)
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(lease.dead.map(([id]) => id), ["3-0"])
      assert.isUndefined(lease.checkpoint)
      yield* Fiber.interrupt(fiber)
      // The successor receives all messages
      const next = processing(lease)
      const successor = yield* start(next.run)
      yield* Effect.yieldNow
      assert.deepStrictEqual(next.observed, [1, 2, 4])
      assert.strictEqual(lease.checkpoint, "4-0")
      yield* Fiber.interrupt(successor)
    }))

  it.effect("a handler gets no more messages after a loss, even if many were read ahead", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(...Array.from({ length: 50 }, (_, i) => numbered(i + 1)))
      const { run, observed } = processing(
        lease,
        { commitEvery: 50 },
        (n) => n === 3 ? Effect.sync(() => lease.lose()) : Effect.void
      )
      assert.instanceOf(failureOf(yield* Effect.exit(run)), SimbaError.LeaseLost)
      assert.deepStrictEqual(observed, [1, 2, 3])
    }))

  it.effect("logs one line that says why a message cannot be decoded", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered("x", "1-0"), end("2-0"))
      const said: Array<unknown> = []
      const logger = Logger.make(({ message }) => {
        said.push(message)
      })
      yield* processing(lease, { until: isEnd }).run.pipe(Effect.provide(Logger.layer([logger])))
      const reason = lease.dead[0]![1]
      assert.deepStrictEqual(said, [[`A message cannot be decoded; moving it to the dead letters: ${reason}`]])
    }))

  it.effect("dead-letters a message on which the decoder or `until` throws, with the reason, and continues", () =>
    Effect.gen(function*() {
      const Doubled = Schema.Struct({
        n: Schema.FiniteFromString.pipe(Schema.decodeTo(
          Schema.Finite,
          SchemaTransformation.transform({
            decode: (n: number) => {
              if (n === 1) throw new RangeError("no one")
              return 2 * n
            },
            encode: (n) => n / 2
          })
        ))
      })
      const until = ({ value: { n } }: { readonly value: { readonly n: number } }) => {
        if (n === 4) throw new TypeError("no four")
        return n === 0
      }
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered(2), numbered(3), end("4-0"))
      const observed: Array<number> = []
      yield* StreamMessages.process(Doubled, ({ value }) => Effect.sync(() => observed.push(value.n)), { until }).pipe(
        Effect.provide(lease.layer)
      )
      assert.deepStrictEqual(observed, [6, 0])
      assert.deepStrictEqual(lease.dead, [
        ["1-0", "the schema failed: RangeError: no one"],
        ["2-0", "`until` failed: TypeError: no four"]
      ])
      assert.strictEqual(lease.end, "Ended")
      // A message on which `until` throws does not count as the last one, even at the application's own position
      const other = new ScriptedLease()
      other.add(numbered(2), end("3-0"))
      yield* StreamMessages.process(Doubled, () => Effect.void, { until, after: Option.some("2-0") }).pipe(
        Effect.provide(other.layer)
      )
      assert.deepStrictEqual([other.dead, other.end], [[], "Ended"])
    }))

  it.effect("an undecodable message does not move the checkpoint past an unprocessed message", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered("x", "2-0"))
      const { run } = processing(lease, undefined, () => Effect.sleep("1 minute"))
      const fiber = yield* start(run)
      yield* TestClock.adjust("59 seconds")
      assert.deepStrictEqual(lease.dead, [])
      yield* TestClock.adjust("1 second")
      assert.strictEqual(lease.checkpoint, "2-0")
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("reads JSON from one field", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(
        message("1-0", { json: "{\"n\":1,\"extra\":true}", other: "x" }),
        message("2-0", { json: "{\"n\":" }),
        message("3-0", { n: "3" }),
        message("4-0", { json: "{\"n\":0}" })
      )
      const observed: Array<unknown> = []
      yield* StreamMessages.process(
        Schema.Struct({ n: Schema.Finite }),
        ({ fields, value }) => Effect.sync(() => observed.push([fields.length, value])),
        { field: "json", until: ({ value }) => value.n === 0 }
      ).pipe(Effect.provide(lease.layer))
      assert.deepStrictEqual(observed, [[2, { n: 1 }], [1, { n: 0 }]])
      assert.deepStrictEqual(lease.dead.map(([id]) => id), ["2-0", "3-0"])
      assert.strictEqual(lease.dead[1]![1], "there is no field \"json\"")
    }))

  it("a schema does not compile if it decodes from anything but strings, because fields are strings", () => {
    const Json = Schema.Struct({ n: Schema.Finite })
    const handler = () => Effect.void
    const accepted = [
      StreamMessages.process(Json, handler, { field: "json", commitEvery: 2 }),
      StreamMessages.messages(Json, { field: "json" })
    ]
    const refused = [
      // @ts-expect-error -- a field's value is not a number
      StreamMessages.process(Json, handler),
      // @ts-expect-error -- the same with other options
      StreamMessages.process(Json, handler, { commitEvery: 2 }),
      // @ts-expect-error -- the same with `messages`
      StreamMessages.messages(Json),
      // @ts-expect-error -- a string is not a record of fields
      StreamMessages.process(Schema.String, handler)
    ]
    assert.deepStrictEqual([accepted.length, refused.length], [2, 4])
  })

  it.effect("a handler can dead-letter a message and continue", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered(2), end("3-0"))
      yield* StreamMessages.process(Numbered, (message) =>
        Effect.flatMap(StreamLease, (lease) =>
          message.value.n === 1 ? lease.deadLetter(message, "unwanted") : Effect.void), { until: isEnd }).pipe(
          Effect.provide(lease.layer)
        )
      assert.deepStrictEqual(lease.dead, [["1-0", "unwanted"]])
      assert.strictEqual(lease.checkpoint, "3-0")
    }))
})

describe("attempts", () => {
  /** A handler that fails on the second message. `at` contains the times of the attempts. */
  const failing = (
    lease: ScriptedLease,
    options: StreamMessages.ProcessOptions<typeof Numbered.Type> = {},
    error: unknown = "no two",
    times = Infinity
  ) => {
    const at: Array<number> = []
    const observed: Array<number> = []
    const run = StreamMessages.process(
      Numbered,
      ({ value: { n } }) =>
        Effect.gen(function*() {
          if (n === 2) at.push(yield* Clock.currentTimeMillis)
          if (n === 2 && at.length <= times) return yield* Effect.fail(error)
          observed.push(n)
        }),
      { until: isEnd, ...options }
    ).pipe(Effect.provide(lease.layer))
    return { at, observed, run }
  }

  const three = () => {
    const lease = new ScriptedLease()
    lease.add(numbered(1), numbered(2), end("3-0"))
    return lease
  }

  it.effect("a message that always fails is dead-lettered after ten attempts in three minutes, and the next one is processed", () =>
    Effect.gen(function*() {
      const lease = three()
      const { at, run, observed } = failing(lease)
      const { failed } = StreamMetrics.stream.deadMessages
      const before = yield* Metric.value(failed)
      const fiber = yield* start(run)
      yield* TestClock.adjust("3 minutes")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(observed, [1, 0])
      assert.lengthOf(at, 10)
      assert.isAbove(at[9]!, 100_000)
      assert.deepStrictEqual(lease.dead.map(([id]) => id), ["2-0"])
      assert.include(lease.dead[0]![1], "no two")
      assert.deepStrictEqual(commits(lease), ["commit 1-0", "commit 2-0", "commit 3-0"])
      assert.strictEqual((yield* Metric.value(failed)).count - before.count, 1)
    }))

  it.effect("a message that fails at first is retried with the given backoff, and processed once", () =>
    Effect.gen(function*() {
      const lease = three()
      const { at, run, observed } = failing(lease, { attempts: 3, backoff: Schedule.spaced("5 seconds") }, "busy", 2)
      const fiber = yield* start(run)
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual([observed, at, lease.dead], [[1, 2, 0], [0, 5000, 10_000], []])
    }))

  it.effect("a message is dead-lettered when the backoff schedule ends, after a single attempt if attempts is 1, and after defects", () =>
    Effect.gen(function*() {
      for (const options of [{ backoff: Schedule.recurs(2) }, { attempts: 1 }]) {
        const lease = three()
        const { at, run } = failing(lease, options)
        yield* run
        assert.lengthOf(at, options.attempts ?? 3)
        assert.lengthOf(lease.dead, 1)
      }
      const lease = three()
      const dying = processing(
        lease,
        { until: isEnd, attempts: 1 },
        (n) => n === 2 ? Effect.die(new Error("boom")) : Effect.void
      )
      yield* dying.run
      assert.deepStrictEqual(dying.observed, [1, 0])
      assert.strictEqual(lease.dead[0]![1], "Error: boom")
    }))

  class Refused extends Data.TaggedError("Refused")<{ readonly order: bigint; readonly cause?: unknown }> {}
  class Declined extends Schema.TaggedError<Declined>()("Declined", { bank: Schema.String }) {
    override readonly message = "no funds"
  }
  const unshown = Object.defineProperty(new Error("no fields"), "code", {
    enumerable: true,
    get: () => {
      throw new Error("no code")
    }
  })

  it.effect("a dead message's reason contains the error's name, message and fields, but no stack", () =>
    Effect.gen(function*() {
      for (
        const [error, reason] of [
          [new Refused({ order: 7n }), "Refused {\"order\":7n}"],
          [new Refused({ order: 7n, cause: new Error("offline") }), "Refused {\"order\":7n} (cause: Error: offline)"],
          [new Declined({ bank: "b" }), "Declined: no funds {\"bank\":\"b\"}"],
          ["busy", "busy"],
          [{ code: 3 }, "{\"code\":3}"],
          [unshown, "an error that cannot be shown"]
        ] as ReadonlyArray<readonly [unknown, string]>
      ) {
        const lease = three()
        yield* failing(lease, { attempts: 1 }, error).run
        assert.deepStrictEqual(lease.dead, [["2-0", reason]])
      }
    }))

  it.effect("errors from this library end processing without a dead letter, because the message did not fail", () =>
    Effect.gen(function*() {
      const token = FencingToken.make(1)
      const errors = [
        new SimbaError.BackendError({ operation: "acquire", isRetryable: true, cause: "outage" }),
        new SimbaError.ProtocolError({ where: "a reply", read: "x", problem: "nonsense" }),
        new SimbaError.StaleToken({ resource: "r", token, largest: FencingToken.make(2) }),
        new SimbaError.AcquireTimeout({ mutex: "m", timeout: Duration.seconds(1) }),
        new StreamError.StreamYielded({ stream: "orders" }),
        new SimbaError.LeaseLost({
          kind: "stream",
          resource: "orders",
          id: "1-0",
          token,
          reason: { _tag: "TakenOver" }
        })
      ]
      for (const error of errors) {
        const lease = three()
        const { at, run } = failing(lease, { attempts: 1 }, error)
        assert.strictEqual(failureOf(yield* Effect.exit(run)), error)
        assert.deepStrictEqual([at.length, lease.dead.length, lease.checkpoint], [1, 0, "1-0"])
      }
    }))

  it.effect("a message is left to the next owner if its handler fails after a loss", () =>
    Effect.gen(function*() {
      const lease = three()
      const { run } = processing(
        lease,
        { until: isEnd, attempts: 1 },
        (n) => n === 2 ? Effect.andThen(Effect.sync(() => lease.lose()), Effect.fail("cut off")) : Effect.void
      )
      assert.instanceOf(failureOf(yield* Effect.exit(run)), SimbaError.LeaseLost)
      assert.deepStrictEqual(lease.dead, [])
    }))

  it.effect("on revocation between two attempts, processing yields immediately and leaves the message to the next owner", () =>
    Effect.gen(function*() {
      const lease = three()
      const { run } = failing(lease, { commitEvery: 10 })
      const fiber = yield* start(run)
      yield* TestClock.adjust("100 millis")
      lease.askBack()
      yield* TestClock.adjust(0)
      assert.instanceOf(failureOf(yield* Fiber.await(fiber)), StreamError.StreamYielded)
      assert.deepStrictEqual([lease.checkpoint, lease.dead.length], ["1-0", 0])
    }))

  it.effect("earlier messages are committed in time between two attempts, and pauses count as progress", () =>
    Effect.gen(function*() {
      const lease = three()
      const backoff = Schedule.spaced("1 minute")
      const { run } = failing(lease, { commitEvery: 10, commitWithin: "1 second", attempts: 2, backoff })
      const fiber = yield* start(run)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(lease.checkpoint, "1-0")
      assert.deepStrictEqual(lease.calls.filter((call) => call === "progress").length, 2)
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
    }))
})

describe("revoked", { tags: ["B57"] }, () => {
  it.effect("on revocation, processing stops between two messages, commits processed messages, and yields", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered(2), numbered(3))
      const { run, observed } = processing(lease, { commitEvery: 10 }, () => Effect.sleep("1 second"))
      const fiber = yield* start(run)
      yield* TestClock.adjust("1500 millis")
      lease.askBack()
      yield* TestClock.adjust("499 millis")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.instanceOf(failureOf(yield* Fiber.await(fiber)), StreamError.StreamYielded)
      assert.deepStrictEqual(observed, [1, 2])
      assert.deepStrictEqual(lease.calls.slice(2), ["progress", "progress", "handBack", "commit 2-0"])
    }))

  it.effect("on revocation, processing stops immediately if it is waiting for messages", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1))
      const { run } = processing(lease, { commitEvery: 10 })
      const fiber = yield* start(run)
      yield* Effect.yieldNow
      assert.isUndefined(fiber.pollUnsafe())
      lease.askBack()
      assert.instanceOf(failureOf(yield* Fiber.await(fiber)), StreamError.StreamYielded)
      assert.strictEqual(lease.checkpoint, "1-0")
    }))

  it.effect("processing yields without a commit if revoked before the first message, and finishes if revoked during the last one", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(end("1-0"))
      lease.askBack()
      assert.instanceOf(
        failureOf(yield* Effect.exit(processing(lease, { until: isEnd }).run)),
        StreamError.StreamYielded
      )
      assert.isUndefined(lease.checkpoint)
      const other = new ScriptedLease()
      other.add(end("1-0"))
      yield* processing(other, { until: isEnd }, () => Effect.sync(() => other.askBack())).run
      assert.strictEqual(other.checkpoint, "1-0")
    }))

  it.effect("on revocation, processing yields even if the backend is down", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1))
      const fiber = yield* start(processing(lease, { commitEvery: 10 }).run)
      yield* Effect.yieldNow
      lease.outages = Infinity
      lease.askBack()
      assert.instanceOf(failureOf(yield* Fiber.await(fiber)), StreamError.StreamYielded)
      assert.isUndefined(lease.checkpoint)
    }))
})

describe("lost", () => {
  it.effect(
    "after a loss, processing commits nothing more and fails with LeaseLost",
    () =>
      Effect.gen(function*() {
        const lease = new ScriptedLease()
        lease.add(numbered(1), numbered(2))
        const { run, observed } = processing(lease, undefined, (n) => Effect.sync(() => n === 2 && lease.lose()))
        assert.instanceOf(failureOf(yield* Effect.exit(run)), SimbaError.LeaseLost)
        assert.deepStrictEqual(observed, [1, 2])
        assert.strictEqual(lease.checkpoint, "1-0")
      }),
    { tags: ["B55"] }
  )

  it.effect("on interruption, processing commits processed messages if the stream is still owned, and otherwise sends nothing", () =>
    Effect.gen(function*() {
      for (const isLost of [false, true]) {
        const lease = new ScriptedLease()
        lease.add(numbered(1), numbered(2))
        const { run } = processing(lease, { commitEvery: 10 }, (n) => n === 2 ? Effect.never : Effect.void)
        const fiber = yield* start(run)
        yield* Effect.yieldNow
        if (isLost) lease.lose()
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(commits(lease), isLost ? [] : ["commit 1-0"])
      }
    }))

  it.effect("on interruption, processing does not wait for a reply after the end of the lease", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered(2))
      const { run } = processing(lease, { commitEvery: 10 }, (n) => n === 2 ? Effect.never : Effect.void)
      const fiber = yield* start(run)
      yield* Effect.yieldNow
      lease.isSilent = true
      const interrupting = yield* start(Fiber.interrupt(fiber))
      yield* TestClock.adjust("1999 millis")
      assert.isUndefined(interrupting.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(interrupting)
      assert.deepStrictEqual(commits(lease), ["commit 1-0"])
    }))

  it.effect("processing continues after outages at every step", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered("x", "1-0"), numbered(2), end("3-0"))
      lease.outages = 3
      const { run, observed } = processing(lease, { until: isEnd }, () => Effect.sync(() => void (lease.outages = 2)))
      const fiber = yield* start(run)
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(observed, [2, 0])
      assert.strictEqual(lease.checkpoint, "3-0")
      assert.strictEqual(commits(lease).length, 7)
    }))
})

describe("messages", () => {
  it.effect("does not commit by itself, ends after the last message, and fails with StreamYielded on revocation", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered(2), end("3-0"), numbered(4))
      const all = yield* StreamMessages.messages(Numbered, { until: isEnd }).pipe(
        Stream.runCollect,
        Effect.provide(lease.layer)
      )
      assert.deepStrictEqual(all.map(({ id, value }) => [id, value.n]), [["1-0", 1], ["2-0", 2], ["3-0", 0]])
      assert.deepStrictEqual(commits(lease), [])
      const observed: Array<number> = []
      const exit = yield* StreamMessages.messages(Numbered).pipe(
        Stream.runForEach(({ value }) =>
          Effect.sync(() => {
            observed.push(value.n)
            if (value.n === 2) lease.askBack()
          })
        ),
        Effect.provide(lease.layer),
        Effect.exit
      )
      assert.instanceOf(failureOf(exit), StreamError.StreamYielded)
      assert.deepStrictEqual(observed, [1, 2])
    }))

  it.effect("dead-letters an undecodable message only after the message before it has been processed", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(numbered(1), numbered("x", "2-0"), end("3-0"))
      yield* StreamMessages.messages(Numbered, { until: isEnd }).pipe(
        Stream.runForEach(({ value }) => Effect.sync(() => lease.calls.push(`through ${value.n}`))),
        Effect.provide(lease.layer)
      )
      assert.deepStrictEqual(lease.calls.slice(2), ["through 1", "dead-letter 2-0", "through 0"])
    }))
})

describe("options", () => {
  it.effect("invalid options are refused before any request is sent", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      for (
        const options of [
          { commitEvery: 0 },
          { commitEvery: 1.5 },
          { batch: 0 },
          { commitWithin: 0 },
          { commitWithin: -1 },
          { attempts: 0 },
          { attempts: 2.5 }
        ]
      ) {
        const failure = failureOf(yield* Effect.exit(processing(lease, options).run))
        assert.deepInclude(failure, { _tag: "InvalidConfig", option: Object.keys(options)[0] })
      }
      assert.deepStrictEqual(lease.calls, [])
    }))
})

it.effect("if a pull is interrupted while it decodes a message or checks whether it is the last one, the next pull returns that message", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(numbered(1), end("2-0"))
    const Slow = Numbered.pipe(
      Schema.decodeTo(
        Schema.toType(Numbered),
        SchemaTransformation.transformEffect({
          decode: (value) => Effect.delay(Effect.succeed(value), "1 second"),
          encode: (value) => Effect.succeed(value)
        })
      )
    )
    const pull = yield* Stream.toPull(
      StreamMessages.messages(Slow, { until: isEnd }).pipe(Stream.provide(lease.layer))
    )
    /** The number that is pulled within three seconds. */
    const read = Effect.gen(function*() {
      const pulling = yield* Effect.forkChild(pull, { startImmediately: true })
      yield* TestClock.adjust("3 seconds")
      const exit = pulling.pollUnsafe()
      return exit !== undefined && Exit.isSuccess(exit) ? exit.value[0].value.n : undefined
    })
    const interrupted = (after: Duration.Input) =>
      Effect.gen(function*() {
        const pulling = yield* Effect.forkChild(pull, { startImmediately: true })
        yield* TestClock.adjust(after)
        assert.isUndefined(pulling.pollUnsafe())
        yield* Fiber.interrupt(pulling)
      })
    yield* interrupted("500 millis")
    assert.strictEqual(yield* read, 1)
    yield* interrupted("500 millis")
    lease.isCountSilent = true
    yield* interrupted("1500 millis")
    lease.isCountSilent = false
    assert.strictEqual(yield* read, 0)
  }).pipe(Effect.scoped))
