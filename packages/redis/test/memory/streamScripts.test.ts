/** Edge cases of single data-stream scripts on the fake server: sizes, wrong types, late requests and clock changes. */
import type { StoreError } from "@effect-simba/core/SimbaError"
import { EntryId, type StreamName } from "@effect-simba/core/streams/StreamName"
import {
  ConsumerName,
  type Epoch,
  type Ownership,
  type Service,
  ServiceName,
  StreamStore,
  type TakeRequest
} from "@effect-simba/core/streams/StreamStore"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Option } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import { call } from "../../src/internal/client/script.ts"
import * as extents from "../../src/streams/internal/extents.ts"
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import * as scripts from "../../src/streams/internal/scripts.generated.ts"
import {
  a,
  b,
  epoch,
  group,
  input,
  keysOf,
  lease,
  name,
  onFake,
  setup,
  streamOf
} from "../support/streamScriptSetup.ts"

const id = (text: string) => EntryId.make(text)

/** Adds messages with the ids `from-0` to `to-0`. */
const fill = (stream: string, from: number, to: number) =>
  Redis.use((redis) =>
    redis.send(
      "EVAL",
      "for i = ARGV[1], ARGV[2] do redis.call('XADD', KEYS[1], i .. '-0', 'n', i) end",
      "1",
      stream,
      String(from),
      String(to)
    )
  )

describe("counting", () => {
  it.effect("counts thousands of messages between two ids in pages of a thousand", () =>
    onFake(Effect.gen(function*() {
      const { scriptCalls, server, service } = yield* setup()
      const stream = streamOf("many")
      yield* fill(stream, 1, 3500)
      const counted = (after: string, last?: string) =>
        Effect.map(
          service.count(stream, id(after), last === undefined ? last : id(last)),
          (found) => Option.getOrThrow(found).counted
        )
      yield* server.clearTrace
      assert.strictEqual(yield* counted("100-0"), 3400)
      assert.strictEqual(yield* scriptCalls, 4)
      assert.strictEqual(yield* counted("100-0", "3100-0"), 3000)
      assert.strictEqual(yield* counted("100-0", "1100-0"), 1000)
      yield* server.clearTrace
      assert.strictEqual(yield* counted("1-0"), 3499)
      assert.strictEqual(yield* counted("0-0"), 3500)
      assert.strictEqual(yield* counted("3500-0"), 0)
      assert.strictEqual(yield* scriptCalls, 3)
    })))

  it.effect("starts over if messages are deleted meanwhile, and gives up if that keeps happening", () =>
    Effect.gen(function*() {
      type Page = readonly [length: number, last: string, first: string, added: number, deleted: string, number, string]
      const counting = (...pages: ReadonlyArray<Page | readonly []>) => {
        const asked: Array<string> = []
        const run = () => ({ after, last }: { readonly after: string; readonly last: string }) =>
          Effect.sync(() => {
            asked.push(`${after} ${last}`)
            return pages[asked.length - 1]
          })
        const { count } = extents.make({ admit: () => Effect.void, run } as never)
        return Effect.map(count(streamOf("many"), id("1-0")), (found) => ({
          asked,
          counted: Option.getOrUndefined(Option.map(found, ({ added, counted }) => [added, counted]))
        }))
      }
      const page = (length: number, added: number, count: number, more: string, first = "1-0"): Page => [
        length,
        `${added}-0`,
        first,
        added,
        "0-0",
        count,
        more
      ]
      // Messages added meanwhile are not counted, because the first page fixes the end
      assert.deepStrictEqual(yield* counting(page(10, 10, 4, "5-0"), page(12, 12, 5, "")), {
        asked: ["1-0 ", "5-0 10-0"],
        counted: [10, 9]
      })
      const repeated = yield* counting(page(10, 10, 4, "5-0"), page(9, 10, 4, ""), page(9, 10, 8, ""))
      assert.deepStrictEqual(repeated, { asked: ["1-0 ", "5-0 10-0", "1-0 "], counted: [10, 8] })
      const renewed = yield* counting(page(10, 10, 4, "5-0"), page(10, 10, 4, "", "3-0"), page(10, 10, 9, "", "3-0"))
      assert.deepStrictEqual(renewed, { asked: ["1-0 ", "5-0 10-0", "1-0 "], counted: [10, 9] })
      const trimmed = page(10, 10, 4, "5-0")
      const busy = yield* counting(...[1, 2, 3, 4].flatMap(() => [trimmed, page(10, 11, 5, "", "2-0")]))
      assert.deepStrictEqual([busy.asked.length, busy.counted], [6, [10, undefined]])
      assert.deepStrictEqual(yield* counting(trimmed, []), { asked: ["1-0 ", "5-0 10-0"], counted: undefined })
      // A reply from a server older than Redis 7.0
      const uncounted = [10, "10-0", "1-0", "", "", 9, ""] as never
      assert.deepStrictEqual((yield* counting(uncounted)).counted, [undefined, undefined])
    }))

  it.effect("returns an exact lag if the checkpoint has an offset, otherwise counts up to 1,000 messages", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const ownership = yield* own("many")
      yield* fill(ownership.stream, 1, 1500)
      const lag = Effect.map(
        service.lag(ownership.stream),
        ({ first, isCounted, messages }): ReadonlyArray<unknown> => [
          messages,
          isCounted,
          first
        ]
      )
      assert.deepStrictEqual(yield* lag, [1500, true, "1-0"])
      yield* service.commit(ownership, id("100-0"), false, 100)
      assert.deepStrictEqual(yield* lag, [1400, true, "101-0"])
      yield* service.commit(ownership, id("200-0"))
      assert.deepStrictEqual(yield* lag, [1000, false, "201-0"])
      yield* service.commit(ownership, id("1499-0"), false, 1499)
      assert.deepStrictEqual(yield* lag, [1, true, "1500-0"])
      yield* send("XDEL", ownership.stream, "1500-0")
      assert.deepStrictEqual(yield* lag, [0, true, undefined])
    })))
})

