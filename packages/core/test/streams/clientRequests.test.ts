/** Tests what a client requests when it acquires by name, joins and closes. */
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Option, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { errorOf } from "../support/recordedLease.ts"
import * as fleet from "../support/streamFleet.ts"

/** Announces data streams that were delivered to another consumer before it died. */
const abandoned = Effect.gen(function*() {
  const made = yield* fleet.make
  const first = yield* made.open("first")
  yield* first.serve(2)
  yield* TestClock.adjust("1 second")
  yield* first.kill
  yield* TestClock.adjust("30 seconds")
  return made
})

it.effect("a client sends nothing when it acquires a data stream that it already owns", () =>
  fleet.test(Effect.gen(function*() {
    const { open } = yield* abandoned
    const a = yield* open("a")
    assert.isTrue(Option.isSome(yield* a.acquire("s1")))
    a.link.calls.length = 0
    assert.isTrue(Option.isNone(yield* a.acquire("s1")))
    assert.deepStrictEqual(a.link.calls, [])
  })))

it.effect("a client leaves the group when it closes if it has acquired a data stream by name or read notifications", () =>
  fleet.test(Effect.gen(function*() {
    const { open } = yield* abandoned
    const [a, b, c] = [yield* open("a"), yield* open("b"), yield* open("c")]
    yield* a.acquire("s1")
    yield* b.start(Stream.runDrain(b.client.notifications))
    yield* TestClock.adjust("1 second")
    const closing = yield* Effect.forEach([a, b, c], ({ close }) => Effect.forkChild(close))
    yield* TestClock.adjust("1 minute")
    yield* Fiber.joinAll(closing)
    assert.deepStrictEqual([a, b, c].map(({ link }) => link.calls.at(-1)), [
      "removeConsumer",
      "removeConsumer",
      undefined
    ])
  })))

it.effect("a client that closes during a claim releases the granted lease before it leaves the group", () =>
  fleet.test(Effect.gen(function*() {
    const { backend, open } = yield* abandoned
    const a = yield* open("a")
    a.link.delays.take = 200
    const acquiring = yield* Effect.forkChild(Effect.exit(a.acquire("s1")), { startImmediately: true })
    yield* TestClock.adjust("100 millis")
    const closing = yield* Effect.forkChild(a.close, { startImmediately: true })
    yield* TestClock.adjust("1 second")
    assert.isDefined(closing.pollUnsafe())
    assert.isTrue(Exit.isFailure(yield* acquiring.pollUnsafe()!))
    assert.deepStrictEqual(a.link.calls.slice(-3), ["take", "release", "removeConsumer"])
    assert.isFalse(backend.streamLeases.has("s1"))
  })))

it.effect("a scope that acquired a data stream does not send a release when it closes if the data stream is done", () =>
  fleet.test(Effect.gen(function*() {
    const { open } = yield* abandoned
    const a = yield* open("a")
    const scope = yield* Scope.make()
    const lease = Option.getOrThrow(yield* Scope.provide(a.client.acquireIfAvailable("s1"), scope))
    yield* lease.done
    a.link.calls.length = 0
    yield* Scope.close(scope, Exit.void)
    yield* TestClock.adjust("10 seconds")
    assert.notInclude(a.link.calls, "release")
  })))

it.effect("a consumer creates the group before it reads announcements", () =>
  fleet.test(Effect.gen(function*() {
    const { a } = yield* fleet.ofOne
    yield* a.serve(1)
    yield* TestClock.adjust("1 second")
    assert.include(a.link.calls, "read")
    assert.isBelow(a.link.calls.indexOf("prepare"), a.link.calls.indexOf("read"))
    assert.include(a.link.calls, "prepare")
  })))

it.effect("a closed client refuses to run", () =>
  fleet.test(Effect.gen(function*() {
    const { a } = yield* fleet.ofOne
    yield* a.close
    const exit = yield* Effect.exit(a.client.run(Effect.void))
    assert.deepInclude(errorOf(exit), { _tag: "InvalidConfig", option: "run" })
  })))
