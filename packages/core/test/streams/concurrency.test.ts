/** Tests `StreamMessages`: concurrent processing, batches, and read sizes. */
import { SimbaError } from "@effect-simba/core"
import { StreamError, StreamLease, StreamMessages } from "@effect-simba/core/streams"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Duration, Effect, Exit, Fiber, Layer, Logger, Schedule, Schema } from "effect"
import { TestClock } from "effect/testing"
import { message, ScriptedLease } from "../support/scriptedLease.ts"

const Order = Schema.Struct({ customer: Schema.String, n: Schema.FiniteFromString })

const order = (n: number, customer = "a") => message(`${n}-0`, { customer, n: String(n) })

const commits = (lease: ScriptedLease) => lease.calls.filter((call) => call.startsWith("commit"))

const reads = (lease: ScriptedLease) => lease.calls.filter((call) => call.startsWith("read"))

const errorOf = (exit: Exit.Exit<unknown, unknown>) => Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined

/** Processes orders with `work`, and records when the processing of each one starts and ends. */
const processing = (
  lease: ScriptedLease,
  work: (n: number) => Effect.Effect<void, unknown>,
  options?: StreamMessages.ProcessOptions<typeof Order.Type>
) => {
  const notes: Array<string> = []
  return StreamMessages.process(Order, ({ value: { n } }) =>
    Effect.sync(() => notes.push(`+${n}`)).pipe(
      Effect.andThen(work(n)),
      Effect.onExit((exit) => Effect.sync(() => notes.push(Exit.isSuccess(exit) ? `-${n}` : `!${n}`)))
    ), { concurrency: 3, key: ({ value }) => value.customer, ...options }).pipe(
      Effect.provide(lease.layer),
      Effect.forkChild({ startImmediately: true }),
      Effect.map((fiber) => ({ fiber, notes }))
    )
}

const seconds = (n: number) => Effect.sleep(Duration.seconds(n))