describe("redriving", () => {
  it.effect("a message removes its letter and its record and works only once", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const ownership = yield* own("one")
      yield* service.deadLetterMessage(ownership, { id: id("2-0"), fields: [["x", "y"], ["z", ""]] }, "why")
      const [letter] = yield* send<ReadonlyArray<readonly [string]>>(
        "XRANGE",
        StreamKeys.deadMessages(ownership.stream),
        "-",
        "+"
      )
      assert.strictEqual(yield* send("HLEN", StreamKeys.deadIds(ownership.stream)), 1)
      assert.isTrue(yield* service.redriveMessage(ownership.stream, id(letter![0])))
      assert.strictEqual(yield* send("HLEN", StreamKeys.deadIds(ownership.stream)), 0)
      const [message] = yield* service.messages(ownership.stream, id("0-0"), 10)
      assert.deepStrictEqual<unknown>(message!.fields, [["x", "y"], ["z", ""]])
      assert.isFalse(yield* service.redriveMessage(ownership.stream, id(letter![0])))
    })))

  it.effect("an announcement makes it known again and works only once", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const ownership = yield* own("one")
      assert.strictEqual(yield* service.deadLetter(ownership, "why"), "DeadLettered")
      const [letter] = yield* service.deadLetters(id("0-0"), 10)
      assert.isFalse(yield* service.redrive(id("1-1")))
      assert.isTrue(yield* service.redrive(letter!.id))
      assert.isFalse(yield* service.redrive(letter!.id))
      const [redriven] = yield* send<ReadonlyArray<readonly [string, ReadonlyArray<string>]>>("XRANGE", input, "-", "+")
      assert.strictEqual(redriven![1].length, 2)
      // Repeating the announcement does not add an entry
      const [repeated] = yield* service.announce([{ stream: ownership.stream, info: {} }])
      assert.deepInclude(repeated, { entry: id(redriven![0]), isNew: false })
    })))

  it.effect("an ended data stream stays ended unless it was deleted and rewritten", () =>
    Effect.forEach(
      [[10, "Ended"], [5, "Reopened"], [0, "Ended"]] as const,
      ([newest, end]) =>
        onFake(Effect.gen(function*() {
          const { own, send, service } = yield* setup()
          yield* fill(streamOf("one"), 1, 10)
          const ownership = yield* own("one")
          yield* service.commit(ownership, id("10-0"), true)
          yield* service.deadLetter(ownership, "why")
          yield* send("DEL", ownership.stream)
          yield* fill(ownership.stream, 1, newest)
          const [letter] = yield* service.deadLetters(undefined, 10)
          assert.isTrue(yield* service.redrive(letter!.id))
          const { entry } = Option.getOrThrow(yield* service.find(ownership.stream))
          assert.strictEqual(yield* service.end({ ...ownership, entry }), end)
        }))
    ))
})

describe("keys that belong to a whole service", () => {
  it.effect("have their expiry extended by each use but never shortened", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const ownership = yield* own("one")
      const left = (key: string) => send<number>("PTTL", key)
      const [failures, members] = [StreamKeys.failures(name), StreamKeys.members(name)]
      for (const use of [service.fail(ownership), service.renew([{ ...ownership, isBusy: true }], lease)]) {
        yield* service.fail(ownership)
        yield* send("PEXPIRE", failures, "1000")
        yield* use
        assert.isAbove(yield* left(failures), 60_000)
      }
      const heartbeat = (session: string, expiry: Duration.Duration) =>
        service.heartbeat({ consumer: a, session, capacity: 1, owned: 0 }, expiry)
      yield* heartbeat("s00000000000", Duration.minutes(1))
      assert.isAbove(yield* left(members), 30_000)
      yield* heartbeat("s00000000001", Duration.seconds(1))
      assert.isAbove(yield* left(members), 30_000)
    })))
})

describe("a key of the wrong type", () => {
  it.effect("fails the requests that read it, with an error that names it", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      const stream = streamOf("text")
      yield* send("SET", stream, "text")
      const requests: ReadonlyArray<Effect.Effect<unknown, StoreError>> = [
        service.lag(stream),
        service.count(stream, id("0-0")),
        service.extent(stream)
      ]
      for (const request of requests) {
        const error = yield* Effect.flip(request)
        assert.isTrue(error._tag === "BackendError" && !error.isRetryable)
        assert.match(error.message, /WRONGTYPE/)
        assert.include(error.message, `"${stream}"`)
      }
      yield* send("SET", StreamKeys.input(ServiceName.make("{orders}other")), "text")
      const { open } = yield* StreamStore
      const other = yield* open(ServiceName.make("{orders}other"))
      assert.match((yield* Effect.flip(other.prepare)).message, /WRONGTYPE/)
    })))

  it.effect("in place of the load-balancer stream fails the renewals of all leases that still exist", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* send("SET", input, "text")
      assert.match((yield* Effect.flip(service.renew([held], lease))).message, /WRONGTYPE/)
      yield* send("DEL", ...Object.values(keysOf(held)))
      assert.deepStrictEqual(yield* service.renew([held], lease), [{ _tag: "Lost", reason: "Vanished" }])
    })))
})

describe("with a key of the wrong type, no script changes anything:", () => {
  it.effect("a commit fails and names the key", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const checkpoint = StreamKeys.checkpoint(held.stream)
      yield* send("SADD", checkpoint, "x")
      assert.include((yield* Effect.flip(service.commit(held, id("1-0")))).message, `"${checkpoint}"`)
    })))

  it.effect("`done` fails but keeps the lease, so it can succeed later", () =>
    onFake(Effect.gen(function*() {
      const { own, pending, send, service } = yield* setup()
      const held = yield* own("one")
      yield* send("DEL", StreamKeys.failures(name))
      yield* send("SET", StreamKeys.failures(name), "text")
      assert.strictEqual((yield* Effect.flip(service.done(held)))._tag, "BackendError")
      assert.deepStrictEqual(yield* pending, [held.entry])
      assert.deepStrictEqual(yield* service.renew([held], lease), [{ _tag: "Renewed" }])
      yield* send("DEL", StreamKeys.failures(name))
      assert.strictEqual(yield* service.done(held), "Done")
    })))

  it.effect("a hand-over fails without changing the owner", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* send("SET", StreamKeys.handOvers(name), "text")
      const to = { consumer: b, session: "s00000000001" }
      assert.strictEqual((yield* Effect.flip(service.handOver(held, to, lease)))._tag, "BackendError")
      assert.deepStrictEqual(yield* service.renew([held], lease), [{ _tag: "Renewed" }])
    })))

  it.effect("a redrive fails without removing the letter", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* service.deadLetter(held, "why")
      const [letter] = yield* service.deadLetters(undefined, 1)
      yield* send("SADD", StreamKeys.checkpoint(held.stream), "x")
      assert.strictEqual((yield* Effect.flip(service.redrive(letter!.id)))._tag, "BackendError")
      assert.strictEqual(yield* send("XLEN", input), 0)
      assert.lengthOf(yield* service.deadLetters(undefined, 1), 1)
    })))
})

