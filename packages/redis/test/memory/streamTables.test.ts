/** A service's tables in Redis: when they forget rows, when they expire, and how large they get. */
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import type { Member, Service } from "@effect-simba/core/streams/StreamStore"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Option } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import { call } from "../../src/internal/client/script.ts"
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import * as scripts from "../../src/streams/internal/scripts.generated.ts"
import { a, b, name, onFake, setup } from "../support/streamScriptSetup.ts"

const day = 86_400_000

const message = (id: string, fields: ReadonlyArray<readonly [string, string]> = [["n", "1"]]) => ({
  id: EntryId.make(id),
  fields
})

const member: Member = { consumer: a, session: "s00000000001", capacity: 8, owned: 0 }

const secondsOf = (millis: number) => Math.round(millis / 1000)

describe("the table of dead messages", () => {
  it.effect("is cleared when it exceeds 20,000 messages", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const key = StreamKeys.deadIds(held.stream)
      const fields = Array.from({ length: 19_998 }, (_, i) => [`9-${i}`, "1-0"]).flat()
      for (let i = 0; i < fields.length; i += 4000) yield* send("HSET", key, ...fields.slice(i, i + 4000))
      const bury = (id: string) =>
        Effect.andThen(service.deadLetterMessage(held, message(id), "poison"), send<number>("HLEN", key))
      assert.strictEqual(yield* bury("1-0"), 19_999)
      assert.strictEqual(yield* bury("2-0"), 20_000)
      assert.strictEqual(yield* bury("3-0"), 1)
    })))

  it.effect("expires with the letters, and forgets redriven messages", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const ids = StreamKeys.deadIds(held.stream)
      const letters = StreamKeys.deadMessages(held.stream)
      for (const id of ["1-0", "2-0"]) yield* service.deadLetterMessage(held, message(id), "poison")
      for (const key of [ids, letters]) assert.strictEqual(yield* send("PTTL", key), 30 * day)
      const [first] = yield* service.deadMessages(held.stream, undefined, 1)
      assert.isTrue(yield* service.redriveMessage(held.stream, first!.id))
      assert.deepStrictEqual(yield* send("HKEYS", ids), ["2-0"])
    })))

  it.effect("when a message is redriven, keeps the letter of a later message with the same id", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const bury = (n: string) => service.deadLetterMessage(held, message("1-0", [["n", n]]), "poison")
      yield* bury("1")
      yield* bury("2")
      const [first, second] = yield* service.deadMessages(held.stream, undefined, 2)
      assert.isTrue(yield* service.redriveMessage(held.stream, first!.id))
      yield* bury("2")
      const letters = yield* service.deadMessages(held.stream, undefined, 10)
      assert.deepStrictEqual(letters.map(({ id }) => id), [second!.id])
      assert.isTrue(yield* service.redriveMessage(held.stream, second!.id))
      assert.strictEqual(yield* send("EXISTS", StreamKeys.deadIds(held.stream)), 0)
    })))

  it.effect("reserves a large message for one of two callers, and for the other one after a minute", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const fields = Array.from({ length: 3501 }, (_, i) => [`n${i}`, ""] as const)
      const bury = (id: string) =>
        Effect.andThen(
          service.deadLetterMessage(held, message(id, fields), "poison"),
          Effect.map(service.deadMessages(held.stream, undefined, 1), ([letter]) => letter!.id)
        )
      const letter = yield* bury("1-0")
      const redis = yield* Redis
      /**
       * Another client's redrive consists of two calls: one before (`""`) and one after (`"1"`) it adds the message.
       */
      const otherClient = (added: "" | "1") =>
        call(redis, "redrive", scripts.redriveMessage)({
          stream: held.stream,
          deadMessages: StreamKeys.deadMessages(held.stream),
          deadIds: StreamKeys.deadIds(held.stream),
          letter,
          added
        })
      assert.strictEqual(yield* otherClient(""), "packed")
      yield* TestClock.adjust("59999 millis")
      const refused = yield* Effect.flip(service.redriveMessage(held.stream, letter))
      assert.include(refused.message, "another caller has begun to redrive this message")
      assert.strictEqual(yield* send("XLEN", held.stream), 0)
      // The other client's reservation expires
      yield* TestClock.adjust("1 millis")
      assert.isTrue(yield* service.redriveMessage(held.stream, letter))
      assert.strictEqual(yield* send("XLEN", held.stream), 1)
      assert.strictEqual(yield* otherClient("1"), "0")
      assert.lengthOf(yield* service.deadMessages(held.stream, undefined, 1), 0)
      assert.strictEqual(yield* send("EXISTS", StreamKeys.deadIds(held.stream)), 0)
    })))

  it.effect("leaves letters with up to 3,500 fields unchanged and packs larger ones", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const fields = Array.from({ length: 3501 }, (_, i) => [`n${i}`, ""] as const)
      yield* service.deadLetterMessage(held, message("1-0", fields.slice(1)), "poison")
      yield* service.deadLetterMessage(held, message("2-0", fields), "poison")
      const letters = yield* send<ReadonlyArray<readonly [string, ReadonlyArray<string>]>>(
        "XRANGE",
        StreamKeys.deadMessages(held.stream),
        "-",
        "+"
      )
      assert.deepStrictEqual(letters.map(([, fields]) => fields.length), [7000 + 6, 2 + 6])
    })))

  it.effect("distinguishes messages with the same id by their fields", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const bury = (...fields: ReadonlyArray<readonly [string, string]>) =>
        Effect.andThen(
          service.deadLetterMessage(held, message("1-0", fields), "poison"),
          send<number>("XLEN", StreamKeys.deadMessages(held.stream))
        )
      assert.strictEqual(yield* bury(["n", "1"], ["m", "2"]), 1)
      assert.strictEqual(yield* bury(["n", "1"]), 2)
      assert.strictEqual(yield* bury(["n", "1"]), 2)
      assert.strictEqual(yield* bury(["n", "2"]), 3)
    })))
})