describe("concurrent messages", () => {
  it.effect("no waiting message starts after the lease has been lost", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      // Message 2 waits for its key, and 5 for one of the slots
      lease.add(order(1, "a"), order(2, "a"), order(3, "b"), order(4, "c"), order(5, "d"))
      const work = (n: number) => Effect.andThen(seconds(1), Effect.sync(() => n === 1 && lease.lose()))
      const { fiber, notes } = yield* processing(lease, (n) => Effect.asVoid(work(n)), { commitEvery: 10 })
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(notes.filter((note) => note.startsWith("+")), ["+1", "+3", "+4"])
      assert.instanceOf(errorOf(yield* Fiber.await(fiber)), SimbaError.LeaseLost)
    }))

  it.effect("messages with the same key keep their order, others may overtake them, and at most `concurrency` run at the same time", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(order(1, "a"), order(2, "a"), order(3, "b"), order(4, "c"), order(5, "d"))
      const { fiber, notes } = yield* processing(lease, () => seconds(1))
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(notes, ["+1", "+3", "+4"])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(new Set(notes.slice(3)), new Set(["-1", "-3", "-4", "+2", "+5"]))
      assert.isBelow(notes.indexOf("-1"), notes.indexOf("+2"))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(new Set(notes.slice(8)), new Set(["-2", "-5"]))
      assert.strictEqual(lease.checkpoint, "5-0")
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("commits do not move past a message that is unfinished or being retried", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(order(1, "a"), order(2, "b"), order(3, "c"), order(4, "d"))
      let isMended = false
      const { fiber } = yield* processing(
        lease,
        (n) => n === 2 && !isMended ? Effect.fail("busy") : seconds(n),
        { backoff: Schedule.spaced("20 seconds") }
      )
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(commits(lease), ["commit 1-0"])
      isMended = true
      yield* TestClock.adjust("12 seconds")
      assert.strictEqual(lease.checkpoint, "4-0")
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("a message that always fails is dead-lettered, and later messages with its key are processed", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(order(1, "a"), order(2, "a"), message("3-0", { customer: "a" }), order(4, "a"))
      const { fiber, notes } = yield* processing(lease, (n) => n === 1 ? Effect.fail("bad") : Effect.void, {
        attempts: 2,
        backoff: Schedule.spaced("1 second"),
        until: ({ value }) => value.n === 4
      })
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(notes, ["+1", "!1", "+1", "!1", "+2", "-2", "+4", "-4"])
      assert.deepStrictEqual(lease.dead.map(([id]) => id).sort(), ["1-0", "3-0"])
      assert.deepStrictEqual([lease.checkpoint, lease.end], ["4-0", "Ended"])
    }))

  it.effect("a message on which `key` throws is dead-lettered, even if it is the last one, and other messages are processed", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(order(1, "a"), order(2, "bad"), order(3, "b"), order(4, "bad"))
      const { fiber, notes } = yield* processing(lease, () => seconds(1), {
        key: ({ value: { customer } }) => {
          if (customer === "bad") throw new TypeError("no customer")
          return customer
        },
        until: ({ value }) => value.n === 4
      })
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual(notes, ["+1", "+3"])
      assert.deepStrictEqual(commits(lease), [])
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(lease.dead, [
        ["2-0", "`key` failed: TypeError: no customer"],
        ["4-0", "`key` failed: TypeError: no customer"]
      ])
      assert.deepStrictEqual([lease.checkpoint, lease.end], ["4-0", "Ended"])
    }))

  it.effect("on revocation, processing finishes and commits in-flight messages, then yields", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(order(1, "a"), order(2, "b"), order(3, "c"), order(4, "a"), order(5, "d"))
      const { fiber, notes } = yield* processing(lease, (n) => seconds(n))
      yield* TestClock.adjust("500 millis")
      lease.askBack()
      yield* TestClock.adjust("1 second")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("2 seconds")
      assert.instanceOf(errorOf(yield* Fiber.await(fiber)), StreamError.StreamYielded)
      assert.deepStrictEqual(notes, ["+1", "+2", "+3", "-1", "-2", "-3"])
      assert.strictEqual(lease.checkpoint, "3-0")
    }))

  it.effect("on revocation, no more messages start, even if processing is as far ahead of the checkpoint as it may be", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      for (let n = 1; n <= 120; n++) lease.add(order(n, String(n)))
      const { fiber, notes } = yield* processing(lease, (n) => seconds(n === 1 ? 8 : 1))
      yield* TestClock.adjust("4500 millis")
      lease.askBack()
      const started = notes.filter((note) => note.startsWith("+")).length
      yield* TestClock.adjust("10 seconds")
      assert.instanceOf(errorOf(yield* Fiber.await(fiber)), StreamError.StreamYielded)
      assert.strictEqual(notes.filter((note) => note.startsWith("+")).length, started)
      assert.include(notes, "-1")
    }))

  it.effect("when a handler yields, processing finishes and commits in-flight messages, then yields", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(order(1, "a"), order(2, "b"), order(3, "c"))
      const yielded = new StreamError.StreamYielded({ stream: "orders" })
      const { fiber, notes } = yield* processing(lease, (n) => n === 2 ? Effect.fail(yielded) : seconds(1))
      yield* TestClock.adjust("2 seconds")
      assert.instanceOf(errorOf(yield* Fiber.await(fiber)), StreamError.StreamYielded)
      assert.deepStrictEqual(notes, ["+1", "+2", "!2", "-1"])
      assert.strictEqual(lease.checkpoint, "1-0")
    }))

  it.effect("after a loss, processing commits nothing more, and fails once all handlers have ended", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(order(1, "a"), order(2, "b"), order(3, "c"))
      const { fiber, notes } = yield* processing(lease, (n) => {
        if (n === 2) {
          return Effect.andThen(Effect.sync(() => lease.lose()), Effect.fail("cut off")).pipe(Effect.delay("1 second"))
        }
        return Effect.onInterrupt(seconds(10), () => seconds(1))
      })
      yield* TestClock.adjust("1500 millis")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.strictEqual((errorOf(yield* Fiber.await(fiber)) as { _tag: string })._tag, "LeaseLost")
      assert.sameMembers(notes.slice(4), ["!1", "!3"])
      assert.deepStrictEqual(commits(lease), [])
    }))

  it.effect("commits after `commitEvery` messages, or after `commitWithin` even if other messages are still being processed", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(order(1, "a"), order(2, "b"), order(3, "c"), order(4, "d"))
      const { fiber } = yield* processing(lease, (n) => n === 4 ? seconds(60) : Effect.void, {
        commitEvery: 2,
        commitWithin: "1 second"
      })
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(commits(lease), ["commit 2-0"])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(commits(lease), ["commit 2-0", "commit 3-0"])
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("there is at most one timer for the next commit, however many commits there are", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      const clock = yield* Clock.Clock
      let waiting = 0
      let most = 0
      const counting: Clock.Clock = {
        ...clock,
        sleep: (duration) => {
          // Ignore the reader's own sleeps of 1 and 30 seconds
          const millis = Duration.toMillis(duration)
          if (millis <= 1000 || millis > 10_000) return clock.sleep(duration)
          return Effect.suspend(() => {
            most = Math.max(most, ++waiting)
            return Effect.ensuring(clock.sleep(duration), Effect.sync(() => waiting--))
          })
        }
      }
      const { fiber } = yield* Effect.provideService(
        processing(lease, () => Effect.void, { commitEvery: 2, commitWithin: "10 seconds" }),
        Clock.Clock,
        counting
      )
      for (let n = 1; n <= 41; n++) {
        lease.add(order(n, String(n)))
        yield* TestClock.adjust("100 millis")
      }
      assert.deepStrictEqual([lease.checkpoint, most], ["40-0", 1])
      // The handler for the last message ended at 4 s
      yield* TestClock.adjust("9899 millis")
      assert.strictEqual(lease.checkpoint, "40-0")
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual([lease.checkpoint, most, waiting], ["41-0", 1, 0])
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("for a message that finishes during a commit, commitWithin starts when it finishes, and nothing stays uncommitted", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(order(1, "a"), order(2, "b"), order(3, "c"))
      const slow = Layer.effect(
        StreamLease.StreamLease,
        Effect.map(StreamLease.StreamLease, (inner): StreamLease.StreamLease => ({
          ...inner,
          commit: (id, options) => Effect.delay(inner.commit(id, options), "300 millis")
        }))
      ).pipe(Layer.provide(lease.layer))
      const ends: Record<number, number> = { 1: 0, 2: 1.1, 3: 1.2, 4: 3, 5: 3.1 }
      const fiber = yield* StreamMessages.process(
        Order,
        ({ value: { n } }) => Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sleep(ends[n]! * 1000 - now)),
        {
          concurrency: 3,
          key: ({ value }) => value.customer,
          commitEvery: 100,
          commitWithin: "1 second",
          until: ({ value }) => value.n === 5
        }
      ).pipe(Effect.provide(slow), Effect.forkChild({ startImmediately: true }))
      // The first commit takes from 1000 to 1300 ms
      yield* TestClock.adjust("1300 millis")
      assert.deepStrictEqual(commits(lease), ["commit 1-0"])
      // The second commit takes from 2100 to 2400 ms
      yield* TestClock.adjust("1099 millis")
      assert.deepStrictEqual(commits(lease), ["commit 1-0"])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(commits(lease), ["commit 1-0", "commit 3-0"])
      lease.add(order(4, "a"), order(5, "b"))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(commits(lease).slice(2), ["commit 5-0"])
      assert.deepStrictEqual([lease.checkpoint, lease.end], ["5-0", "Ended"])
    }))

  it.effect("at most 99 messages are processed ahead of a slow one", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(...Array.from({ length: 300 }, (_, i) => order(i + 1, String(i))))
      const { fiber, notes } = yield* processing(lease, (n) => n === 1 ? seconds(1) : Effect.void)
      yield* TestClock.adjust("900 millis")
      assert.strictEqual(notes.filter((note) => note.startsWith("-")).length, 99)
      assert.isUndefined(lease.checkpoint)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(lease.checkpoint, "300-0")
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("with a high concurrency, up to four times as many messages are processed ahead of a slow one", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(...Array.from({ length: 300 }, (_, i) => order(i + 1, String(i))))
      const { fiber, notes } = yield* processing(lease, (n) => n === 1 ? seconds(1) : Effect.void, { concurrency: 50 })
      yield* TestClock.adjust("900 millis")
      assert.strictEqual(notes.filter((note) => note.startsWith("-")).length, 199)
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("a recreated data stream is read once the messages in flight are done, and those are not committed", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(order(50, "a"), order(51, "b"))
      const { fiber, notes } = yield* processing(lease, (n) => n === 50 ? seconds(100) : Effect.void, {
        onGap: () => Effect.void
      })
      yield* TestClock.adjust("10 seconds")
      lease.rewrite(order(1, "a"), order(2, "b"))
      yield* TestClock.adjust("80 seconds")
      assert.deepStrictEqual(notes, ["+50", "+51", "-51"])
      yield* TestClock.adjust("1 minute")
      assert.sameMembers(notes.slice(4), ["+1", "-1", "+2", "-2"])
      assert.deepStrictEqual(
        lease.calls.filter((call) => /commit|seek/.test(call)).slice(-2),
        ["seek 0-0", "commit 2-0"]
      )
      yield* Fiber.interrupt(fiber)
    }))
})