describe("after the server's clock was set back,", () => {
  it.effect("failures are counted, but their period is zero", () =>
    onFake(Effect.gen(function*() {
      const { own, server, service } = yield* setup()
      const held = yield* own("one")
      yield* service.fail(held)
      yield* server.stepClock("-5 minutes")
      assert.deepStrictEqual(yield* service.fail(held), { count: 2, period: Duration.zero })
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* service.fail(held), { count: 3, period: Duration.seconds(1) })
    })))

  it.effect("members whose expiry is too far ahead are dropped until their next heartbeat", () =>
    onFake(Effect.gen(function*() {
      const { server, service } = yield* setup()
      const [one, two] = ["s00000000000", "s00000000001"]
      const heartbeat = (session: string) =>
        Effect.map(
          service.heartbeat({ consumer: a, session, capacity: 1, owned: 0 }, Duration.seconds(3)),
          (members) => members.map(({ session }) => session).sort()
        )
      yield* heartbeat(one)
      yield* server.stepClock("-2999 millis")
      assert.deepStrictEqual(yield* heartbeat(two), [one, two])
      yield* server.stepClock("-1 millis")
      assert.deepStrictEqual(yield* heartbeat(two), [two])
      assert.deepStrictEqual(yield* heartbeat(one), [one, two])
    })))

  it.effect("a client's reservation of a message for redriving still ends", () =>
    onFake(Effect.gen(function*() {
      const { own, send, server, service } = yield* setup()
      const held = yield* own("one")
      const fields = Array.from({ length: 3501 }, (_, i) => [`f${i}`, "v"] as const)
      yield* service.deadLetterMessage(held, { id: id("3-0"), fields }, "why")
      const [letter] = yield* service.deadMessages(held.stream, undefined, 1)
      const redrive = call(yield* Redis, "redrive", scripts.redriveMessage)
      const { stream } = held
      const keys = { stream, deadMessages: StreamKeys.deadMessages(stream), deadIds: StreamKeys.deadIds(stream) }
      const begin = redrive({ ...keys, letter: letter!.id, added: "" })
      yield* send("PEXPIRE", keys.deadIds, "1000")
      assert.strictEqual(yield* begin, "packed")
      assert.isAbove(yield* send<number>("PTTL", keys.deadIds), 60_000)
      yield* server.stepClock("-59999 millis")
      assert.strictEqual(yield* begin, "claimed")
      yield* server.stepClock("-1 millis")
      assert.strictEqual(yield* begin, "packed")
    })))
})

describe("ids:", () => {
  it.effect("commits, seeks and dead letters with a malformed id fail with the same message", () =>
    onFake(Effect.gen(function*() {
      const { own, service } = yield* setup()
      const held = yield* own("one")
      const wrong = ["5", "x-1", "18446744073709551616-0", "1-18446744073709551616", "1-2-3", "-1", ""]
      for (const text of wrong) {
        for (
          const request of [
            service.commit(held, text as EntryId),
            service.seek(held.stream, { id: text as EntryId, offset: undefined }, { owner: held }),
            service.deadLetterMessage(held, { id: text as EntryId, fields: [] }, "why")
          ]
        ) {
          const { cause } = (yield* Effect.flip(request)) as { readonly cause: unknown }
          assert.strictEqual(
            (cause as Error).message.replace(/ script: .*/, ""),
            `ERR "${text}" is not a message id: expected <milliseconds>-<sequence>`
          )
        }
      }
    })))

  it.effect("an offset that is not a number of messages is stored as unknown, and the checkpoint stays readable", () =>
    onFake(Effect.gen(function*() {
      const { own, service } = yield* setup()
      const held = yield* own("one")
      let n = 0
      for (const offset of [-1, 1.5, NaN, Infinity, 1e21, 2 ** 53]) {
        assert.strictEqual(yield* service.commit(held, id(`${++n}-0`), false, offset), "Committed")
        const checkpoint = yield* service.checkpoint(held.stream)
        assert.deepStrictEqual(checkpoint, Option.some({ id: id(`${n}-0`), offset: undefined }), String(offset))
      }
    })))

  it.effect("the largest id that can be committed is the data stream's last id, even if its message was deleted", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* send("XADD", held.stream, "5-0", "n", "1")
      yield* send("XDEL", held.stream, "5-0")
      assert.strictEqual(yield* service.commit(held, id("5-1")), "Beyond")
      assert.strictEqual(yield* service.commit(held, id("5-0")), "Committed")
    })))

  it.effect("no messages are counted after the largest possible id", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      const [stream, largest] = [streamOf("one"), id("18446744073709551615-18446744073709551615")]
      yield* send("XADD", stream, "5-0", "n", "1")
      yield* send("XADD", stream, largest, "n", "1")
      const counted = (after: EntryId) =>
        Effect.map(service.count(stream, after), (found) => Option.getOrThrow(found).counted)
      assert.deepStrictEqual([yield* counted(largest), yield* counted(id("0-0"))], [0, 2])
      assert.strictEqual(yield* service.seek(stream, { id: largest, offset: undefined }), "Moved")
      assert.strictEqual((yield* service.lag(stream)).messages, 0)
    })))
})

describe("counting a lag's messages", () => {
  it.effect("counting takes a call per thousand messages, or one if the stream's own counters suffice", () =>
    onFake(Effect.gen(function*() {
      const { scriptCalls, server, service } = yield* setup()
      const stream = streamOf("many")
      yield* fill(stream, 1, 3500)
      const callsOf = (after: string, last: string) =>
        Effect.gen(function*() {
          yield* server.clearTrace
          const found = yield* service.count(stream, id(after), id(last))
          return [Option.getOrThrow(found).counted, yield* scriptCalls]
        })
      // The last page is full, so it takes another call to notice the end
      assert.deepStrictEqual(yield* callsOf("100-0", "3100-0"), [3000, 4])
      assert.deepStrictEqual(yield* callsOf("0-0", "9000-0"), [3500, 1])
      assert.deepStrictEqual(yield* callsOf("0-0", "3500-0"), [3500, 1])
      assert.deepStrictEqual(yield* callsOf("9000-0", "9000-0"), [0, 1])
    })))

  it.effect("a lag includes the age of its first message by the server's clock", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      const stream = streamOf("one")
      const age = Effect.map(service.lag(stream), ({ age }) => Duration.toMillis(age))
      yield* send("XADD", stream, "*", "n", "1")
      assert.strictEqual(yield* age, 0)
      yield* TestClock.adjust("5 seconds")
      yield* send("XADD", stream, "*", "n", "2")
      assert.strictEqual(yield* age, 5000)
      // An id from the future
      const future = streamOf("future")
      yield* send("XADD", future, "99999999999999-0", "n", "1")
      assert.deepStrictEqual((yield* service.lag(future)).age, Duration.zero)
    })))
})

