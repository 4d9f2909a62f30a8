/** Tests where a reader starts: without a checkpoint, at a start option, and at the application's own position. */
import { StreamError, StreamMessages } from "@effect-simba/core/streams"
import type { StreamLease } from "@effect-simba/core/streams/StreamLease"
import { EntryId } from "@effect-simba/core/streams/StreamName"
import type { Extent } from "@effect-simba/core/streams/StreamState"
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Exit, Fiber, type Layer, Logger, Option, Schema } from "effect"
import { TestClock } from "effect/testing"
import { resolve, type StartPosition } from "../../src/streams/internal/startPosition.ts"
import { recorded } from "../support/recordedLease.ts"
import { message, ScriptedLease } from "../support/scriptedLease.ts"

const id = (text: string) => EntryId.make(text)

/** A stream of 30 messages, of which the first 10 were trimmed. */
const trimmed = {
  length: 20,
  last: id("3000-5"),
  first: id("1000-0"),
  added: 30,
  lastDeleted: undefined
}

const at = (position: StartPosition, extent: Option.Option<Extent> = Option.some(trimmed)): ReadonlyArray<unknown> => {
  const { id, offset } = resolve(position, extent)
  return [id, offset]
}

describe("start positions", () => {
  it("`beginning` is before the first remaining message, and `now` is the end", () => {
    assert.deepStrictEqual(at("beginning"), ["0-0", 10])
    assert.deepStrictEqual(at("now"), ["3000-5", 30])
    assert.deepStrictEqual(at("now", Option.none()), ["0-0", 0])
    assert.deepStrictEqual(at("beginning", Option.some({ ...trimmed, length: 0, first: undefined })), ["0-0", 30])
  })

  it("an id or a time means the position before the first message at or after it", () => {
    assert.deepStrictEqual(at("2000-3"), ["2000-2", undefined])
    assert.deepStrictEqual(at("2000-0"), ["1999-18446744073709551615", undefined])
    assert.deepStrictEqual(at(DateTime.makeUnsafe(2000)), ["1999-18446744073709551615", undefined])
    const fraction = DateTime.subtractDuration(DateTime.makeUnsafe(2000), "500 micros")
    assert.deepStrictEqual(at(fraction), ["1999-18446744073709551615", undefined])
    // The offset is unknown, because messages after these positions were deleted and may be missing
    assert.deepStrictEqual(at("0-0"), ["0-0", undefined])
    assert.deepStrictEqual(at(DateTime.makeUnsafe(500)), ["499-18446744073709551615", undefined])
    const whole = Option.some({ ...trimmed, added: trimmed.length })
    assert.deepStrictEqual(at(DateTime.makeUnsafe(500), whole), ["499-18446744073709551615", 0])
    assert.deepStrictEqual(at(DateTime.makeUnsafe(1500), whole), ["1499-18446744073709551615", undefined])
    // The offset is unknown, because messages after the first remaining one were deleted
    const holey = Option.some({ ...trimmed, lastDeleted: id("2000-0") })
    assert.deepStrictEqual(at("beginning", holey), ["0-0", undefined])
    assert.deepStrictEqual(at("beginning", Option.some({ ...trimmed, lastDeleted: id("900-0") })), ["0-0", 10])
  })

  it("starting at the first message of an untrimmed data stream counts that message", () => {
    const whole = Option.some({ ...trimmed, added: trimmed.length })
    assert.deepStrictEqual(at("1000-0", whole), ["999-18446744073709551615", 0])
    // Reading starts after the first message, so an offset of 0 would report that message as missing
    assert.deepStrictEqual(at("1000-1", whole), ["1000-0", undefined])
  })

  it("a time up to 1970 means the position before all messages", () => {
    for (const millis of [0, -1]) assert.strictEqual(at(DateTime.makeUnsafe(millis))[0], "0-0")
  })

  it("a position is never beyond the end", () => {
    for (const position of ["3000-6", "9000-0", DateTime.makeUnsafe(9000)]) {
      assert.deepStrictEqual(at(position), ["3000-5", 30])
    }
    assert.deepStrictEqual(at("9000-0", Option.none()), ["0-0", 0])
  })
})

