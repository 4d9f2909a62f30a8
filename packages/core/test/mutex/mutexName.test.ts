import { FencingToken, Mutex, MutexName, OwnerEvent, SimbaError } from "@effect-simba/core"
import * as MutexConfig from "@effect-simba/core/MutexConfig"
import type { StreamName } from "@effect-simba/core/streams"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Random, Schema } from "effect"
import { checked, entryProblem } from "../../src/internal/nameRules.ts"
import { randomKey } from "../../src/internal/processIdentity.ts"

const accepted = (schema: Schema.Codec<unknown, string>, text: string) =>
  Exit.isSuccess(Schema.decodeExit(schema)(text))

/** Tests which names are valid, and that operations validate them. */
const owner = (name: string) => Effect.provide(Mutex.owner(name), Mutex.layerMemory())

describe("names", () => {
  it.effect.each([
    ["", "blank"],
    ["   ", "blank"],
    ["\n\t", "blank"],
    ["}x", "hash tag"],
    ["x".repeat(1025), "longer than 1024"],
    ["a\ud800b", "surrogate"],
    ["\udc00", "surrogate"]
  ])("%j is not a mutex name: %s", ([name, why]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(owner(name!))
      assert.strictEqual(error._tag, "InvalidName")
      assert.include(error.message, why!)
      assert.isFalse(accepted(MutexName.MutexName, name!))
    }), { tags: ["S19"] })

  it.effect.each([
    ["", "blank"],
    [" ", "blank"],
    ["a@@b", "separates"],
    ["@a", "starts or ends"],
    ["a@", "starts or ends"]
  ])("%j is not a contender name: %s", ([name, why]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(MutexConfig.make({ processName: name! }))
      assert.strictEqual(error.option, "processName")
      assert.include(error.message, why!)
    }), { tags: ["S19"] })

  it.effect.each(["orders", "a}b", "{a}", "ü 🎏", "a@@b", "a:b", " padded "])(
    "%j is a mutex name",
    (name) =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* owner(name), { _tag: "Free" })
        assert.isTrue(accepted(MutexName.MutexName, name))
      })
  )

  it.effect("entry ids from operators are checked", () =>
    Effect.gen(function*() {
      const entryId = checked<StreamName.EntryId>("entry", entryProblem)
      assert.strictEqual(yield* entryId("1795227205908-0"), "1795227205908-0")
      for (const id of ["", "1795227205908", "-0", "1-", "1-2-3", " 1-2", "$"]) {
        const error = yield* Effect.flip(entryId(id))
        assert.include(error.message, `${JSON.stringify(id)} cannot be the id of an entry`)
      }
    }))

  it.effect("the default process name contains the pid and the host, and a generated UUID is a valid process name", () =>
    Effect.gen(function*() {
      assert.match((yield* MutexConfig.make()).processName, new RegExp(`^${process.pid}@[^@]+$`))
      const uuid = yield* MutexName.processNameByUuid
      assert.strictEqual((yield* MutexConfig.make({ processName: uuid })).processName, uuid)
      assert.match(
        yield* MutexName.processNameByUuid,
        /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/
      )
      assert.notStrictEqual(yield* MutexName.processNameByUuid, yield* MutexName.processNameByUuid)
      const seeded = Random.withSeed(MutexName.processNameByUuid, "one")
      assert.strictEqual(yield* seeded, yield* seeded)
    }))

  it.effect("random parts have the same length even for the largest random numbers", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* randomKey, "zzzzzzzzzzzz")
      assert.strictEqual(yield* MutexName.processNameByUuid, "ffffffff-ffff-4fff-afff-ffffffffffff")
    }).pipe(Effect.updateService(Random.Random, (random) => ({ ...random, nextDoubleUnsafe: () => 1 - 2 ** -53 }))))

  it.effect("a lease id contains a counter and a random part before the contender's name", () =>
    Effect.sync(() => {
      assert.isTrue(accepted(MutexName.LeaseId, "12-0123456789ab:7@host"))
      for (
        const id of ["12:7@host", "7@host", "a-0123456789ab:x", "12-0123456789AB:x", "12-0123456789ab:", "1-012:x"]
      ) {
        assert.isFalse(accepted(MutexName.LeaseId, id), id)
      }
    }))
})

describe("models", () => {
  it.effect.prop(
    "an owner event is unchanged after a round trip through JSON",
    [OwnerEvent.OwnerEvent],
    ([event]) =>
      Effect.gen(function*() {
        const json = Schema.fromJsonString(OwnerEvent.OwnerEvent)
        const text = yield* Schema.encodeEffect(json)(event)
        assert.deepStrictEqual(yield* Schema.decodeEffect(json)(text), event)
      })
  )

  it.effect("a fencing token is a positive integer that a double can hold", () =>
    Effect.sync(() => {
      const is = Schema.is(FencingToken.FencingToken)
      assert.isTrue(is(1_763_678_096_123_456))
      for (const no of [0, -1, 1.5, NaN, 2 ** 53]) assert.isFalse(is(no), String(no))
    }))

  it.effect("every error says how to fix it", () =>
    Effect.sync(() => {
      const token = FencingToken.FencingToken.make(7)
      const errors = [
        new SimbaError.LeaseLost({
          kind: "mutex",
          resource: "m",
          id: "i",
          token,
          reason: { _tag: "TakenOver", owner: "o" }
        }),
        new SimbaError.BackendError({ operation: "acquire", isRetryable: true, cause: new Error("boom") }),
        new SimbaError.BackendError({ operation: "acquire", isRetryable: false, cause: "NOPERM" }),
        new SimbaError.ProtocolError({ where: "a reply", read: "x", problem: "odd" }),
        new SimbaError.InvalidConfig({ option: "ttl", problem: "it must be finite" })
      ]
      for (const error of errors) assert.isAbove(error.message.length, 20)
      assert.include(errors[0]!.message, "owner: o")
      assert.include(errors[1]!.message, "boom")
      assert.include(errors[2]!.message, "will not help")
    }))
})