describe("a repeated announcement", () => {
  it.effect("causes one more round, no matter how often it is repeated", () =>
    onFake(Effect.gen(function*() {
      const { own, ownNext, send, service } = yield* setup()
      const held = yield* own("one")
      yield* fill(held.stream, 1, 5)
      const announce = service.announce([{ stream: held.stream, info: {} }])
      assert.isFalse((yield* announce)[0]!.isNew)
      // A producer repeats its request because it got no reply
      assert.isFalse((yield* announce)[0]!.isNew)
      yield* service.commit(held, id("5-0"))
      assert.strictEqual(yield* service.done(held), "Done")
      const second = yield* ownNext(held)
      assert.strictEqual(yield* service.done(second), "Done")
      assert.strictEqual(yield* send("XLEN", input), 0)
    })))

  it.effect("differs from a redrive, after which `done` leaves no announcement", () =>
    onFake(Effect.gen(function*() {
      const { own, ownNext, send, service } = yield* setup()
      const held = yield* own("one")
      yield* service.deadLetter(held, "why")
      const [letter] = yield* service.deadLetters(undefined, 1)
      assert.isTrue(yield* service.redrive(letter!.id))
      const second = yield* ownNext(held)
      assert.strictEqual(yield* service.done(second), "Done")
      assert.strictEqual(yield* send("XLEN", input), 0)
    })))

  it.effect("is not lost if its data stream is dead-lettered: after a redrive, the messages after the end are announced", () =>
    onFake(Effect.gen(function*() {
      for (const isEnded of [false, true]) {
        const { own, ownNext, send, service } = yield* setup()
        const held = yield* own(`ended ${isEnded}`)
        yield* fill(held.stream, 1, 5)
        yield* fill(held.stream, 6, 9)
        assert.isFalse((yield* service.announce([{ stream: held.stream, info: {} }]))[0]!.isNew)
        if (isEnded) yield* service.commit(held, id("5-0"), true)
        yield* service.deadLetter(held, "why")
        const [letter] = yield* service.deadLetters(undefined, 1)
        assert.isTrue(yield* service.redrive(letter!.id))
        const second = yield* ownNext(held)
        if (!isEnded) yield* service.commit(second, id("5-0"), true)
        assert.strictEqual(yield* service.end(second), "Ended")
        assert.strictEqual(yield* service.done(second), "Done")
        const next = Option.getOrThrow(yield* service.find(held.stream))
        assert.notStrictEqual(next.entry, second.entry)
        assert.deepStrictEqual(next.info, {})
        yield* send("DEL", input)
      }
    })))
})

describe("a data stream that is deleted and rewritten with smaller ids while it is owned", () => {
  const owned = Effect.fnUntraced(function*(label: string, isEnded: boolean, announcedAt = 10) {
    const { own, send, service } = yield* setup()
    if (announcedAt > 0) yield* fill(streamOf(label), 1, announcedAt)
    const held = yield* own(label)
    if (announcedAt < 10) yield* fill(held.stream, announcedAt + 1, 10)
    return {
      announce: service.announce([{ stream: held.stream, info: {} }]),
      commit: service.commit(held, id("10-0"), isEnded),
      isAnnouncedAfterDone: Effect.gen(function*() {
        assert.strictEqual(yield* service.done(held), "Done")
        return Option.isSome(yield* service.find(held.stream))
      }),
      remove: send("DEL", held.stream),
      write: (from: number, to: number) => fill(held.stream, from, to)
    }
  })

  for (const isEnded of [true, false]) {
    it.effect(`is announced again by \`done\` after a repetition, ${isEnded ? "after" : "without"} an end message`, () =>
      onFake(Effect.gen(function*() {
        const one = yield* owned("one", isEnded)
        yield* one.commit
        yield* one.remove
        yield* one.write(1, 5)
        yield* one.announce
        assert.isTrue(yield* one.isAnnouncedAfterDone)
      })))

    it.effect(`is not announced by \`done\` without messages to read, ${isEnded ? "after" : "without"} an end message`, () =>
      onFake(Effect.gen(function*() {
        // Nobody announces the data stream after its deletion
        for (const announcedAt of [0, 5, 10]) {
          const one = yield* owned(`one at ${announcedAt}`, isEnded, announcedAt)
          yield* one.commit
          yield* one.remove
          yield* one.write(1, 5)
          assert.isFalse(yield* one.isAnnouncedAfterDone)
        }
        // The data stream does not exist when `done` is called
        const two = yield* owned("two", isEnded)
        yield* two.commit
        yield* two.remove
        yield* two.announce
        assert.isFalse(yield* two.isAnnouncedAfterDone)
        // It is the same data stream, so the commit includes the announced messages
        const three = yield* owned("three", isEnded)
        yield* three.remove
        yield* three.write(6, 6)
        yield* three.announce
        yield* three.write(7, 10)
        yield* three.commit
        assert.isFalse(yield* three.isAnnouncedAfterDone)
      })))
  }
})

/** Returns a lease's consumer and epoch. */
const ownerOf = (stream: StreamName) =>
  Redis.use((redis) =>
    Effect.map(redis.send<string>("GET", StreamKeys.streamLease(stream)), (value) => {
      const [consumer, epoch] = value.split("@@")
      return { consumer: consumer as ConsumerName, epoch: epoch as Epoch }
    })
  )