const Numbered = Schema.Struct({ n: Schema.FiniteFromString })

const lease = (...ns: ReadonlyArray<number>) => {
  const lease = new ScriptedLease()
  lease.add(...ns.map((n) => message(`${n}-0`, { n: String(n) })))
  return lease
}

/** Processes messages until no more arrive. Returns the received numbers and the gaps. */
const processed = Effect.fnUntraced(function*(
  lease: ScriptedLease,
  options: StreamMessages.ProcessOptions<typeof Numbered.Type>,
  meanwhile: Effect.Effect<void> = Effect.void,
  layer: Layer.Layer<StreamLease> = lease.layer
) {
  const observed: Array<number> = []
  const gaps: Array<string> = []
  const fiber = yield* StreamMessages.process(Numbered, ({ value }) => Effect.sync(() => observed.push(value.n)), {
    onGap: ({ after, until }) => Effect.sync(() => gaps.push(`${after} ${until}`)),
    ...options
  }).pipe(Effect.provide(layer), Effect.forkChild({ startImmediately: true }))
  yield* TestClock.adjust("1 second")
  yield* meanwhile
  yield* TestClock.adjust("1 minute")
  const exit = fiber.pollUnsafe()
  yield* Fiber.interrupt(fiber)
  return { observed, gaps, isDone: exit !== undefined && Exit.isSuccess(exit), exit }
})

describe("a data stream without a checkpoint", () => {
  it.effect("is read from the beginning, from now, from an id or from a time by its first owner", () =>
    Effect.gen(function*() {
      const cases: ReadonlyArray<readonly [StartPosition | undefined, ReadonlyArray<number>]> = [
        [undefined, [1, 2, 3, 4]],
        ["beginning", [1, 2, 3, 4]],
        ["now", [4]],
        ["2-0", [2, 3, 4]],
        [DateTime.makeUnsafe(3), [3, 4]]
      ]
      for (const [from, expected] of cases) {
        const one = lease(1, 2, 3)
        const { gaps, observed } = yield* processed(
          one,
          { from },
          Effect.sync(() => one.add(message("4-0", { n: "4" })))
        )
        assert.deepStrictEqual(observed, expected)
        assert.deepStrictEqual(gaps, [])
      }
    }))

  it.effect("gets a checkpoint at the start position, so a successor reads only newer messages and does not report a gap", () =>
    Effect.gen(function*() {
      const one = lease(1, 2, 3)
      one.trim(2)
      assert.deepStrictEqual((yield* processed(one, { from: "now" })).observed, [])
      assert.deepStrictEqual([one.checkpoint, one.offset], ["3-0", 3])
      one.add(message("4-0", { n: "4" }))
      assert.deepInclude(yield* processed(one, { from: "now" }), { observed: [4], gaps: [] })
      // The checkpoint takes precedence over the option
      assert.deepInclude(yield* processed(one, { from: "1-0" }), { observed: [], gaps: [] })
    }))
})

it.effect("starting at a deleted message reports a gap, unlike starting at the beginning", () =>
  Effect.gen(function*() {
    for (const [to, expected] of [["beginning", []], ["2-0", ["1-18446744073709551615 4-0"]]] as const) {
      const one = lease(1, 2, 3, 4, 5)
      one.trim(2)
      one.checkpoint = resolve(to, one.extent).id
      one.offset = resolve(to, one.extent).offset
      assert.deepInclude(yield* processed(one, {}), { observed: [4, 5], gaps: [...expected] })
    }
  }))

it.effect("where the first owner starts is logged once", () =>
  Effect.gen(function*() {
    const one = lease(1, 2, 3)
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
    yield* Effect.provide(processed(one, { from: "now" }), Logger.layer([logger]))
    yield* Effect.provide(processed(one, { from: "now" }), Logger.layer([logger]))
    assert.deepStrictEqual(lines, ["There is no checkpoint; reading starts after 3-0"])
  }))

