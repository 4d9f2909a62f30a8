/** Short runs of the fuzzer, and inputs that once revealed a defect. */
import { Leadership, Mutex } from "@effect-simba/core"
import * as MutexConfig from "@effect-simba/core/MutexConfig"
import { ProtocolError } from "@effect-simba/core/SimbaError"
import { RedisMutex } from "@effect-simba/redis"
import { FakeRedis } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Logger, Schema } from "effect"
import { Redis } from "effect/persistence/Redis"
import { reader } from "../../src/internal/client/decode.ts"
import * as url from "../../src/internal/client/ioredis/url.ts"
import { fuzzOptions, fuzzTexts } from "../fuzz/fuzz.ts"
import { fuzzEntries, fuzzMessages, fuzzReplies } from "../fuzz/layers.ts"
import { readers } from "../fuzz/texts.ts"
import { verdict } from "../fuzz/verdict.ts"

const nested = (depth: number): unknown => {
  let value: unknown = []
  for (let i = 0; i < depth; i++) value = [value]
  return value
}

const untyped = <A>(input: unknown) => input as A

const onFake = Effect.provide(Layer.merge(FakeRedis.layer(), Logger.layer([])))

describe("any input produces a result or a tagged error", () => {
  it("decoders of text from Redis", () => assert.deepStrictEqual(fuzzTexts(2, 8000), []))

  it.each(readers)("%s: the inputs that the fuzzer mutates are valid", (_, read, valid) => {
    for (const input of valid) assert.isTrue(Exit.isSuccess(read(input)), JSON.stringify(input))
  })

  it.effect("options, names and environment variables", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* fuzzOptions(2, 1000), [])
    }))

  it.effect("a layer recovers from invalid replies", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* fuzzReplies(2, 150), [])
    }).pipe(onFake))

  it.effect("invalid messages do not end a lease or a wait", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* fuzzMessages(2, 500), [])
    }).pipe(onFake))

  it.effect("a data stream's valid entries are processed even among invalid ones", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* fuzzEntries(2, 100), [])
    }).pipe(onFake))
})

describe("regressions that the fuzzer found", () => {
  it.effect.each([null, 1, true, [null], ["a", {}], "OK"])(
    "a layer works even if the server replies %s when asked to count subscribers",
    (reply) =>
      Effect.gen(function*() {
        const client = yield* Layer.build(FakeRedis.layerClient({ name: "broken" }))
        const redis = Context.get(client, Redis)
        const broken: Redis["Service"] = {
          ...redis,
          send: <A>(command: string, ...args: ReadonlyArray<string>) =>
            command === "PUBSUB" ? Effect.succeed(reply as A) : redis.send<A>(command, ...args)
        }
        const mutex = RedisMutex.layerRedis().pipe(
          Layer.provide(Layer.succeedContext(Context.add(client, Redis, broken)))
        )
        yield* Effect.provide(Mutex.withLock("jobs")(Effect.void), mutex)
      }).pipe(Effect.scoped, onFake)
  )

  const read = reader("a reply", Schema.String)

  it.each([
    ["a bigint", 5n],
    ["arrays nested deeper than the call stack", nested(20_000)],
    ["a symbol", Symbol("a")],
    ["an object without a prototype", Object.create(null)],
    ["a megabyte", ["x".repeat(1_000_000)]]
  ])("the error for a reply that is not a string is short: %s", (_, reply) => {
    const exit = read(reply)
    assert.isTrue(Exit.isFailure(exit))
    assert.isUndefined(verdict(exit))
  })

  it("the error for a one-megabyte malformed message is short", () => {
    const { message } = ProtocolError.of("a message", "x".repeat(1_000_000), "too long")
    assert.isBelow(message.length, 500)
  })

  it.effect.each([
    ["null instead of mutex options", MutexConfig.make(untyped(null))],
    ["null as the server's URL", url.read(untyped(null))],
    ["a number as the server's URL", url.read(untyped(6379))],
    ["an object without a prototype as the server's URL", url.read(untyped(Object.create(null)))],
    ["a bigint as a ttl", MutexConfig.make({ ttl: untyped([5n]) })],
    ["arrays nested deeper than the call stack as a ttl", MutexConfig.make({ ttl: untyped(nested(20_000)) })],
    [
      "null instead of acquire options",
      Effect.provide(Effect.scoped(Mutex.acquire("a", untyped<Mutex.AcquireOptions>(null))), Mutex.layerMemory())
    ],
    [
      "an object without a prototype as a name",
      Effect.provide(Effect.scoped(Mutex.acquireIfAvailable(untyped(Object.create(null)))), Mutex.layerMemory())
    ],
    ...["__proto__", {}, null].map((cron) =>
      [
        `${JSON.stringify(cron)} as a cron expression`,
        Effect.provide(
          Effect.scoped(Layer.build(Leadership.layerJobs("a", [
            { name: "a", schedule: Leadership.cron(untyped(cron)), run: Effect.void }
          ]))),
          Mutex.layerMemory()
        )
      ] as const
    )
  ] as ReadonlyArray<readonly [string, Effect.Effect<unknown, unknown>]>)(
    "%s is refused",
    ([, effect]) =>
      Effect.gen(function*() {
        const exit = yield* Effect.exit(effect)
        assert.isTrue(Exit.isFailure(exit))
        assert.isUndefined(verdict(exit))
      })
  )
})
