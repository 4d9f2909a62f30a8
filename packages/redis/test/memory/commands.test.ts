/** Commands, scripts and subscriptions with a client that provides nothing but Effect's `Redis` service. */
import * as MutexMetrics from "@effect-simba/core/MutexMetrics"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit, Metric, Queue, Stream } from "effect"
import { type CommandSink, type Failure, overRedis } from "../../src/internal/client/commandSink.ts"
import { reader } from "../../src/internal/client/decode.ts"
import { DriverError } from "../../src/internal/client/driverError.ts"
import { type Redis, redisError } from "../../src/internal/client/effectRedis.ts"
import { currentSubscriber } from "../../src/internal/client/fallbackSubscriber.ts"
import { reportMalformed } from "../../src/internal/client/malformedInput.ts"
import { scan } from "../../src/internal/client/scan.ts"
import { send } from "../../src/internal/client/script.ts"
import { OwnershipText } from "../../src/internal/mutex/ownership.ts"

type Service = Redis["Service"]

const redisOf = (parts: Partial<Service>) => parts as Service

describe("a command sink on Effect's Redis service", () => {
  it.effect("is never ready, and reports why commands fail", () =>
    Effect.scoped(Effect.gen(function*() {
      const failures = [Effect.fail(redisError("no connection")), Effect.die("a bug")]
      const sink = yield* overRedis(redisOf({ send: () => failures.shift() as never }))
      assert.isFalse(sink.isReady())
      const causes: Array<unknown> = []
      for (const _ of [1, 2]) sink.send("GET", ["k"], (failure) => void causes.push(failure?.cause))
      yield* Effect.yieldNow
      assert.deepStrictEqual(causes, ["no connection", "a bug"])
    })))
})

describe("a script", () => {
  const loaded = { lua: "return 1", sha: "abc" }

  const sending = (
    reply: () => Failure | undefined,
    write: Parameters<typeof send>[2] = (script) => [script, "0"]
  ) => {
    const sent: Array<ReadonlyArray<string>> = []
    const failures: Array<Failure | undefined> = []
    const sink = {
      send: (
        command: string,
        args: ReadonlyArray<string>,
        done: (failure: Failure | undefined, reply: unknown) => void
      ) => {
        sent.push([command, ...args])
        done(reply(), undefined)
        return undefined
      }
    } as unknown as CommandSink["Service"]
    send(sink, loaded, write, (failure) => void failures.push(failure))
    return { sent, failures }
  }

  it("is sent as text once if the server has forgotten it", () => {
    const { failures, sent } = sending(() => ({ cause: new Error("NOSCRIPT x") }))
    assert.deepStrictEqual(sent, [["EVALSHA", "abc", "0"], ["EVAL", "return 1", "0"]])
    assert.lengthOf(failures, 1)
  })

  it("is not resent if its caller has been interrupted", () => {
    const { failures, sent } = sending(
      () => ({ cause: new Error("NOSCRIPT x") }),
      (script, isRepeated) => isRepeated ? undefined : [script, "0"]
    )
    assert.deepStrictEqual([sent.length, failures.length], [1, 0])
  })

  it("fails permanently if it cannot be written", () => {
    const { failures } = sending(() => {
      throw new Error("too large")
    })
    const cause = failures[0]!.cause as DriverError
    assert.instanceOf(cause, DriverError)
    assert.isFalse(cause.isRetryable)
    assert.include(cause.message, "too large")
  })
})

describe("a subscriber on Effect's Redis service", () => {
  it.effect("makes waiters poll every two seconds, and ends a channel's queue with its scope", () =>
    Effect.gen(function*() {
      const subscriber = yield* currentSubscriber(redisOf({ subscribe: () => Queue.unbounded() as never }))
      assert.strictEqual(Duration.toMillis(subscriber.bound!), 2000)
      const notices = yield* Effect.scoped(subscriber.subscribe("c"))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(Queue.take(notices))))
    }))

  it.effect("delivers a gap in place of messages that a slow reader missed", () =>
    Effect.gen(function*() {
      const messages = yield* Queue.unbounded<{ readonly channel: string; readonly message: string }>()
      const subscriber = yield* currentSubscriber(redisOf({ subscribe: () => Effect.succeed(messages) as never }))
      const notices = yield* subscriber.subscribe("c")
      for (let i = 0; i <= 256; i++) Queue.offerUnsafe(messages, { channel: "c", message: String(i) })
      while (yield* Queue.size(messages)) yield* Effect.yieldNow
      assert.deepStrictEqual<unknown>(yield* Queue.takeAll(notices), [
        { _tag: "Gap" },
        { _tag: "Message", channel: "c", text: "256" }
      ])
    }).pipe(Effect.scoped))
})

describe("a scan of keys", () => {
  const sendOf = (pages: ReadonlyArray<ReadonlyArray<string>>): Service["send"] => (_command, cursor) =>
    Effect.succeed([
      Number(cursor) + 1 < pages.length ? String(Number(cursor) + 1) : "0",
      pages[Number(cursor)]
    ]) as never

  it.effect("reads all pages from the server, or from each primary in a Cluster", () =>
    Effect.gen(function*() {
      const [one, two] = [sendOf([["a", "b"], [], ["c"]]), sendOf([["d"]])]
      const keysIn = (topology: Parameters<typeof scan>[2]) =>
        Stream.runCollect(scan("list", redisOf({ send: one }), topology))
      assert.deepStrictEqual(yield* keysIn({ _tag: "Single" }), ["a", "b", "c"])
      const cluster = { _tag: "Cluster", primaries: Effect.succeed([one, two]) } as never
      assert.deepStrictEqual(yield* keysIn(cluster), ["a", "b", "c", "d"])
    }))
})

it("a Redis error has the message of its cause", () => {
  assert.deepStrictEqual([redisError(new Error("x")).message, redisError("y").message], ["x", "y"])
})

describe("a malformed message", () => {
  it.effect("is counted once in the metric", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(reader("a test", OwnershipText)("x"))
      assert.include(error.message, "expected <owner>@@<milliseconds>")
      yield* reportMalformed("c", error)
      assert.strictEqual((yield* Metric.value(MutexMetrics.mutex.malformedMessages)).count, 1)
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())))
})
