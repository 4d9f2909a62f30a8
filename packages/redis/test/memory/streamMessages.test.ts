/** Data-stream texts on the wire: announcements, checkpoints, signals and replies to reads. */
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import { ServiceName } from "@effect-simba/core/streams/StreamStore"
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import * as StreamWire from "../../src/streams/internal/messages.ts"
import { Member } from "../../src/streams/internal/replies.ts"
import { refuses, roundTrips } from "../support/codecs.ts"

const reads = <T, E>(name: string, codec: Schema.Codec<T, E>, table: ReadonlyArray<readonly [unknown, unknown]>) =>
  it.each(table.map(([text, value]) => ({ text, value })))(`${name}: $text is $value`, ({ text, value }) => {
    assert.deepStrictEqual<unknown>(Result.getOrThrow(Schema.decodeUnknownResult(codec)(text)), value)
  })

const epoch = "abcdef012345.1a"

describe("signals", () => {
  roundTrips("signal", StreamWire.SignalMessage)
  reads("signal", StreamWire.SignalMessage, [
    ["released@@5-0@@a@@b", { _tag: "Released", entry: "5-0", stream: "a@@b" }],
    ["given@@abcdef012345", { _tag: "HandedOver", session: "abcdef012345" }]
  ])
  refuses("signal", StreamWire.SignalMessage, [
    "",
    "released",
    "released@@5-0",
    "released@@5@@a",
    "released@@5-0@@",
    "released@@5-0@@ ",
    "Released@@5-0@@a",
    "given@@",
    "given@@abc"
  ])
})

describe("checkpoints", () => {
  const id = "5-0"
  reads("checkpoint", StreamWire.Checkpoint, [
    ["5-0", { id, endedUnder: "", offset: "" }],
    ["5-0@@6-0", { id, endedUnder: "6-0", offset: "" }],
    ["5-0@@@@7", { id, endedUnder: "", offset: 7 }],
    ["5-0@@6-0@@7", { id, endedUnder: "6-0", offset: 7 }]
  ])
  it.each(["5-0", "5-0@@6-0", "5-0@@@@7", "5-0@@6-0@@7"])("%s is encoded to the same text", (text) => {
    const read = Result.getOrThrow(Schema.decodeResult(StreamWire.Checkpoint)(text))
    assert.strictEqual(Result.getOrThrow(Schema.encodeResult(StreamWire.Checkpoint)(read)), text)
  })
  refuses("checkpoint", StreamWire.Checkpoint, ["", "5", "@@6-0", "5-0@@x", "5-0@@6-0@@x", "5-0@@@@-1"])
})

describe("hand-overs", () => {
  roundTrips("hand-over", StreamWire.HandOver)
  reads("hand-over", StreamWire.HandOver, [
    [`abcdef012345@@${epoch}@@7@@5-0@@simba-consumer-a@@a@@b`, {
      session: "abcdef012345",
      epoch,
      token: 7,
      entry: "5-0",
      consumer: "simba-consumer-a",
      stream: "a@@b"
    }]
  ])
  refuses("hand-over", StreamWire.HandOver, [
    `abcdef012345@@${epoch}@@x@@5-0@@c@@s`,
    `abcdef012345@@${epoch}@@7@@5-0@@c`
  ])
})