describe("the table of hand-overs", () => {
  const to = { consumer: b, session: "s00000000001" }

  it.effect("expires with the last hand-over", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const handOver = (label: string, confirm: Duration.Input) =>
        Effect.andThen(
          Effect.flatMap(own(label), (held) => service.handOver(held, to, Duration.fromInputUnsafe(confirm))),
          Effect.map(send<number>("PTTL", StreamKeys.handOvers(name)), secondsOf)
        )
      assert.strictEqual(yield* handOver("one", "10 seconds"), 10)
      assert.strictEqual(yield* handOver("two", "1 second"), 10)
      assert.strictEqual(yield* handOver("three", "20 seconds"), 20)
    })))

  it.effect("forgets a hand-over when it expires, not sooner", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const count = send<number>("ZCARD", StreamKeys.handOvers(name))
      const held = yield* Effect.forEach(["one", "two", "three", "four"], (label) => own(label))
      yield* service.handOver(held[0]!, to, Duration.seconds(1))
      yield* service.handOver(held[1]!, to, Duration.seconds(60))
      yield* TestClock.adjust("1 second")
      yield* service.handOver(held[2]!, to, Duration.seconds(60))
      assert.strictEqual(yield* count, 3)
      yield* TestClock.adjust("1 millis")
      yield* service.handOver(held[3]!, to, Duration.seconds(60))
      assert.strictEqual(yield* count, 3)
    })))
})

