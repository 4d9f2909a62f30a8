/** How failed releases are retried, and which failures are logged. */
import * as MutexConfig from "@effect-simba/core/MutexConfig"
import { type LeaseId, MutexName } from "@effect-simba/core/MutexName"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Logger, References, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as releaseSender from "../../src/internal/mutex/releaseSender.ts"
import { outage, refusal } from "../support/faultyStore.ts"
import { start } from "../support/setup.ts"

type Outcome = Parameters<Parameters<MutexStore.MutexStore["Service"]["release"]>[1]>[0]

const request = { mutex: MutexName.make("m"), id: "1-aaaaaaaaaaaa:us" as LeaseId }
const released: Outcome = Exit.succeed({ requeued: undefined })

/** A sender on a store that replies with `state.outcome`. Records its log lines and the times of its attempts. */
const sending = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const begin = clock.currentTimeMillisUnsafe()
  const store = yield* MutexStore.MutexStore
  const state = { outcome: released, isReady: false, throws: false }
  const at: Array<number> = []
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
    lines.push(`${logLevel}: ${String([message].flat()[0])}`)
  })
  const scope = yield* Scope.make()
  const sender = yield* releaseSender.make({
    ...store,
    isReady: () => state.isReady,
    release: (_, done) => {
      at.push(clock.currentTimeMillisUnsafe() - begin)
      if (state.throws) throw new Error("a bug")
      done(state.outcome)
    }
  }, yield* MutexConfig.make({})).pipe(
    Scope.provide(scope),
    Effect.provide(Logger.layer([logger])),
    Effect.provideService(References.MinimumLogLevel, "Debug")
  )
  return { at, close: Scope.close(scope, Exit.void), lines, sender, state }
}).pipe(Effect.provide(MutexStore.layerMemory))

describe("a release that fails", () => {
  const pauses = [0, 50, 150, 350, 750, 1550]

  for (const isReady of [false, true]) {
    it.effect(`is retried within the caller's time limit, after pauses that double (ready: ${isReady})`, () =>
      Effect.gen(function*() {
        const { at, lines, sender, state } = yield* sending
        Object.assign(state, { isReady, outcome: Exit.fail(outage) })
        yield* start(sender.now(request, 2000))
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(at, pauses)
        assert.lengthOf(lines, 1)
        assert.strictEqual(lines[0], `Warn: A release failed; the lease will expire: ${outage.message}`)
      }).pipe(Effect.scoped))
  }

  it.effect("is retried until it succeeds, without a log line", () =>
    Effect.gen(function*() {
      const { at, lines, sender, state } = yield* sending
      state.outcome = Exit.fail(outage)
      yield* start(sender.now(request, 2000))
      yield* TestClock.adjust("100 millis")
      state.outcome = released
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([at, lines], [[0, 50, 150], []])
    }).pipe(Effect.scoped))

  it.effect("is not retried after its time limit, or after a refusal", () =>
    Effect.gen(function*() {
      const { at, lines, sender, state } = yield* sending
      state.outcome = Exit.fail(outage)
      yield* start(sender.now(request, 0))
      yield* TestClock.adjust("1 minute")
      state.outcome = Exit.fail(refusal)
      yield* start(sender.now(request, 2000))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(at, [0, 60_000])
      assert.lengthOf(lines, 2)
    }).pipe(Effect.scoped))

  it.effect("is logged as an error if it crashed, but at Debug if it only undid an attempt", () =>
    Effect.gen(function*() {
      const { lines, sender, state } = yield* sending
      state.isReady = true
      for (const outcome of [Exit.fail(refusal), Exit.die(new Error("a bug"))]) {
        state.outcome = outcome
        yield* sender.now(request, 2000)
        yield* sender.later(request)
      }
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(lines.map((line) => line.slice(0, 40)), [
        "Warn: A release failed; the lease will e",
        "Debug: An attempt could not be undone; i",
        "Error: A release crashed; the lease will",
        "Error: A release crashed; the lease will"
      ])
    }).pipe(Effect.scoped))

  it.effect.each([false, true])(
    "counts as crashed if the store throws (ready: %s)",
    (isReady) =>
      Effect.gen(function*() {
        const { close, lines, sender, state } = yield* sending
        Object.assign(state, { isReady, throws: true })
        const settled: Array<unknown> = []
        yield* sender.now({ ...request, settled: (released) => settled.push(released) }, 2000)
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(settled, [undefined])
        assert.deepStrictEqual(lines, ["Error: A release crashed; the lease will expire"])
        const closing = yield* start(close)
        assert.isDefined(closing.pollUnsafe(), "does not wait for a reply")
      }).pipe(Effect.scoped)
  )

  it.effect("is retried once when the layer closes, but not after that", () =>
    Effect.gen(function*() {
      const { at, close, lines, sender, state } = yield* sending
      state.outcome = Exit.fail(outage)
      yield* start(sender.now(request, 2000))
      yield* TestClock.adjust("10 millis")
      const closing = yield* start(close)
      yield* TestClock.adjust(1)
      assert.isDefined(closing.pollUnsafe())
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(at, [0, 10])
      assert.lengthOf(lines, 1)
    }).pipe(Effect.scoped))
})