describe("announcements that other programs add, acknowledge or delete", () => {
  const announced = (label: string) => JSON.stringify({ DataStreamName: streamOf(label), Info: {} })

  it.effect("are finished by `done` like any other announcement", () =>
    onFake(Effect.gen(function*() {
      const { ask, read, send, service } = yield* setup()
      yield* send("XADD", input, "*", "lbs-input", announced("one"))
      const [{ entry } = { entry: id("0-0") }] = yield* read()
      const taken = yield* ask(streamOf("one"), entry)
      assert(taken._tag === "Taken")
      const held = { stream: streamOf("one"), entry, ...(yield* ownerOf(streamOf("one"))), token: taken.token }
      yield* service.commit(held, id("5-0"))
      assert.strictEqual(yield* service.done(held), "Done")
      assert.strictEqual(yield* send("XLEN", input), 0)
    })))

  it.effect("are not found once a Go consumer has acknowledged them, so a redrive announces the data stream again", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      assert.strictEqual((yield* service.find(held.stream))._tag, "Some")
      yield* service.deadLetter(held, "why")
      const second = yield* own("one")
      // A Go consumer acknowledges an entry before deleting it
      yield* send("XACK", input, group, second.entry)
      assert.strictEqual((yield* service.find(held.stream))._tag, "None")
      const [letter] = yield* service.deadLetters(undefined, 1)
      assert.isTrue(yield* service.redrive(letter!.id))
      assert.strictEqual(yield* send("XLEN", input), 2)
    })))

  it.effect("are forgotten in pages after being trimmed", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      yield* service.announce(Array.from({ length: 1200 }, (_, i) => ({ stream: streamOf(String(i)), info: {} })))
      yield* send("XTRIM", input, "MAXLEN", "0")
      assert.strictEqual(yield* send("HLEN", StreamKeys.announced(name)), 1200)
      yield* service.reap(Duration.days(1))
      assert.strictEqual(yield* send("HLEN", StreamKeys.announced(name)), 0)
    })))

  it.effect("are forgotten when a take finds them deleted", () =>
    onFake(Effect.gen(function*() {
      const { announceMany, send, service } = yield* setup()
      const [request] = yield* announceMany(1)
      yield* send("XDEL", input, request!.entry)
      assert.deepStrictEqual(yield* service.take([request!]), [{ _tag: "Gone" }])
      assert.strictEqual(yield* send("HLEN", StreamKeys.announced(name)), 0)
    })))
})

describe("finding", () => {
  it.effect("an announcement takes one command, no matter how many there are", () =>
    onFake(Effect.gen(function*() {
      const { announceMany, server, service } = yield* setup()
      yield* announceMany(600)
      yield* server.clearTrace
      assert.strictEqual((yield* service.find(streamOf("599")))._tag, "Some")
      assert.lengthOf((yield* server.trace).filter(({ args }) => args[0] !== "SCRIPT"), 1)
    })))

  it.effect("an announcement relies on the entry's content even if the table of announcements is wrong", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const [one, two] = [yield* own("one"), yield* own("two")]
      const key = StreamKeys.announced(name)
      yield* send("HSET", key, two.stream, yield* send<string>("HGET", key, one.stream))
      const found = Option.getOrThrow(yield* service.find(two.stream))
      assert.deepStrictEqual([found.entry, found.stream], [two.entry, two.stream])
    })))

  it.effect("pending entries takes one command, and a script for entries of unknown content", () =>
    onFake(Effect.gen(function*() {
      const { announceMany, scriptCalls, server, service } = yield* setup()
      yield* announceMany(5)
      const options = { minIdle: Duration.zero, count: 3 }
      const { entries, next } = yield* service.pending(options)
      assert.deepStrictEqual([entries.length, next], [3, entries[2]!.content.entry])
      assert.lengthOf((yield* service.pending({ ...options, count: 1 })).entries, 1)
      const contents = new Map(entries.map(({ content }) => [content.entry, content]))
      yield* server.clearTrace
      const known = yield* service.pending({ ...options, known: (entry) => contents.get(entry) })
      assert.deepStrictEqual(known.entries.map(({ content }) => content), entries.map(({ content }) => content))
      assert.deepStrictEqual((yield* server.trace).map(({ args }) => args[0]), ["XPENDING"])
      assert.lengthOf(
        (yield* service.pending({ ...options, count: 9, known: (entry) => contents.get(entry) })).entries,
        5
      )
      assert.strictEqual(yield* scriptCalls, 1)
    })))
})

describe("dead letters", () => {
  it.effect("are redriven with all fields of the announcement, by only one of two concurrent calls", () =>
    onFake(Effect.gen(function*() {
      const { read, send, service } = yield* setup()
      const payload = JSON.stringify({ DataStreamName: streamOf("one"), Info: {} })
      const fields = ["lbs-input", payload, ...Array.from({ length: 40 }, (_, i) => `f${i}`)]
      yield* send("XADD", input, "*", ...fields)
      const [entry] = yield* read()
      yield* service.deadLetterMalformed(entry!.entry, a, "why")
      const [letter] = yield* service.deadLetters(undefined, 1)
      const both = yield* Effect.all([service.redrive(letter!.id), service.redrive(letter!.id)], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual([...both].sort(), [false, true])
      const [second] = yield* send<ReadonlyArray<readonly [string, ReadonlyArray<string>]>>("XRANGE", input, "-", "+")
      assert.deepStrictEqual(second![1], fields)
    })))

  it.effect("cannot be redriven if another client has already redriven them", () =>
    onFake(Effect.gen(function*() {
      yield* setup()
      const redrive = call(yield* Redis, "redrive", scripts.redriveDeadLetter)
      const [deadLetters, announced] = [StreamKeys.deadLetters(name), StreamKeys.announced(name)]
      const checkpoint = StreamKeys.checkpoint(streamOf("one"))
      const keys = { input, deadLetters, announced, checkpoint, messages: streamOf("one") }
      assert.isFalse(yield* redrive({ ...keys, group, letter: "1-0", stream: "", text: "" }))
    })))

  it.effect("are redriven by one script if they are small, and not duplicated if they are packed", () =>
    onFake(Effect.gen(function*() {
      const { own, send, server, service } = yield* setup()
      const held = yield* own("one")
      yield* service.deadLetterMessage(held, { id: id("2-0"), fields: [["x", "y"]] }, "why")
      const [letter] = yield* service.deadMessages(held.stream, undefined, 1)
      yield* server.clearTrace
      assert.isTrue(yield* service.redriveMessage(held.stream, letter!.id))
      assert.lengthOf((yield* server.trace).filter(({ args }) => args[0] === "XADD"), 0)
      const fields = Array.from({ length: 3501 }, (_, i) => [`f${i}`, "v"] as const)
      for (let i = 0; i < 2; i++) yield* service.deadLetterMessage(held, { id: id("3-0"), fields }, "why")
      assert.strictEqual(yield* send("XLEN", StreamKeys.deadMessages(held.stream)), 1)
      const [packed] = yield* service.deadMessages(held.stream, undefined, 1)
      assert.isTrue(yield* service.redriveMessage(held.stream, packed!.id))
      assert.strictEqual(yield* send("HLEN", StreamKeys.deadIds(held.stream)), 0)
      const refused = yield* Effect.flip(service.deadMessages(input as StreamName, undefined, 1))
      assert.include(refused.message, "is the load-balancer stream")
    })))

  it.effect("caused by expired leases contain the last lease's token", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* service.fail(held)
      yield* send("DEL", ...Object.values(keysOf(held)))
      const [result] = yield* service.take([{
        ...held,
        epoch: epoch(),
        lease,
        minIdle: Duration.zero,
        maxFailures: 2,
        deadLetterAfter: Duration.zero
      }])
      assert.deepStrictEqual(result, { _tag: "DeadLettered", failures: 2 })
      const [letter] = yield* send<ReadonlyArray<readonly [string, ReadonlyArray<string>]>>(
        "XRANGE",
        StreamKeys.deadLetters(name),
        "-",
        "+"
      )
      assert.deepStrictEqual(letter![1].slice(-6), [
        "simba-reason",
        "too many failures: 2",
        "simba-id",
        held.entry,
        "simba-token",
        String(held.token)
      ])
    })))
})

