/** Blocking reads, which wait for messages in many data streams over a few connections. */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Logger, References } from "effect"
import { TestClock } from "effect/testing"
import { redisError } from "../../src/internal/client/effectRedis.ts"
import * as blockingRead from "../../src/streams/internal/blockingRead.ts"
import type { ServiceContext } from "../../src/streams/internal/service.ts"
import { onFake, setup, streamOf } from "../support/streamScriptSetup.ts"

const first = EntryId.make("0-0")
const count = 2 * blockingRead.readSize + 1

const named = (args: ReadonlyArray<unknown>) => {
  const at = args.findIndex((arg) => String(arg).toUpperCase() === "STREAMS")
  return (args.length - at - 1) / 2
}

describe("waiting for messages from many data streams", () => {
  const waiting = Effect.gen(function*() {
    const { send, server, service } = yield* setup()
    const streams = Array.from({ length: count }, (_, i) => streamOf(String(i)))
    const fibers = yield* Effect.forEach(
      streams,
      (stream) => Effect.forkChild(service.awaitMessages(stream, first, 10), { startImmediately: true })
    )
    yield* Effect.repeat(TestClock.adjust("5 millis"), { times: 20 })
    // The trace shows a blocking read only after its end
    const trace = Effect.map(server.trace, (commands) => commands.map(({ args }) => args))
    return { fibers, send, server, service, streams, trace }
  })

  it.effect("a read covers a bounded number of data streams, and a message ends only one read", () =>
    onFake(Effect.gen(function*() {
      const { fibers, send, streams, trace } = yield* waiting
      const before = yield* trace
      yield* send("XADD", streams[5]!, "7-0", "n", "1")
      assert.deepStrictEqual(yield* Fiber.join(fibers[5]!), [{ id: EntryId.make("7-0"), fields: [["n", "1"]] }])
      yield* TestClock.adjust("100 millis")
      const after = (yield* trace).slice(before.length)
      assert.deepStrictEqual(after.map(([command]) => command), ["XADD", "XREAD"])
      assert.isAtMost(named(after[1]!), blockingRead.readSize)
    })))

  it.effect("a handler that waits again soon joins the current read without sending a request", () =>
    onFake(Effect.gen(function*() {
      const { fibers, send, service, streams, trace } = yield* waiting
      yield* send("XADD", streams[5]!, "7-0", "n", "1")
      yield* Fiber.join(fibers[5]!)
      yield* TestClock.adjust("100 millis")
      const before = yield* trace
      const next = yield* Effect.forkChild(service.awaitMessages(streams[5]!, EntryId.make("7-0"), 10), {
        startImmediately: true
      })
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual(yield* trace, before)
      yield* send("XADD", streams[5]!, "8-0", "n", "2")
      assert.deepStrictEqual((yield* Fiber.join(next)).map(({ id }) => id), [EntryId.make("8-0")])
    })))

  it.effect("a handler that asks for no messages receives one, instead of repeating the read endlessly", () =>
    onFake(Effect.gen(function*() {
      const { send, service, streams } = yield* waiting
      const asked = yield* Effect.forkChild(service.awaitMessages(streams[5]!, first, 0), { startImmediately: true })
      yield* TestClock.adjust("100 millis")
      yield* send("XADD", streams[5]!, "7-0", "n", "1")
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual(asked.pollUnsafe(), Exit.succeed([{ id: EntryId.make("7-0"), fields: [["n", "1"]] }]))
    })))

  it.effect("the next waiter receives a message that arrived while no handler was waiting", () =>
    onFake(Effect.gen(function*() {
      const { fibers, send, service, streams } = yield* waiting
      yield* send("XADD", streams[5]!, "7-0", "n", "1")
      yield* Fiber.join(fibers[5]!)
      yield* send("XADD", streams[5]!, "8-0", "n", "2")
      yield* TestClock.adjust("100 millis")
      const found = yield* service.awaitMessages(streams[5]!, EntryId.make("7-0"), 10)
      assert.deepStrictEqual(found.map(({ id }) => id), [EntryId.make("8-0")])
    })))

  it.effect("a burst of messages reaches all waiters", () =>
    onFake(Effect.gen(function*() {
      const { fibers, send, streams } = yield* waiting
      yield* Effect.forEach(streams, (stream, i) => send("XADD", stream, "7-0", "n", String(i)))
      const all = yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual<unknown>(
        all.map(([message]) => message!.fields),
        streams.map((_, i) => [["n", String(i)]])
      )
    })))

  it.effect("a key of the wrong type fails only its own waiter", () =>
    onFake(Effect.gen(function*() {
      const { fibers, send, streams } = yield* waiting
      yield* send("SET", streams[6]!, "text")
      yield* send("XADD", streams[5]!, "7-0", "n", "1")
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual((yield* Fiber.join(fibers[5]!)).map(({ id }) => id), [EntryId.make("7-0")])
      assert.strictEqual((yield* Effect.flip(Fiber.join(fibers[6]!)))._tag, "BackendError")
      yield* send("XADD", streams[7]!, "7-0", "n", "1")
      yield* TestClock.adjust("2 seconds")
      assert.lengthOf(yield* Fiber.join(fibers[7]!), 1)
    })))

  it.effect("a successful read resets the reader's backoff", () =>
    onFake(Effect.gen(function*() {
      const { fibers, send, server, streams } = yield* waiting
      for (let i = 0; i < 7; i++) {
        yield* server.dropConnections()
        yield* TestClock.adjust("2 seconds")
        yield* send("XADD", streams[i]!, "7-0", "n", "1")
        yield* Fiber.join(fibers[i]!)
      }
      yield* server.dropConnections()
      yield* TestClock.adjust("300 millis")
      yield* send("XADD", streams[7]!, "7-0", "n", "1")
      yield* TestClock.adjust("100 millis")
      assert.isDefined(fibers[7]!.pollUnsafe())
    })))

  const broken = Logger.make<unknown, void>(() => {
    throw new Error("the logger is broken")
  })

  it.effect("a logger that throws neither ends a reader nor loses a message", () =>
    onFake(Effect.gen(function*() {
      const { fibers, send, server, streams } = yield* waiting
      yield* server.setErrorState("LOADING")
      yield* server.dropConnections()
      yield* TestClock.adjust("2 seconds")
      yield* server.setErrorState(undefined)
      yield* TestClock.adjust("2 seconds")
      yield* send("XADD", streams[5]!, "7-0", "n", "1")
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual((yield* Fiber.join(fibers[5]!)).map(({ id }) => id), [EntryId.make("7-0")])
    })).pipe(
      Effect.provide(Logger.layer([broken])),
      Effect.provideService(References.MinimumLogLevel, "Trace")
    ))
})