describe("positions that are kept by the handler", () => {
  it.effect("a position takes precedence over an earlier or later checkpoint, and without a position, reading starts at the first message", () =>
    Effect.gen(function*() {
      for (
        const [after, expected] of [[Option.some("1-0"), [2, 3, 4]], [Option.some("3-0"), [4]], [Option.none(), [
          1,
          2,
          3,
          4
        ]]] as const
      ) {
        const one = lease(1, 2, 3, 4)
        one.checkpoint = id("2-0")
        one.offset = 2
        const { gaps, observed } = yield* processed(one, { after })
        assert.deepStrictEqual<ReadonlyArray<number>>(observed, expected)
        assert.deepStrictEqual(gaps, [])
        assert.strictEqual(one.checkpoint, "4-0")
      }
    }))

  it.effect("without a position, an earlier stored start is used", () =>
    Effect.gen(function*() {
      const one = lease(1, 2)
      assert.deepStrictEqual((yield* processed(one, { after: Option.none(), from: "now" })).observed, [])
      one.add(message("3-0", { n: "3" }))
      assert.deepStrictEqual((yield* processed(one, { after: Option.none(), from: "now" })).observed, [3])
    }))

  it.effect("gaps are reported, undecodable messages are dead-lettered, and a revoked handler yields", () =>
    Effect.gen(function*() {
      const one = lease(1, 2, 3, 4)
      one.trim(2)
      one.add(message("5-0", { other: "5" }), message("6-0", { n: "6" }))
      const { exit, gaps, observed } = yield* processed(
        one,
        { after: Option.some("1-0") },
        Effect.sync(() => one.askBack())
      )
      assert.deepStrictEqual([observed, gaps], [[3, 4, 6], ["1-0 3-0"]])
      assert.deepStrictEqual(one.dead.map(([id]) => id), ["5-0"])
      const error = exit !== undefined && Exit.isFailure(exit) ? exit.cause.reasons[0] : undefined
      assert.isTrue(error?._tag === "Fail" && error.error instanceof StreamError.StreamYielded)
    }))

  it.effect("a reader processes the messages after its position, or none if its position is the end", () =>
    Effect.gen(function*() {
      const cases = [[undefined, [1, 2, 0]], ["1-0", [2, 0]], ["3-0", []]] as const
      for (const [after, expected] of cases) {
        const one = lease(1, 2)
        one.add(message("3-0", { n: "0" }))
        one.checkpoint = id("3-0")
        one.end = "Ended"
        const { isDone, observed } = yield* processed(one, {
          after: Option.fromUndefinedOr(after),
          until: ({ value }) => value.n === 0
        })
        assert.deepStrictEqual([observed, isDone], [expected, true])
      }
    }))

  it.effect("a data stream that has ended and was deleted has nothing to read, at any position", () =>
    Effect.gen(function*() {
      for (const after of [Option.none(), Option.some("1-0"), Option.some("3-0")]) {
        const one = new ScriptedLease()
        one.checkpoint = id("3-0")
        one.end = "Ended"
        const { isDone, observed } = yield* processed(one, { after, until: ({ value }) => value.n === 0 })
        assert.deepStrictEqual([observed, isDone], [[], true])
      }
    }))

  it.effect("a position at the last message ends the data stream, even if the commit for that message was lost", () =>
    Effect.gen(function*() {
      const one = lease(1, 2)
      one.add(message("3-0", { n: "0" }))
      one.checkpoint = id("2-0")
      const options = { after: Option.some("3-0"), until: ({ value }: { value: { n: number } }) => value.n === 0 }
      assert.deepInclude(yield* processed(one, options), { observed: [], isDone: true })
      assert.deepStrictEqual([one.checkpoint, one.end], ["3-0", "Ended"])
      // At any other position, even where a message was deleted, the handler waits for more messages
      for (const left of [2, 1]) {
        const other = lease(1, 2)
        other.trim(left)
        const { isDone, observed } = yield* processed(
          other,
          { ...options, after: Option.some("1-0") },
          Effect.sync(() => other.add(message("3-0", { n: "0" })))
        )
        assert.deepStrictEqual([observed, isDone], [[2, 0], true])
        // The position itself is not committed
        assert.deepStrictEqual(other.calls.filter((call) => call.startsWith("commit")), ["commit 2-0", "commit 3-0"])
      }
    }))

  it.effect("a position at the last message ends the data stream, even if all earlier messages were deleted and counts get no reply", () =>
    Effect.gen(function*() {
      const one = lease(1, 2)
      one.add(message("3-0", { n: "0" }))
      one.trim(1)
      one.checkpoint = id("2-0")
      one.offset = 2
      one.isCountSilent = true
      const options = { after: Option.some("3-0"), until: ({ value }: { value: { n: number } }) => value.n === 0 }
      assert.deepInclude(yield* processed(one, options), { observed: [], isDone: true })
    }))

  it.effect("a position at the last message ends the data stream, however slow the backend is", () =>
    Effect.gen(function*() {
      for (const left of [3, 1]) {
        const one = lease(1, 2)
        one.add(message("3-0", { n: "0" }))
        one.trim(left)
        if (left === 1) one.added = undefined
        const { layer } = recorded(one, ({ messagesAfter }) => ({
          messagesAfter: (after, count) => Effect.delay(messagesAfter(after, count), "5 seconds")
        }))
        const options = { after: Option.some("3-0"), until: ({ value }: { value: { n: number } }) => value.n === 0 }
        assert.deepInclude(yield* processed(one, options, Effect.void, layer), { observed: [], isDone: true })
      }
    }))

  it.effect("a handler does not read the message at its position if that is before the first or after the last remaining message", () =>
    Effect.gen(function*() {
      const until = ({ value }: { readonly value: { readonly n: number } }) => value.n === 0
      for (const [after, left] of [["1-0", 2], ["5-0", 2], ["3-0", 0]] as const) {
        const one = lease(1, 2, 3)
        one.trim(left)
        const { layer, requests } = recorded(one)
        const { exit } = yield* processed(one, { after: Option.some(after), until }, Effect.void, layer)
        assert.isUndefined(exit)
        assert.deepStrictEqual(requests.filter((request) => request.endsWith(" 1")), [])
      }
    }))

  it.effect("if the position is at the checkpoint, the reader does not need a count, and reads one message to check whether it is the last", () =>
    Effect.gen(function*() {
      const one = lease(1, 2, 3)
      one.checkpoint = id("3-0")
      one.offset = 3
      const { layer, requests } = recorded(one)
      const until = ({ value }: { readonly value: { readonly n: number } }) => value.n === 0
      yield* processed(one, { after: Option.some("3-0"), until }, Effect.void, layer)
      assert.deepStrictEqual(requests.slice(0, 4), ["extent", "read 2-18446744073709551615 1", "extent", "read 3-0 16"])
    }))

  it.effect("a handler that starts before the checkpoint receives a gap for messages that were deleted after it", () =>
    Effect.gen(function*() {
      const one = lease(1, 2, 3, 4, 5, 6)
      one.checkpoint = id("3-0")
      one.offset = 3
      // 4 and 5 are deleted
      one.stream.splice(3, 2)
      const { gaps, observed } = yield* processed(one, { after: Option.some("1-0") })
      assert.deepStrictEqual([observed, gaps.length], [[2, 3, 6], 1])
    }))

  it.effect("invalid positions and starts are refused", () =>
    Effect.gen(function*() {
      const one = lease(1)
      for (const options of [{ after: Option.some("five") }, { from: "yesterday" }]) {
        const error = yield* StreamMessages.process(Numbered, () => Effect.void, options).pipe(
          Effect.provide(one.layer),
          Effect.flip
        )
        assert.deepInclude(error, { _tag: "InvalidConfig", option: Object.keys(options)[0]! })
      }
      assert.deepStrictEqual(one.calls, [])
    }))
})
