/** The fuzzer's `replies`, `messages` and `entries` areas: whole layers on a fake server that sends invalid data. */
import { Mutex } from "@effect-simba/core"
import { MutexName } from "@effect-simba/core/MutexName"
import * as StreamClient from "@effect-simba/core/streams/StreamClient"
import * as StreamMessages from "@effect-simba/core/streams/StreamMessages"
import { ServiceName } from "@effect-simba/core/streams/StreamStore"
import { RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { FakeRedis } from "@effect-simba/testkit"
import { Context, Effect, Exit, Fiber, Layer, Logger, Schema, Scope } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import * as RedisKeys from "../../src/internal/mutex/keys.ts"
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import type { Finding } from "./fuzz.ts"
import { anyText, makeDraw, mutated, pick, show } from "./input.ts"
import { verdict } from "./verdict.ts"

/** Maximum number of characters that a case may log. */
const logBound = 20_000

const counting = () => {
  let characters = 0
  const logger = Logger.make(({ message }) => {
    characters += String(message).length
  })
  return { layer: Logger.layer([logger]), take: () => [characters, characters = 0][0]! }
}

/** Runs a case for at most a minute of virtual time. Returns `undefined` if it has not finished. */
const within = Effect.fnUntraced(function*<A, E, R>(effect: Effect.Effect<A, E, R>) {
  const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
  for (let i = 0; i < 600 && fiber.pollUnsafe() === undefined; i++) yield* TestClock.adjust("100 millis")
  const exit = fiber.pollUnsafe()
  if (exit === undefined) yield* Fiber.interrupt(fiber)
  return exit
})

const problemOf = (exit: Exit.Exit<unknown, unknown> | undefined, logged: number) =>
  exit === undefined
    ? "no result within a minute"
    : logged > logBound
    ? `${logged} logged characters`
    : verdict(exit)

const replies = [
  "1763733691000001",
  "@@",
  "7-abcdef012345:4711@host@@2000",
  ["7-abcdef012345:4711@host@@2000", 0, 0, 0],
  ["7-abcdef012345:4711@host@@2000", 1763733691000001, 0, 0, 0, 7],
  ["@@", 1763733691000001, "5"],
  ["@@"],
  [],
  "OK",
  0,
  1
]

const operations = [
  () => Effect.scoped(Mutex.acquireIfAvailable("jobs")),
  () => Effect.scoped(Mutex.acquire("jobs", { timeout: "2 seconds" })),
  () => Mutex.withLock("jobs", { timeout: "2 seconds" })(Effect.sleep("5 seconds")),
  () => Mutex.owner("jobs"),
  () => Mutex.inspect("jobs"),
  () => Mutex.forceRelease("jobs")
]

/** Half of the replies are invalid. After every 50 cases all replies are valid, and the layer must recover. */
export const fuzzReplies = Effect.fnUntraced(function*(seed: number, cases: number) {
  const findings: Array<Finding> = []
  const draw = makeDraw(seed)
  const logs = counting()
  let isBroken = false
  let last: unknown
  const client = yield* Layer.build(FakeRedis.layerClient({ name: "broken" }))
  const redis = Context.get(client, Redis)
  const broken: Redis["Service"] = {
    ...redis,
    send: <A>(command: string, ...args: ReadonlyArray<string>) =>
      isBroken && draw() < 0.5
        ? Effect.sync(() => (last = mutated(draw, pick(draw, replies))) as A)
        : redis.send<A>(command, ...args)
  }
  const context = yield* Layer.build(
    RedisMutex.layerRedis().pipe(Layer.provide(Layer.succeedContext(Context.add(client, Redis, broken))))
  )
  for (let number = 0; number < cases; number++) {
    isBroken = true
    const exit = yield* within(Effect.provide(Effect.suspend(pick(draw, operations)), context)).pipe(
      Effect.provide(logs.layer)
    )
    const problem = problemOf(exit, logs.take())
    if (problem !== undefined) {
      findings.push({ area: "replies", name: "an operation", number, input: show(last), problem })
    }
    if (number % 50 !== 49) continue
    isBroken = false
    const after = yield* within(Effect.provide(Mutex.withLock("jobs", { timeout: "50 seconds" })(Effect.void), context))
    if (after === undefined || Exit.isFailure(after)) {
      findings.push({
        area: "replies",
        name: "afterwards",
        number,
        input: show(last),
        problem: `the layer does not recover: ${show(after)}`
      })
    }
  }
  return findings
})

/** Regardless of what is published on their channels, the holder keeps its mutex and the waiter keeps waiting. */
export const fuzzMessages = Effect.fnUntraced(function*(seed: number, cases: number) {
  const findings: Array<Finding> = []
  const draw = makeDraw(seed)
  const logs = counting()
  const open = Effect.fnUntraced(function*(name: string) {
    const client = yield* Layer.build(Layer.fresh(FakeRedis.layerClient({ name })))
    const context = yield* Layer.build(
      Layer.fresh(RedisMutex.layerRedis({ processName: name })).pipe(Layer.provide(Layer.succeedContext(client)))
    )
    return { mutex: context, redis: Context.get(client, Redis) }
  })
  const [a, b] = [yield* open("a"), yield* open("b")]
  const mutex = MutexName.make("jobs")
  const id = "7-abcdef012345:4711@host"
  for (let number = 0; number < cases;) {
    const round = yield* Effect.scoped(Effect.gen(function*() {
      const held = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
      const lease = yield* Scope.provide(Effect.provide(Mutex.acquire("jobs"), a.mutex), held)
      const waiter = yield* Effect.forkChild(
        Effect.provide(Mutex.withLock("jobs")(Effect.void), b.mutex),
        { startImmediately: true }
      )
      yield* TestClock.adjust("100 millis")
      const channels = (yield* a.redis.send<ReadonlyArray<string>>("PUBSUB", "CHANNELS")).concat(
        RedisKeys.mutexChannel(mutex)
      )
      for (let i = 0; i < 50; i++, number++) {
        const valid = [
          "1@@granted@@5@@4@@7",
          "1@@look@@500",
          "1@@look@@0",
          `forced@@${id}`,
          `acquired@@${id}`,
          `look@@0`,
          `released@@${id}`
        ]
        const text = mutated(draw, pick(draw, valid))
        yield* a.redis.send("PUBLISH", pick(draw, channels), typeof text === "string" ? text : anyText(draw))
      }
      yield* TestClock.adjust("3 seconds")
      yield* lease.ensure
      if (waiter.pollUnsafe() !== undefined) return yield* Effect.die("the waiter acquired the mutex")
      yield* Scope.close(held, Exit.void)
      return yield* Fiber.join(waiter)
    })).pipe(within, Effect.provide(logs.layer))
    const problem = problemOf(round, logs.take() / 50) ??
      (round !== undefined && Exit.isFailure(round) ? show(round) : undefined)
    if (problem !== undefined) findings.push({ area: "messages", name: "a round of 50", number, input: "", problem })
  }
  return findings
})

/** Valid announcements and messages are processed despite invalid ones among them. */
export const fuzzEntries = Effect.fnUntraced(function*(seed: number, cases: number) {
  const findings: Array<Finding> = []
  const draw = makeDraw(seed)
  const logs = counting()
  const client = yield* Layer.build(FakeRedis.layerClient({ name: "entries" }))
  const { send } = Context.get(client, Redis)
  const service = ServiceName.make("svc")
  const store = Layer.provide(RedisStreams.layerStore, Layer.succeedContext(client))
  const streams = yield* Layer.build(StreamClient.layer({ service, capacity: 100_000 }).pipe(Layer.provide(store)))
  const processed = new Set<string>()
  const handler = StreamMessages.process(
    Schema.Struct({ n: Schema.FiniteFromString, end: Schema.optionalKey(Schema.String) }),
    ({ value }) => Effect.sync(() => void processed.add(String(value.n))),
    { until: ({ value }) => value.end !== undefined }
  )
  const running = yield* Effect.forkChild(
    Effect.provide(StreamClient.run(handler, { onError: () => Effect.void }), streams).pipe(Effect.provide(logs.layer)),
    { startImmediately: true }
  )
  for (let number = 0; number < cases;) {
    const stream = `s${number}`
    for (let i = 0; i < 25; i++, number++) {
      const announcement = mutated(draw, JSON.stringify({ DataStreamName: stream, Info: { n: 1 } }))
      const field = draw() < 0.9 ? "lbs-input" : anyText(draw)
      yield* send(
        "XADD",
        StreamKeys.input(service),
        "*",
        field,
        typeof announcement === "string" ? announcement : anyText(draw)
      )
      yield* send("XADD", stream, "*", draw() < 0.5 ? "n" : anyText(draw), anyText(draw))
      yield* send("PUBLISH", StreamKeys.signalChannel(service), anyText(draw))
    }
    yield* send("XADD", stream, "*", "n", String(number), "end", "yes")
    yield* send("XADD", StreamKeys.input(service), "*", "lbs-input", JSON.stringify({ DataStreamName: stream }))
    const exit = yield* within(
      Effect.repeat(Effect.sleep("200 millis"), { until: () => processed.has(String(number)) })
    )
    const ended = running.pollUnsafe()
    const problem = ended === undefined ? problemOf(exit, logs.take() / 25) : `the client ended: ${show(ended)}`
    if (problem !== undefined) findings.push({ area: "entries", name: stream, number, input: "", problem })
    if (ended !== undefined) break
  }
  yield* Fiber.interrupt(running)
  return findings
})
