/** Tests how concurrent processing stops while messages are unfinished, and what it commits. */
import { SimbaError } from "@effect-simba/core"
import { StreamError } from "@effect-simba/core/streams"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { commits, errorOf, type Numbered, numbered, processing, recorded, timed } from "../support/recordedLease.ts"
import { message, ScriptedLease } from "../support/scriptedLease.ts"

/** Odd numbers have one key, even numbers another. */
const options = { concurrency: 2, key: ({ value }: { readonly value: typeof Numbered.Type }) => String(value.n % 2) }

it.effect("an undecodable message is committed, even if no other message is processed", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(message("1-0", { other: "x" }))
    yield* processing(lease.layer, options)
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual([commits(lease), lease.end], [["commit 1-0"], "Open"])
    // The checkpoint moves only on commits
    lease.add(numbered(2))
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(commits(lease), ["commit 1-0", "commit 2-0"])
  }))

it.effect("a handler that yields neither commits anything nor reports progress", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(numbered(1))
    const yielded = new StreamError.StreamYielded({ stream: "orders" })
    const { fiber } = yield* processing(lease.layer, options, () => Effect.delay(Effect.fail(yielded), "5 seconds"))
    yield* TestClock.adjust("5 seconds")
    assert.instanceOf(errorOf(yield* Fiber.await(fiber)), StreamError.StreamYielded)
    assert.deepStrictEqual(lease.calls.filter((call) => !call.startsWith("read")), ["checkpoint", "handBack"])
  }))

it.effect("after a revocation, a data stream is not done if its last message was read but not started", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(numbered(1), numbered(3))
    const { fiber, observed } = yield* processing(
      lease.layer,
      { ...options, until: ({ value }) => value.n === 3 },
      () => Effect.sleep("10 seconds")
    )
    yield* TestClock.adjust("5 seconds")
    lease.askBack()
    yield* TestClock.adjust("5 seconds")
    assert.instanceOf(errorOf(yield* Fiber.await(fiber)), StreamError.StreamYielded)
    assert.deepStrictEqual([observed, commits(lease), lease.end], [[1], ["commit 1-0"], "Open"])
  }))

it.effect("a revocation during a commit between two messages ends processing, whether or not the last message has been read", () =>
  Effect.gen(function*() {
    // The loop is waiting for room for another message, or for the last one to finish
    for (const [count, last] of [[150, 0], [3, 3]] as const) {
      const lease = new ScriptedLease()
      lease.add(...Array.from({ length: count }, (_, i) => numbered(i + 1)))
      const { layer } = recorded(lease, ({ commit }) => ({
        commit: (id, options) => Effect.andThen(Effect.sleep("1 second"), commit(id, options))
      }))
      const { fiber, observed } = yield* processing(layer, {
        concurrency: 2,
        key: () => "k",
        until: ({ value }) => value.n === last
      })
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual(observed, [1])
      lease.askBack()
      yield* TestClock.adjust("10 seconds")
      assert.instanceOf(errorOf(fiber.pollUnsafe()), StreamError.StreamYielded)
      assert.deepStrictEqual([observed, lease.checkpoint], [[1], "1-0"])
    }
  }))

it.effect("a loss immediately ends running handlers", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(numbered(1))
    const { fiber, observed } = yield* processing(lease.layer, options, () => Effect.sleep("10 minutes"))
    yield* TestClock.adjust("5 seconds")
    lease.lose()
    lease.add(numbered(2))
    yield* TestClock.adjust(0)
    assert.instanceOf(errorOf(fiber.pollUnsafe()), SimbaError.LeaseLost)
    assert.deepStrictEqual(observed, [])
  }))

it.effect("after a data stream was recreated and revoked, the checkpoint moves back as soon as the running handler has ended", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(numbered(51), numbered(52), numbered(53))
    const { fiber, observed } = yield* processing(
      lease.layer,
      options,
      (n) => n === 51 ? Effect.sleep("100 seconds") : Effect.void
    )
    yield* TestClock.adjust("10 seconds")
    lease.rewrite(numbered(1))
    yield* TestClock.adjust("50 seconds")
    lease.askBack()
    yield* TestClock.adjust("39 seconds")
    assert.notInclude(lease.calls, "seek 0-0")
    assert.isUndefined(fiber.pollUnsafe())
    yield* TestClock.adjust("1 second")
    assert.instanceOf(errorOf(fiber.pollUnsafe()), StreamError.StreamYielded)
    assert.deepStrictEqual(observed, [52, 51])
    assert.deepStrictEqual([lease.checkpoint, commits(lease)], ["0-0", []])
  }))

it.effect("after a failover that lost the newest messages, the last remaining message is committed again", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    const messages = Array.from({ length: 12 }, (_, i) => timed(i + 1))
    lease.add(...messages)
    const { gaps } = yield* processing(lease.layer, options)
    yield* TestClock.adjust("1 minute")
    lease.rewrite(...messages.slice(0, 10))
    lease.checkpoint = timed(5).id
    lease.offset = 5
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(gaps, [`LostEnd ${timed(10).id} ${timed(12).id} 2`])
    assert.deepStrictEqual([lease.checkpoint, lease.offset], [timed(10).id, 10])
  }))

it.effect("a recreated data stream's checkpoint moves back only after all running handlers have ended, even during a commit between two messages", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    lease.add(numbered(51), numbered(53))
    const { layer } = recorded(lease, (inner) => ({
      commit: (id, options) => Effect.delay(inner.commit(id, options), "1 second")
    }))
    yield* processing(layer, options, (n) => Effect.sleep(n === 51 ? "10 seconds" : "100 seconds"))
    yield* TestClock.adjust("500 millis")
    lease.rewrite(numbered(1))
    yield* TestClock.adjust("1 minute")
    assert.notInclude(lease.calls, "seek 0-0")
    yield* TestClock.adjust("51 seconds")
    assert.include(lease.calls, "seek 0-0")
    assert.strictEqual(lease.checkpoint, "0-0")
    assert.deepStrictEqual(commits(lease), ["commit 51-0"])
  }))

it.effect("a revocation during the search for the last remaining message commits nothing, because earlier messages have not been processed", () =>
  Effect.gen(function*() {
    const lease = new ScriptedLease()
    const messages = Array.from({ length: 12 }, (_, i) => timed(i + 1))
    lease.add(...messages)
    const oneLane = { concurrency: 2, key: () => "all" }
    const { fiber, observed } = yield* processing(lease.layer, oneLane, () => Effect.sleep("30 seconds"))
    yield* TestClock.adjust("10 seconds")
    lease.rewrite(...messages.slice(0, 10))
    yield* TestClock.adjust("30 seconds")
    lease.askBack()
    yield* TestClock.adjust("1 minute")
    assert.instanceOf(errorOf(fiber.pollUnsafe()), StreamError.StreamYielded)
    assert.deepStrictEqual([observed, commits(lease)], [[1, 2], [`commit ${timed(1).id}`]])
  }))
