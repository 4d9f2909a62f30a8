/** Edge cases of single scripts of data streams: many messages, deleted letters, keys that would expire. */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Option } from "effect"
import { Redis } from "effect/persistence/Redis"
import * as extents from "../../src/streams/internal/extents.ts"
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import { a, input, lease, name, onFake, setup, streamOf } from "../support/streamScriptSetup.ts"

const id = (text: string) => EntryId.make(text)

/** Messages `1-0` and so on. */
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
  it.effect("thousands are counted by pages, between any two", () =>
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

  it.effect("it starts over if messages are deleted meanwhile, and gives up if that continues", () =>
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
      // Messages that are added meanwhile are not counted: the last id is that of the first page
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
      // Before Redis 7.0
      const uncounted = [10, "10-0", "1-0", "", "", 9, ""] as never
      assert.deepStrictEqual((yield* counting(uncounted)).counted, [undefined, undefined])
    }))

  it.effect("the lag by the counters is exact beyond a thousand, and counted one by one it is not", () =>
    onFake(Effect.gen(function*() {
      const { own, service } = yield* setup()
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
    })))
})

describe("redriving", () => {
  it.effect("a message leaves no trace among the letters, and a deleted one is not redriven", () =>
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

  it.effect("an announcement is recognized again, with its fields, and a deleted one is not redriven", () =>
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
      // The same announcement is no second one
      const [repeated] = yield* service.announce([{ stream: ownership.stream, info: {} }])
      assert.deepInclude(repeated, { entry: id(redriven![0]), isNew: false })
    })))
})

describe("keys that many share", () => {
  it.effect("expire later after each use, and never sooner", () =>
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