describe("batches", () => {
  const batched = Effect.fnUntraced(function*(
    lease: ScriptedLease,
    options?: StreamMessages.ReadOptions<typeof Order.Type> & {
      readonly batchWithin?: Duration.Input
      readonly attempts?: number
      readonly backoff?: Schedule.Schedule<unknown>
    },
    work: (ns: ReadonlyArray<number>) => Effect.Effect<void, unknown> = () => Effect.void
  ) {
    const observed: Array<ReadonlyArray<number>> = []
    const fiber = yield* StreamMessages.processBatches(Order, (messages) => {
      const ns = messages.map(({ value }) => value.n)
      return Effect.andThen(work(ns), Effect.sync(() => observed.push(ns)))
    }, options).pipe(Effect.provide(lease.layer), Effect.forkChild({ startImmediately: true }))
    yield* TestClock.adjust(0)
    return { fiber, observed }
  })

  it.effect("a batch contains messages from one read, up to its limit, and is committed once", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(...[1, 2, 3, 4, 5].map((n) => order(n)))
      const { fiber, observed } = yield* batched(lease, { batch: 3 })
      assert.deepStrictEqual(observed, [[1, 2, 3], [4, 5]])
      assert.deepStrictEqual(commits(lease), ["commit 3-0", "commit 5-0"])
      lease.add(order(6))
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(observed.slice(2), [[6]])
      // Every read returned messages
      assert.deepStrictEqual(reads(lease).slice(0, 3), ["read 0-0", "read 3-0", "read 5-0"])
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("a batch waits until its limit on messages, bytes or time is reached", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      const { fiber, observed } = yield* batched(lease, { batch: 3, batchBytes: 100, batchWithin: "1 second" })
      lease.add(order(1))
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(observed, [])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(observed, [[1]])
      lease.add(order(2), order(3))
      yield* TestClock.adjust("100 millis")
      assert.lengthOf(observed, 1)
      lease.add(order(4))
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual(observed.slice(1), [[2, 3, 4]])
      lease.add(order(5, "x".repeat(100)))
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(observed.slice(2), [[5]])
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("a batch that always fails is retried message by message, and only the bad message is dead-lettered", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(order(1), order(2), order(3), message("4-0", { customer: "a", n: "0" }))
      const options = {
        attempts: 2,
        backoff: Schedule.spaced(Duration.millis(1000.4)),
        until: ({ value }: { value: { n: number } }) => value.n === 0
      }
      const lines: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String([message].flat()[0])))
      const { fiber, observed } = yield* Effect.provide(
        batched(lease, options, (ns) => ns.includes(2) ? Effect.fail("no two") : Effect.void),
        Logger.layer([logger])
      )
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(observed, [[1], [3], [0]])
      assert.deepStrictEqual(lines, [
        "A batch of 4 messages failed (attempt 1 of 2); retrying in 1s",
        "A batch of 4 messages failed 2 time(s); retrying them one by one",
        "A message failed (attempt 1 of 2); retrying in 1s",
        "A message failed 2 time(s); moving it to the dead letters"
      ])
      assert.deepStrictEqual(lease.dead.map(([id]) => id), ["2-0"])
      assert.deepStrictEqual([lease.checkpoint, lease.end], ["4-0", "Ended"])
    }))

  it.effect("when a batch is retried message by message, each message is committed, and a revocation or loss stops it between messages", () =>
    Effect.gen(function*() {
      for (const stop of ["revoked", "lost"] as const) {
        const lease = new ScriptedLease()
        lease.add(order(1), order(2), order(3))
        const { fiber, observed } = yield* batched(
          lease,
          { attempts: 1 },
          (ns) => ns.length > 1 ? Effect.fail("not together") : Effect.sleep("1 second")
        )
        yield* TestClock.adjust("1500 millis")
        assert.deepStrictEqual(commits(lease), ["commit 1-0"])
        if (stop === "revoked") lease.askBack()
        else lease.lose()
        yield* TestClock.adjust("10 seconds")
        const error = errorOf(yield* Fiber.await(fiber))
        assert.isTrue(
          stop === "revoked" ? error instanceof StreamError.StreamYielded : error instanceof SimbaError.LeaseLost
        )
        assert.deepStrictEqual(observed, [[1], [2]])
        assert.strictEqual(lease.checkpoint, stop === "revoked" ? "2-0" : "1-0")
      }
    }))

  it.effect("when a batch is retried message by message, nothing is committed if a failover lost its messages, and a loss stops it", () =>
    Effect.gen(function*() {
      for (const isLost of [false, true]) {
        const lease = new ScriptedLease()
        lease.add(...[1, 2, 3, 4, 5].map((n) => order(n)))
        const { fiber, observed } = yield* batched(
          lease,
          { attempts: 1, batch: 10, batchWithin: "1 minute", onGap: () => Effect.void },
          (ns) => ns.length > 1 ? Effect.fail("not together") : Effect.sync(() => isLost && ns[0] === 2 && lease.lose())
        )
        lease.rewrite(order(1, "new"))
        yield* TestClock.adjust("2 minutes")
        assert.deepStrictEqual(observed, isLost ? [[1], [2]] : [[1], [2], [3], [4], [5], [1]])
        assert.deepStrictEqual(commits(lease), isLost ? [] : ["commit 0-0", "commit 1-0"])
        yield* Fiber.interrupt(fiber)
      }
    }))

  it.effect("on revocation, an incomplete batch is left to the next owner", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      const { fiber, observed } = yield* batched(lease, { batchWithin: "1 minute" })
      lease.add(order(1), message("2-0", { other: "x" }))
      yield* TestClock.adjust("1 second")
      lease.askBack()
      yield* TestClock.adjust(0)
      assert.instanceOf(errorOf(yield* Fiber.await(fiber)), StreamError.StreamYielded)
      assert.deepStrictEqual([observed, commits(lease)], [[], []])
    }))
})