describe("takes:", () => {
  const requestOf = (held: Ownership, consumer = b, minIdle = Duration.zero) => ({
    stream: held.stream,
    entry: held.entry,
    consumer,
    epoch: epoch(),
    lease,
    minIdle,
    maxFailures: 2,
    deadLetterAfter: Duration.zero
  })
  const tagOf = (service: Service, request: TakeRequest) =>
    Effect.map(service.take([request]), ([result]) => result!._tag)

  it.effect("a yielded entry can be taken immediately, unless its lease lasts another two milliseconds or more", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      for (const [label, wait] of [["now", 0], ["later", 1]] as const) {
        const held = yield* own(label)
        assert.strictEqual(yield* service.release(held), "Released")
        yield* TestClock.adjust(wait)
        assert.strictEqual(yield* tagOf(service, requestOf(held)), "Taken")
      }
      for (const [label, expiry] of [["two", ["PX", "2"]], ["long", ["PX", "2000"]], ["endless", []]] as const) {
        const held = yield* own(label)
        yield* send("DEL", StreamKeys.streamLease(held.stream))
        yield* send("SET", StreamKeys.entryLease(held.stream, held.entry), "simba-consumer-c@@s1.1", ...expiry)
        assert.strictEqual(yield* tagOf(service, requestOf(held)), "Occupied")
      }
    })))

  it.effect("a request whose epoch precedes the session's last yield is refused as too late", () =>
    onFake(Effect.gen(function*() {
      const { own, service } = yield* setup()
      const held = yield* own("one")
      assert.strictEqual(yield* service.release(held), "Released")
      const as = (count: string) => ({ ...requestOf(held, a), epoch: `s00000000001.${count}` as Epoch })
      const first = as("z")
      const [taken] = yield* service.take([first])
      assert(taken?._tag === "Taken")
      assert.strictEqual(yield* service.release({ ...first, token: taken.token }), "Released")
      for (const late of ["1", "y", "z"]) assert.strictEqual(yield* tagOf(service, as(late)), "NotIdle")
      assert.strictEqual(yield* tagOf(service, as("10")), "Taken")
    })))

  it.effect("a late request is refused even if its consumer's name contains a line break", () =>
    onFake(Effect.gen(function*() {
      const { own, service } = yield* setup()
      const consumer = ConsumerName.make("simba-consumer-a\nb")
      const held = yield* own("one", consumer)
      assert.strictEqual(yield* service.release(held), "Released")
      const late = { ...requestOf(held, consumer), epoch: held.epoch }
      assert.strictEqual(yield* tagOf(service, late), "NotIdle")
    })))

  it.effect("a repeated request returns the same lease, even if another consumer has claimed the entry", () =>
    onFake(Effect.gen(function*() {
      const { announceMany, send, service } = yield* setup()
      const [request] = yield* announceMany(1)
      const [first] = yield* service.take([request!])
      yield* send("XCLAIM", input, group, "redis-consumer-go", "0", request!.entry, "JUSTID")
      const [second] = yield* service.take([{ ...request!, minIdle: Duration.seconds(9) }])
      assert.deepStrictEqual(second, first)
    })))

  it.effect("an entry just received by another consumer is refused, no matter how often it has failed", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one", b)
      for (let attempt = 1; attempt <= 3; attempt++) yield* service.fail(held, { attempt })
      yield* send("DEL", ...Object.values(keysOf(held)))
      assert.strictEqual(yield* tagOf(service, requestOf(held, a, Duration.seconds(2))), "NotIdle")
      assert.strictEqual(yield* send("XLEN", StreamKeys.deadLetters(name)), 0)
    })))
})

describe("renewing", () => {
  it.effect("claims all entries with one command, without counting deliveries, and records busy handlers", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service, xpending } = yield* setup()
      const all = yield* Effect.forEach(["one", "two", "three"], (label) => own(label))
      const claims = Effect.map(
        send<string>("INFO", "commandstats"),
        (text) => Number(/xclaim:calls=(\d+)/.exec(text)![1])
      )
      const [before, pending] = [yield* claims, yield* xpending]
      yield* TestClock.adjust("1 second")
      const renewed = yield* service.renew(all.map((held) => ({ ...held, isBusy: true })), lease)
      assert.deepStrictEqual(renewed.map(({ _tag }) => _tag), ["Renewed", "Renewed", "Renewed"])
      assert.strictEqual((yield* claims) - before, 1)
      const after = yield* xpending
      assert.deepStrictEqual(
        after.map(([entry, , idle, deliveries]) => [entry, idle, deliveries]),
        pending.map(([entry, , , deliveries]) => [entry, 0, deliveries])
      )
      for (const { consumer, entry, epoch } of all) {
        assert.strictEqual(yield* send("HGET", StreamKeys.failures(name), `${entry}:busy`), `${consumer}@@${epoch}`)
      }
    })))

  it.effect("fails if the server refuses XCLAIM, because other members would take idle entries", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* send("ACL", "SETUSER", "default", "-xclaim")
      const error = yield* Effect.flip(service.renew([held], lease))
      yield* send("ACL", "SETUSER", "default", "+xclaim")
      assert.match(String((error as { readonly cause: unknown }).cause), /NOPERM|can't run this command/)
    })))
})

