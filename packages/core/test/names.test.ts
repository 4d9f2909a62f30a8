import { Errors, Names, OwnerEvent, Ownership, StreamNames } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Random, Schema } from "effect"

const accepted = (schema: Schema.Codec<unknown, string>, text: string) =>
  Exit.isSuccess(Schema.decodeUnknownExit(schema)(text))

describe("names", () => {
  it.effect.each([
    ["", "blank"],
    ["   ", "blank"],
    ["\n\t", "blank"],
    ["}x", "hash tag"],
    ["jobs}:tick:x", "that of a job"]
  ])("S19: %j is no mutex name: %s", ([name, why]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Names.mutexName(name!))
      assert.strictEqual(error._tag, "InvalidName")
      assert.include(error.message, why!)
      assert.isFalse(accepted(Names.MutexName, name!))
    }))

  it.effect.each([
    ["", "blank"],
    [" ", "blank"],
    ["a@@b", "separates"],
    ["@a", "starts or ends"],
    ["a@", "starts or ends"]
  ])("S19: %j is no contender name: %s", ([name, why]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Names.contenderName(name!))
      assert.include(error.message, why!)
      assert.isFalse(accepted(Names.ContenderName, name!))
    }))

  it.effect.each(["orders", "a}b", "{a}", "ü 🎏", "a@@b", "a:b", " padded "])(
    "%j is a mutex name",
    (name) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* Names.mutexName(name), name)
        assert.isTrue(accepted(Names.MutexName, name))
      })
  )

  it.effect("ids of entries that operators give are checked", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* StreamNames.entryId("1795227205908-0"), "1795227205908-0")
      for (const id of ["", "1795227205908", "-0", "1-", "1-2-3", " 1-2", "$"]) {
        const error = yield* Effect.flip(StreamNames.entryId(id))
        assert.include(error.message, `${JSON.stringify(id)} cannot be the id of an entry`)
      }
    }))

  it.effect("by host and by UUID are contender names", () =>
    Effect.gen(function*() {
      for (const name of [yield* Names.contenderByHost, yield* Names.contenderByUuid]) {
        assert.strictEqual(yield* Names.contenderName(name), name)
      }
      assert.match(yield* Names.contenderByUuid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/)
      assert.notStrictEqual(yield* Names.contenderByUuid, yield* Names.contenderByUuid)
      const seeded = Random.withSeed(Names.contenderByUuid, "one")
      assert.strictEqual(yield* seeded, yield* seeded)
    }))

  it.effect("a wire id has a counter and a random part before the contender's name", () =>
    Effect.sync(() => {
      assert.isTrue(accepted(Names.WireId, "12-0123456789ab:7@host"))
      for (
        const id of ["12:7@host", "7@host", "a-0123456789ab:x", "12-0123456789AB:x", "12-0123456789ab:", "1-012:x"]
      ) {
        assert.isFalse(accepted(Names.WireId, id), id)
      }
    }))
})

describe("models", () => {
  it.effect.prop("an owner event survives its JSON", [OwnerEvent.OwnerEvent], ([event]) =>
    Effect.gen(function*() {
      const json = Schema.fromJsonString(OwnerEvent.OwnerEvent)
      const text = yield* Schema.encodeEffect(json)(event)
      assert.deepStrictEqual(yield* Schema.decodeEffect(json)(text), event)
    }))

  it.effect("a fencing token is a positive integer that a double can hold", () =>
    Effect.sync(() => {
      const is = Schema.is(Ownership.FencingToken)
      assert.isTrue(is(1_763_678_096_123_456))
      for (const no of [0, -1, 1.5, NaN, 2 ** 53]) assert.isFalse(is(no), String(no))
    }))

  it.effect("every error says what to do", () =>
    Effect.sync(() => {
      const token = Ownership.FencingToken.make(7)
      const errors = [
        new Errors.LeaseLost({ mutex: "m", id: "i", token, reason: "TakenOver", owner: "o" }),
        new Errors.BackendError({ operation: "acquire", retryable: true, cause: new Error("boom") }),
        new Errors.BackendError({ operation: "acquire", retryable: false, cause: "NOPERM" }),
        new Errors.ProtocolError({ where: "a reply", read: "x", problem: "odd" }),
        new Errors.InvalidConfig({ option: "ttl", problem: "it must be finite" })
      ]
      for (const error of errors) assert.isAbove(error.message.length, 20)
      assert.include(errors[0]!.message, "owner: o")
      assert.include(errors[1]!.message, "boom")
      assert.include(errors[2]!.message, "will not help")
    }))
})