describe("a reader on a scripted server", () => {
  const [one, other] = [streamOf("one"), streamOf("other")]

  /** A service whose blocking reads are served by `xread`. */
  const contextOf = (xread: (args: ReadonlyArray<string>) => Effect.Effect<unknown, unknown>) => {
    const send = (command: string, ...args: ReadonlyArray<string>) =>
      command === "XREAD" ? Effect.mapError(xread(args), redisError) : Effect.succeed("OK")
    return { isCluster: true, redis: { send, reserve: Effect.succeed({ send }) } } as unknown as ServiceContext
  }

  const wrongType = Object.assign(new Error("WRONGTYPE Operation against a key"), { name: "ReplyError" })

  it.effect("a reader serves other data streams while reading one of them hangs", () =>
    Effect.gen(function*() {
      const message = { id: EntryId.make("7-0"), fields: [] }
      let isJoined = false
      const awaitMessages = yield* blockingRead.make(
        contextOf(() => Effect.fail(wrongType)),
        (stream) => !isJoined ? Effect.succeed([]) : stream === one ? Effect.never : Effect.succeed([message]),
        1
      )
      const [waiting, served] = yield* Effect.forEach([one, other], (stream) =>
        Effect.forkChild(awaitMessages(stream, first, 10), { startImmediately: true }))
      isJoined = true
      yield* TestClock.adjust("1 second")
      assert.isUndefined(waiting!.pollUnsafe())
      assert.deepStrictEqual(served!.pollUnsafe(), Exit.succeed([message]))
    }).pipe(Effect.scoped))

  it.effect("within seconds, a reader drops data streams that have no waiters, even if the wall clock is set back", () =>
    Effect.gen(function*() {
      const base = yield* Clock.Clock
      let behind = 0
      const clock: Clock.Clock = { ...base, currentTimeMillisUnsafe: () => base.currentTimeMillisUnsafe() - behind }
      const reads: Array<ReadonlyArray<string>> = []
      const awaitMessages = yield* blockingRead.make(
        contextOf((args) => Effect.delay(Effect.sync(() => (reads.push(args), null)), "250 millis")),
        () => Effect.succeed([]),
        1
      ).pipe(Effect.provideService(Clock.Clock, clock))
      const [gone] = yield* Effect.forEach(
        [one, other],
        (stream) => Effect.forkChild(awaitMessages(stream, first, 10), { startImmediately: true })
      )
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(gone!)
      behind = 24 * 60 * 60 * 1000
      yield* TestClock.adjust("4 seconds")
      assert.include(reads.at(-1)!, one)
      yield* TestClock.adjust("4 seconds")
      assert.notInclude(reads.at(-1)!, one)
      assert.include(reads.at(-1)!, other)
    }).pipe(Effect.scoped))
})