describe("removing a consumer", () => {
  it.effect("succeeds without a group or a load-balancer stream", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      assert.isTrue(yield* service.removeConsumer(a))
      yield* send("XGROUP", "DESTROY", input, group)
      assert.isTrue(yield* service.removeConsumer(a))
      yield* send("DEL", input)
      assert.isTrue(yield* service.removeConsumer(a))
    })))

  it.effect("happens after ten minutes of silence, not a millisecond sooner", () =>
    onFake(Effect.gen(function*() {
      const { own, service } = yield* setup()
      yield* service.done(yield* own("one"))
      const reap = Effect.map(service.reap(Duration.minutes(10)), ({ consumers }) => consumers)
      yield* TestClock.adjust(599_999)
      assert.strictEqual(yield* reap, 0)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* reap, 1)
    })))

  it.effect("extends the expiry of the tables of announcements and failures only if there are announcements", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* service.fail(held)
      const keys = [StreamKeys.announced(name), StreamKeys.failures(name)]
      const left = Effect.forEach(keys, (key) => send<number>("PTTL", key))
      const shorten = Effect.forEach(keys, (key) => send("PEXPIRE", key, "9000"), { discard: true })
      yield* shorten
      yield* service.reap(Duration.days(1))
      assert.deepStrictEqual(yield* left, [7 * 86_400_000, 7 * 86_400_000])
      yield* send("XTRIM", input, "MAXLEN", "0")
      yield* send("HSET", keys[0]!, "other", "x")
      yield* send("HSET", keys[1]!, "other", "x")
      yield* shorten
      yield* service.reap(Duration.days(1))
      for (const millis of yield* left) assert.isAtMost(millis, 9000)
    })))
})

describe("hand-overs", () => {
  it.effect("extend the expiry of the table of failures when they are adopted", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const to = { consumer: b, session: "s00000000001" }
      yield* service.handOver(held, to, Duration.seconds(2))
      yield* send("PEXPIRE", StreamKeys.failures(name), "1000")
      assert.lengthOf(yield* service.handedOver(b, to.session), 1)
      assert.strictEqual(yield* send("PTTL", StreamKeys.failures(name)), 7 * 86_400_000)
    })))
})

it.effect("a failure after progress starts a new streak", () =>
  onFake(Effect.gen(function*() {
    const { own, service } = yield* setup()
    const held = yield* own("one")
    yield* service.fail(held)
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(yield* service.fail(held), { count: 2, period: Duration.seconds(1) })
    assert.deepStrictEqual(yield* service.fail(held, { hasProgressed: true }), { count: 1, period: Duration.zero })
  })))

it.effect("an operator's late seek changes nothing if the owner or the checkpoint has changed", () =>
  onFake(Effect.gen(function*() {
    const { own, service } = yield* setup()
    const held = yield* own("one")
    const seek = call(yield* Redis, "seek", scripts.seekCheckpoint)
    const ask = (leaseValue: string, from: string) =>
      seek({
        streamLease: StreamKeys.streamLease(held.stream),
        checkpoint: StreamKeys.checkpoint(held.stream),
        leaseValue,
        entry: "",
        force: "1",
        from,
        id: id("0-0"),
        offset: "",
        retention: 1000
      })
    assert.strictEqual(yield* ask("", ""), "Changed")
    assert.strictEqual(yield* service.commit(held, id("5-0")), "Committed")
    // The checkpoint may have moved if the request names the owner
    assert.strictEqual(yield* ask(StreamKeys.streamValue(held), ""), "Moved")
    assert.strictEqual(yield* ask(StreamKeys.streamValue(held), ""), "Changed")
    assert.strictEqual(yield* ask("", "5-0"), "Changed")
    assert.strictEqual(yield* ask("", "0-0"), "Moved")
  })))

it.effect("an operator's seek replaces a malformed checkpoint", () =>
  onFake(Effect.gen(function*() {
    const { send, service } = yield* setup()
    const stream = streamOf("one")
    for (const text of ["no id", "@@", "", "4-0@@@@4@@more"]) {
      yield* send("SET", StreamKeys.checkpoint(stream), text)
      assert.strictEqual(yield* service.seek(stream, { id: id("2-0"), offset: undefined }), "Moved", text)
      assert.strictEqual(yield* send("GET", StreamKeys.checkpoint(stream)), "2-0")
    }
  })))

it.effect("an operator's forced seek replaces a lease that is not text", () =>
  onFake(Effect.gen(function*() {
    const { send, service } = yield* setup()
    const stream = streamOf("one")
    const streamLease = StreamKeys.streamLease(stream)
    yield* send("EVAL", "return redis.call('SET', KEYS[1], 'other\\255')", "1", streamLease)
    const seek = (force: boolean) => service.seek(stream, { id: id("2-0"), offset: undefined }, { force })
    assert.strictEqual(yield* seek(false), "Owned")
    assert.strictEqual(yield* seek(true), "Moved")
    assert.strictEqual(yield* send("EXISTS", streamLease), 0)
  })))

describe("a malformed checkpoint", () => {
  it.effect("makes `done` and seeks fail before they change anything", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const checkpoint = StreamKeys.checkpoint(held.stream)
      yield* send("SET", checkpoint, "no id")
      assert.strictEqual((yield* Effect.flip(service.done(held)))._tag, "BackendError")
      assert.isTrue(Option.isSome(yield* service.find(held.stream)))
      yield* send("DEL", checkpoint)
      yield* send("SADD", checkpoint, "x")
      const seek = service.seek(held.stream, { id: id("1-0"), offset: undefined }, { force: true })
      assert.strictEqual((yield* Effect.flip(seek))._tag, "BackendError")
      yield* send("DEL", checkpoint)
      assert.strictEqual(yield* service.done(held), "Done")
    })))

  it.effect("fails only its own data stream's lag", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      const [one, two] = [streamOf("one"), streamOf("two")]
      for (const stream of [one, two]) yield* fill(stream, 1, 3)
      const lags = Effect.forEach([one, two], (stream) => Effect.option(service.lag(stream)), {
        concurrency: "unbounded"
      }).pipe(Effect.map((lags) => lags.map(Option.map(({ messages }) => messages))))
      const checkpoint = StreamKeys.checkpoint(one)
      yield* send("SET", checkpoint, "no id")
      assert.deepStrictEqual(yield* lags, [Option.none(), Option.some(3)])
      yield* send("DEL", checkpoint)
      yield* send("SADD", checkpoint, "x")
      assert.deepStrictEqual(yield* lags, [Option.none(), Option.some(3)])
      yield* send("DEL", checkpoint)
      assert.deepStrictEqual(yield* lags, [Option.some(3), Option.some(3)])
    })))
})