describe("the table of members", () => {
  const heartbeat = (service: Service, session: string, expiry: Duration.Input) =>
    service.heartbeat({ ...member, session }, Duration.fromInputUnsafe(expiry))

  it.effect("expires with the last member", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      const left = Effect.map(send<number>("PTTL", StreamKeys.members(name)), secondsOf)
      yield* heartbeat(service, "s00000000001", "10 seconds")
      assert.strictEqual(yield* left, 10)
      yield* heartbeat(service, "s00000000002", "1 second")
      assert.strictEqual(yield* left, 10)
      yield* heartbeat(service, "s00000000003", "20 seconds")
      assert.strictEqual(yield* left, 20)
    })))

  it.effect("forgets a silent member when it expires", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      const known = Effect.map(
        send<ReadonlyArray<string>>("HKEYS", StreamKeys.members(name)),
        (all) => all.map((text) => text.split("@@")[1]).sort()
      )
      yield* heartbeat(service, "s00000000001", "1 second")
      yield* TestClock.adjust("999 millis")
      yield* heartbeat(service, "s00000000002", "1 minute")
      assert.deepStrictEqual(yield* known, ["s00000000001", "s00000000002"])
      yield* TestClock.adjust("1 millis")
      yield* heartbeat(service, "s00000000002", "1 minute")
      assert.deepStrictEqual(yield* known, ["s00000000002"])
    })))
})

describe("a service's state", () => {
  it.effect("counts pending entries on all pages", () =>
    onFake(Effect.gen(function*() {
      const { announceMany, service } = yield* setup()
      assert.deepInclude(yield* service.inspect, { announced: 0, pending: 0, oldest: Duration.zero, deadLetters: 0 })
      yield* announceMany(2003)
      yield* TestClock.adjust("5 seconds")
      const { consumers, oldest, pending } = yield* service.inspect
      assert.deepStrictEqual([pending, secondsOf(Duration.toMillis(oldest))], [2003, 5])
      assert.deepStrictEqual(consumers.map(({ name, pending }) => [name, pending]), [[a, 2003]])
    })))
})

describe("the table of failures", () => {
  it.effect("counts failures as one streak until a pause ends it", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const fail = Effect.map(service.fail(held, { streakEndsAfter: Duration.seconds(5) }), (failed) => {
        assert.isTrue(failed !== "NotOwner")
        return failed === "NotOwner" ? [] : [failed.count, Duration.toMillis(failed.period)]
      })
      const after = (pause: Duration.Input) =>
        Effect.gen(function*() {
          // Keep the lease during the pause
          for (const key of [StreamKeys.entryLease(held.stream, held.entry), StreamKeys.streamLease(held.stream)]) {
            yield* send("PERSIST", key)
          }
          yield* TestClock.adjust(pause)
          return yield* fail
        })
      assert.deepStrictEqual(yield* fail, [1, 0])
      assert.deepStrictEqual(yield* after("2 seconds"), [2, 2000])
      assert.deepStrictEqual(yield* after("4999 millis"), [3, 6999])
      assert.deepStrictEqual(yield* after("5 seconds"), [1, 0])
      assert.strictEqual(yield* send("PTTL", StreamKeys.failures(name)), 7 * day)
    })))
})

describe("a redriven announcement", () => {
  it.effect("becomes its data stream's current announcement and keeps the checkpoint", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* service.commit(held, EntryId.make("5-0"))
      yield* service.deadLetter(held, "it does not work")
      const before = yield* send("GET", StreamKeys.checkpoint(held.stream))
      const [letter] = yield* service.deadLetters(undefined, 10)
      assert.isTrue(yield* service.redrive(letter!.id))
      assert.isFalse(yield* service.redrive(letter!.id))
      assert.strictEqual(yield* send("GET", StreamKeys.checkpoint(held.stream)), before)
      const [repeated] = yield* service.announce([{ stream: held.stream, info: {} }])
      assert.isFalse(repeated!.isNew)
      const found = yield* service.find(held.stream)
      assert.strictEqual(Option.getOrThrow(found).entry, repeated!.entry)
    })))
})

describe("an announcement", () => {
  it.effect("whose info is not JSON is refused permanently, with an error that names the data stream", () =>
    onFake(Effect.gen(function*() {
      const { service } = yield* setup()
      const error = yield* Effect.flip(service.announce([{ stream: StreamName.make("one"), info: { total: 1n } }]))
      assert.strictEqual(error._tag === "BackendError" && error.isRetryable, false)
      assert.include(error.message, "the info of \"one\" cannot be written as JSON")
    })))
})
