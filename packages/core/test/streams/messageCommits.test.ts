/** Tests when processed messages are committed, during another commit and after a failed one. */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import { assert, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Latch, Scheduler } from "effect"
import { TestClock } from "effect/testing"
import { MessageCommits } from "../../src/streams/internal/messageCommits.ts"
import type { StreamLease } from "../../src/streams/StreamLease.ts"

const processed = (n: number) => ({ id: EntryId.make(`${n}-0`), offset: n, isLast: false })

/** `MessageCommits` on a lease whose commits wait for the latch. */
const setup = Effect.fnUntraced(function*(options: ConstructorParameters<typeof MessageCommits>[2]) {
  const calls: Array<string> = []
  const latch = Latch.makeUnsafe(true)
  const lease = {
    commit: (id: EntryId) => Effect.andThen(Effect.sync(() => calls.push(id)), latch.await),
    progress: Effect.sync(() => calls.push("progress")),
    timeLeft: Effect.succeed(Duration.seconds(1))
  } as unknown as StreamLease
  return { calls, latch, commits: new MessageCommits(lease, yield* Clock.Clock, options) }
})

it.effect("a message that is processed during a commit counts towards the next one", () =>
  Effect.gen(function*() {
    const { calls, commits, latch } = yield* setup({ commitEvery: 2 })
    commits.add(processed(1))
    commits.add(processed(2))
    latch.closeUnsafe()
    const fiber = yield* Effect.forkChild(commits.afterMessage, { startImmediately: true })
    commits.add(processed(3))
    latch.openUnsafe()
    yield* Fiber.join(fiber)
    // Only one message is uncommitted, so no commit is due
    yield* commits.afterMessage
    assert.deepStrictEqual(calls, ["2-0", "progress"])
    commits.add(processed(4))
    yield* commits.afterMessage
    assert.deepStrictEqual(calls, ["2-0", "progress", "4-0"])
    yield* commits.flush
    assert.lengthOf(calls, 3)
  }))

it.effect("a commit is due commitWithin after the first uncommitted message", () =>
  Effect.gen(function*() {
    const { calls, commits } = yield* setup({ commitEvery: 100, commitWithin: "1 second" })
    commits.add(processed(1))
    yield* TestClock.adjust("600 millis")
    commits.add(processed(2))
    yield* commits.afterMessage
    assert.deepStrictEqual(calls, ["progress"])
    const fiber = yield* Effect.forkChild(commits.whenDue, { startImmediately: true })
    yield* TestClock.adjust("399 millis")
    assert.deepStrictEqual(calls, ["progress"])
    yield* TestClock.adjust("1 millis")
    assert.deepStrictEqual(calls, ["progress", "2-0"])
    yield* Fiber.interrupt(fiber)
    commits.add(processed(3))
    yield* TestClock.adjust("1 second")
    yield* commits.afterMessage
    assert.deepStrictEqual(calls, ["progress", "2-0", "3-0"])
  }))

it.effect("the next commit covers the messages in a failed commit", () =>
  Effect.gen(function*() {
    const { calls, commits, latch } = yield* setup({ commitEvery: 3, commitWithin: "1 second" })
    latch.closeUnsafe()
    commits.add(processed(1))
    const first = yield* Effect.forkChild(commits.flush, { startImmediately: true })
    yield* TestClock.adjust("400 millis")
    commits.add(processed(2))
    yield* Fiber.interrupt(first)
    latch.openUnsafe()
    yield* commits.afterMessage
    assert.deepStrictEqual(calls, ["1-0", "progress"])
    // The commit is due one second after the first message
    yield* TestClock.adjust("600 millis")
    yield* commits.afterMessage
    assert.deepStrictEqual(calls, ["1-0", "progress", "2-0"])
  }))

it.effect("settle awaits the commit in flight, and does not commit forgotten messages", () =>
  Effect.gen(function*() {
    const { calls, commits, latch } = yield* setup({ commitEvery: 1 })
    commits.add(processed(1))
    latch.closeUnsafe()
    const flush = yield* Effect.forkChild(commits.flush, { startImmediately: true })
    const settled = yield* Effect.forkChild(commits.settle, { startImmediately: true })
    yield* TestClock.adjust("1 second")
    assert.isUndefined(settled.pollUnsafe())
    latch.openUnsafe()
    yield* Fiber.joinAll([flush, settled])
    commits.add(processed(2))
    yield* commits.settle
    yield* commits.flush
    yield* commits.atLast
    assert.deepStrictEqual(calls, ["1-0"])
  }))

it.effect("messages in a failed commit count towards commitEvery", () =>
  Effect.gen(function*() {
    const { calls, commits, latch } = yield* setup({ commitEvery: 3 })
    latch.closeUnsafe()
    commits.add(processed(1))
    const failing = yield* Effect.forkChild(commits.flush, { startImmediately: true })
    commits.add(processed(2))
    yield* Fiber.interrupt(failing)
    latch.openUnsafe()
    yield* commits.afterMessage
    assert.deepStrictEqual(calls, ["1-0", "progress"])
    commits.add(processed(3))
    yield* commits.afterMessage
    assert.deepStrictEqual(calls, ["1-0", "progress", "3-0"])
  }))

it.effect("if a commit fails after commitWithin, its messages are committed immediately", () =>
  Effect.gen(function*() {
    const { calls, commits, latch } = yield* setup({ commitEvery: 100, commitWithin: "1 second" })
    yield* Effect.forkChild(commits.whenDue, { startImmediately: true })
    commits.add(processed(1))
    latch.closeUnsafe()
    const failing = yield* Effect.forkChild(commits.flush, { startImmediately: true })
    yield* TestClock.adjust("2 seconds")
    yield* Fiber.interrupt(failing)
    latch.openUnsafe()
    yield* TestClock.adjust(0)
    assert.deepStrictEqual(calls, ["1-0", "1-0"])
  }))

it.effect("no commit is even one millisecond early", () =>
  Effect.gen(function*() {
    const { calls, commits } = yield* setup({ commitEvery: 100, commitWithin: "1 second" })
    commits.add(processed(1))
    yield* TestClock.adjust("999 millis")
    yield* Effect.forkChild(commits.whenDue, { startImmediately: true })
    yield* TestClock.adjust(0)
    assert.deepStrictEqual(calls, [])
    yield* TestClock.adjust("1 millis")
    assert.deepStrictEqual(calls, ["1-0"])
  }))

it.effect("nothing runs between a commit and the next message", () =>
  Effect.gen(function*() {
    const { calls, commits } = yield* setup({ commitEvery: 100, commitWithin: "1 second" })
    const scheduler = yield* Scheduler.Scheduler
    let turns = 0
    const counting: Scheduler.Scheduler = {
      executionMode: scheduler.executionMode,
      shouldYield: (fiber) => scheduler.shouldYield(fiber),
      makeDispatcher: () => {
        const dispatcher = scheduler.makeDispatcher()
        return {
          flush: () => dispatcher.flush(),
          scheduleTask: (task, priority) => {
            turns++
            dispatcher.scheduleTask(task, priority)
          }
        }
      }
    }
    yield* commits.whenDue.pipe(
      Effect.provideService(Scheduler.Scheduler, counting),
      Effect.forkChild({ startImmediately: true })
    )
    commits.add(processed(1))
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(calls, ["1-0"])
    turns = 0
    for (let i = 0; i < 100; i++) yield* Effect.yieldNow
    assert.isBelow(turns, 10)
  }))