describe("what scripts write", () => {
  it.effect("a commit writes no more parts of a checkpoint than necessary", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const textAfter = (...commit: Parameters<Service["commit"]> extends [unknown, ...infer Rest] ? Rest : never) =>
        Effect.andThen(service.commit(held, ...commit), send("GET", StreamKeys.checkpoint(held.stream)))
      assert.strictEqual(yield* textAfter(id("1-0")), "1-0")
      assert.strictEqual(yield* textAfter(id("2-0"), false, 7), "2-0@@@@7")
      assert.strictEqual(yield* textAfter(id("3-0"), true), `3-0@@${held.entry}`)
      assert.strictEqual(yield* textAfter(id("4-0"), true, 8), `4-0@@${held.entry}@@8`)
    })))

  it.effect("tables have an expiry from their first use", () =>
    onFake(Effect.gen(function*() {
      const { own, send } = yield* setup()
      yield* own("one")
      for (const key of [StreamKeys.announced(name), StreamKeys.failures(name)]) {
        assert.strictEqual(yield* send("PTTL", key), 7 * 86_400_000)
      }
    })))

  it.effect("tokens come from the server's clock, in microseconds", () =>
    onFake(Effect.gen(function*() {
      const { own, send } = yield* setup()
      const [seconds, micros] = (yield* send<readonly [string, string]>("TIME")).map(Number) as [number, number]
      const { token } = yield* own("one")
      assert.isAtLeast(token, seconds * 1e6 + micros)
      assert.isBelow(token, (seconds + 1) * 1e6)
    })))

  it.effect("if a fence cannot be a token, takes succeed with tokens from the clock", () =>
    onFake(Effect.gen(function*() {
      const { own, send } = yield* setup()
      const { token } = yield* own("one")
      for (const text of ["x", "nan", "inf", "-inf", "9007199254740991", "9".repeat(20)]) {
        yield* send("SET", StreamKeys.fence(streamOf(text)), text)
        const next = (yield* own(text)).token
        assert.isTrue(token < next && next < token + 1e6, text)
      }
      // The largest possible fence
      yield* send("SET", StreamKeys.fence(streamOf("largest")), String(Number.MAX_SAFE_INTEGER - 1))
      assert.strictEqual((yield* own("largest")).token, Number.MAX_SAFE_INTEGER)
    })))

  it.effect("a deleted entry is not dead-lettered, and its data stream can be announced again", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* send("XDEL", input, held.entry)
      assert.isTrue((yield* service.announce([{ stream: held.stream, info: {} }]))[0]!.isNew)
      assert.strictEqual(yield* service.deadLetter(held, "why"), "DeadLettered")
      assert.strictEqual(yield* send("XLEN", StreamKeys.deadLetters(name)), 0)
    })))
})

describe("what scripts read", () => {
  it.effect("an extent includes the data stream's last deleted id", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      const stream = streamOf("one")
      yield* fill(stream, 1, 5)
      yield* send("XDEL", stream, "3-0")
      assert.deepStrictEqual(Option.getOrThrow(yield* service.extent(stream)), {
        length: 4,
        last: id("5-0"),
        first: id("1-0"),
        added: 5,
        lastDeleted: id("3-0")
      })
    })))

  it.effect("groups and consumers are recognized by name, even if the name is also the name of a field", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* send("XACK", input, group, held.entry)
      // This group comes first alphabetically and has received nothing
      yield* send("XGROUP", "CREATE", input, "another", "0")
      assert.isTrue((yield* service.announce([{ stream: held.stream, info: {} }]))[0]!.isNew)
      yield* send("XGROUP", "CREATECONSUMER", input, group, "pending")
      const { consumers } = yield* service.inspect
      assert.deepInclude(consumers.map(({ name, pending }) => [name, pending]), ["pending", 0])
    })))

  it.effect("a streak of failures lasts until a pause of the given length, even one millisecond", () =>
    onFake(Effect.gen(function*() {
      const { own, service } = yield* setup()
      const held = yield* own("one")
      const fail = (streakEndsAfter: number) =>
        Effect.map(
          service.fail(held, { streakEndsAfter: Duration.millis(streakEndsAfter) }),
          (failed) => failed === "NotOwner" ? failed : failed.count
        )
      assert.strictEqual(yield* fail(1), 1)
      assert.strictEqual(yield* fail(1), 2)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* fail(1), 1)
      // Zero means that no pause ends the streak
      yield* TestClock.adjust(1000)
      assert.strictEqual(yield* fail(0), 2)
    })))

  it.effect("a key of the wrong type fails only its own item in a take, but a server error fails the whole request", () =>
    onFake(Effect.gen(function*() {
      const { announceMany, own, send, service } = yield* setup()
      const [request] = yield* announceMany(1)
      yield* send("RPUSH", StreamKeys.fence(request!.stream), "x")
      const [result] = yield* service.take([request!])
      assert(result?._tag === "Failed")
      assert.match(result.error.message, /WRONGTYPE/)
      const held = yield* own("held")
      yield* send("ACL", "SETUSER", "default", "-xclaim")
      const error = yield* Effect.flip(service.release(held))
      yield* send("ACL", "SETUSER", "default", "+xclaim")
      assert.match(String((error as { readonly cause: unknown }).cause), /NOPERM|can't run this command/)
      yield* send("SET", input, "text")
      assert.match((yield* Effect.flip(service.removeConsumer(a))).message, /WRONGTYPE/)
    })))
})

describe("trimming", () => {
  it.effect("removes nothing if the checkpoint belongs to an earlier data stream with the same name", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      const stream = streamOf("one")
      yield* fill(stream, 1, 3)
      for (const [checkpoint, removed] of [["9-0", 0], ["9-0@@@@2", 0], ["2-0@@@@50", 0], ["2-0@@@@2", 2]] as const) {
        yield* send("SET", StreamKeys.checkpoint(stream), checkpoint)
        assert.strictEqual(yield* service.trim(stream, Duration.zero), removed, checkpoint)
      }
    })))

  it.effect("removes all processed messages, even if one command cannot remove them all", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      const stream = streamOf("one")
      for (const setting of ["stream-node-max-entries", "stream-node-max-bytes"]) {
        yield* send("CONFIG", "SET", setting, "0")
      }
      yield* fill(stream, 1, 10_001)
      yield* send("SET", StreamKeys.checkpoint(stream), "10001-0")
      assert.strictEqual(yield* service.trim(stream, Duration.zero), 10_001)
      assert.strictEqual(yield* send("XLEN", stream), 0)
    })))

  it.effect("removes even the last message, but no message younger than `keep`", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      const stream = streamOf("one")
      for (const [message, keep, removed] of [["*", 0, 1], ["*", 1, 0], ["0-5", 1e14, 0]] as const) {
        yield* send("DEL", stream)
        const last = yield* send<string>("XADD", stream, message, "n", "1")
        yield* send("SET", StreamKeys.checkpoint(stream), last)
        assert.strictEqual(yield* service.trim(stream, Duration.millis(keep)), removed, `${message} ${keep}`)
      }
    })))
})