describe("announcements", { tags: ["G2"] }, () => {
  reads("announcement", StreamWire.Announcement, [
    ["{\"DataStreamName\":\"s\",\"Info\":{\"a\":[1,null]}}", { stream: "s", info: { a: [1, null] } }],
    ["{\"DataStreamName\":\"s\",\"Info\":null}", { stream: "s", info: {} }],
    ["{\"DataStreamName\":\"s\"}", { stream: "s", info: {} }],
    ["{\"Other\":1,\"DataStreamName\":\"s\",\"Info\":{}}", { stream: "s", info: {} }],
    // redis-stream-client-go ignores the case of names
    ["{\"dataStreamName\":\"s\",\"INFO\":{\"Info\":1}}", { stream: "s", info: { Info: 1 } }]
  ])
  refuses("announcement", StreamWire.Announcement, [
    "",
    "null",
    "[]",
    "{",
    "{}",
    "{\"DataStreamName\":\"\"}",
    "{\"DataStreamName\":\" \"}",
    "{\"DataStreamName\":3}",
    "{\"DataStreamName\":\"s\",\"Info\":[]}",
    "{\"DataStreamName\":\"s\",\"Info\":\"x\"}",
    "{\"DataStreamName\":\"a<MUTEX_KEY_SEP>b\"}"
  ])
  it.prop("announcements are read", [StreamName, Schema.Record(Schema.String, Schema.String)], ([stream, info]) => {
    const text = Result.getOrThrow(Schema.encodeResult(StreamWire.Announcement)({ stream, info }))
    const read = Result.getOrThrow(Schema.decodeResult(StreamWire.Announcement)(text))
    assert.deepStrictEqual(JSON.stringify(read), JSON.stringify({ stream, info: JSON.parse(JSON.stringify(info)) }))
  })
})

describe("replies to reads", () => {
  const rows = [["5-0", ["a", "1", "a", "2"]]]
  const read = [["s", [["5-0", [["a", "1"], ["a", "2"]]]]]]
  reads("a read", StreamWire.ReadReply, [
    [null, null],
    [[], []],
    [[["s", rows]], read],
    [["s", rows], read],
    [["s", rows, "t", rows], [...read, ["t", read[0]![1]]]],
    [{ s: rows }, read],
    [new Map([["s", rows]]), read]
  ])
  refuses("a read", StreamWire.ReadReply, ["", 5, ["s"], [["s"]], [["s", [["5", []]]]], [["s", [["5-0", ["a"]]]]]])
  roundTrips("fields", StreamWire.Fields)
})

describe("members", () => {
  roundTrips("member", Member)
  reads("member", Member, [
    ["a@@abcdef012345@@1@@2", { consumer: "a", session: "abcdef012345", capacity: 1, owned: 2 }]
  ])
  refuses("member", Member, [
    "a@@1@@2",
    "a@@s@@1@@2",
    "a@@abcdef012345@@1@@-2",
    "a@@abcdef012345@@x@@2",
    "@@abcdef012345@@1@@2"
  ])
})

describe("keys", () => {
  const service = ServiceName.make("{svc}:orders")
  const stream = StreamName.make("{svc}:s")

  it("match redis-stream-client-go's keys where both libraries use a key", () => {
    assert.strictEqual(StreamKeys.input(service), "{svc}:orders-input")
    assert.strictEqual(StreamKeys.group(service), "{svc}:orders-group")
    assert.strictEqual(StreamKeys.entryLease(stream, EntryId.make("5-0")), "{svc}:s<MUTEX_KEY_SEP>5-0")
    assert.strictEqual(StreamKeys.expiredChannel(3), "__keyevent@3__:expired")
  })

  it("differ from one another", () => {
    const all = [
      StreamKeys.input(service),
      StreamKeys.deadLetters(service),
      StreamKeys.failures(service),
      StreamKeys.announced(service),
      StreamKeys.members(service),
      StreamKeys.handOvers(service),
      StreamKeys.streamLease(stream),
      StreamKeys.fence(stream),
      StreamKeys.checkpoint(stream),
      StreamKeys.deadMessages(stream)
    ]
    assert.strictEqual(new Set(all).size, all.length)
  })

  it.prop(
    "a lease key reveals its data stream and its entry",
    [StreamName, EntryId],
    ([stream, entry]) => {
      assert.deepStrictEqual(StreamKeys.ofEntryLease(StreamKeys.entryLease(stream, entry)), { stream, entry })
    },
    { tags: ["G30"] }
  )

  it.each([
    "",
    "s",
    "<MUTEX_KEY_SEP>5-0",
    "s<MUTEX_KEY_SEP>",
    "s<MUTEX_KEY_SEP>5",
    "mutex:s",
    "a<MUTEX_KEY_SEP>b<MUTEX_KEY_SEP>5-0"
  ])(
    "%s is not the key of an entry's lease",
    { tags: ["G30"] },
    (key) => assert.isUndefined(StreamKeys.ofEntryLease(key))
  )
})