describe("reads", () => {
  it.effect("a read requests as many messages as fit into `batchBytes`", () =>
    Effect.gen(function*() {
      const lease = new ScriptedLease()
      lease.add(...Array.from({ length: 40 }, (_, i) => message(`${i + 1}-0`, { n: "" })))
      const fiber = yield* StreamMessages.process(Schema.Struct({ n: Schema.String }), () => Effect.void, {
        batchBytes: 10
      }).pipe(Effect.provide(lease.layer), Effect.forkChild({ startImmediately: true }))
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(reads(lease), ["read 0-0", "read 16-0", "read 26-0", "read 36-0", "read 40-0"])
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("the first read requests 16 messages, and later reads fewer if the messages are large", () =>
    Effect.gen(function*() {
      const counts: Array<number> = []
      for (const size of [10, 1000]) {
        const lease = new ScriptedLease()
        lease.add(...Array.from({ length: 100 }, (_, i) => order(i + 1, "x".repeat(size))))
        const fiber = yield* StreamMessages.process(Order, () => Effect.void, { batchBytes: 10_000 }).pipe(
          Effect.provide(lease.layer),
          Effect.forkChild({ startImmediately: true })
        )
        yield* TestClock.adjust(0)
        counts.push(reads(lease).length)
        assert.strictEqual(reads(lease)[1], "read 16-0")
        yield* Fiber.interrupt(fiber)
      }
      // 16 and then 84 small messages. 16 large messages, then 9 at a time
      assert.deepStrictEqual(counts, [3, 12])
    }))
})

it.effect("with infinite attempts, processing ends if a handler interrupts itself", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(order(1, "a"), order(2, "b"))
    const { fiber } = yield* processing(lease, (n) => n === 1 ? Effect.interrupt : Effect.void, { attempts: Infinity })
    yield* TestClock.adjust("1 minute")
    assert.isTrue(fiber.pollUnsafe() !== undefined && Exit.isFailure(fiber.pollUnsafe()!))
  }))
