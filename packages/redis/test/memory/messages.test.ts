/** Texts on the wire: keys, channels, messages and script replies. Malformed texts are refused and reported. */
import { FencingToken } from "@effect-simba/core/FencingToken"
import { LeaseId, MutexName } from "@effect-simba/core/MutexName"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { ProtocolError } from "@effect-simba/core/SimbaError"
import { type Notice, Subscriber } from "@effect-simba/core/Subscriber"
import { RedisMutex } from "@effect-simba/redis"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Equal, Exit, Layer, Queue, Result, Schema } from "effect"
import * as Redis from "effect/persistence/Redis"
import * as RedisKeys from "../../src/internal/mutex/keys.ts"
import * as RedisWire from "../../src/internal/mutex/messages.ts"
import { OwnershipText } from "../../src/internal/mutex/ownership.ts"
import * as replies from "../../src/internal/mutex/replies.ts"
import { renewLeases } from "../../src/internal/mutex/scripts.generated.ts"
import { refuses, roundTrips } from "../support/codecs.ts"
import { capturingLogs } from "../support/harness.ts"

const mutex = MutexName.make("jobs")
const id = LeaseId.make("7-abcdef012345:4711@host")

const reads = <T, E>(name: string, codec: Schema.Codec<T, E>, table: ReadonlyArray<readonly [E, T]>) =>
  it.each(table.map(([text, value]) => ({ text, value })))(`${name}: $text is $value`, ({ text, value }) => {
    assert.isTrue(Equal.equals(Result.getOrThrow(Schema.decodeUnknownResult(codec)(text)), value))
    assert.deepStrictEqual(Result.getOrThrow(Schema.encodeResult(codec)(value as T)), text)
  })

const badOwnerships = [
  "",
  "@",
  "x",
  "x@5",
  "x@@",
  "@@5",
  "@@-1",
  "@@@",
  "@@@@",
  "x@@-2",
  "x@@--1",
  "x@@1.5",
  "x@@ 5",
  "x@@5 ",
  "x@@+5",
  "x@@1e3",
  "x@@05",
  "x@@0x10",
  "x@@five",
  "x@@５",
  "x@@NaN",
  "x@@Infinity",
  "x@@1000000000000000",
  "@x@@5",
  "x@@@5",
  "a@@b@@5",
  "x@@5@@",
  "x@@5\n"
]

describe("ownership: <owner>@@<milliseconds>", () => {
  roundTrips("OwnershipText", OwnershipText)
  reads("OwnershipText", OwnershipText, [
    ["@@", { _tag: "Free" }],
    ["x@@0", { _tag: "Held", owner: "x", timeLeft: Duration.zero }],
    ["x@@16000", { _tag: "Held", owner: "x", timeLeft: Duration.seconds(16) }],
    ["x@@999999999999999", { _tag: "Held", owner: "x", timeLeft: Duration.millis(999_999_999_999_999) }],
    // S20: an owner's key without an expiry
    ["x@@-1", { _tag: "Held", owner: "x" }],
    // A Simba contender's id
    ["1:4711@192.168.0.1@@9999", {
      _tag: "Held",
      owner: "1:4711@192.168.0.1",
      timeLeft: Duration.millis(9999)
    }],
    ["ü ✓@@1", { _tag: "Held", owner: "ü ✓", timeLeft: Duration.millis(1) }]
  ])
  refuses("OwnershipText", OwnershipText, [...badOwnerships, null, 5, [], {}])
})

describe("the mutex channel", () => {
  roundTrips("MutexMessage", RedisWire.MutexMessage)
  reads("MutexMessage", RedisWire.MutexMessage, [
    ["acquired@@x", { _tag: "Acquired", owner: "x" }],
    ["acquired@@1:4711@host", { _tag: "Acquired", owner: "1:4711@host" }]
  ])
  refuses("MutexMessage", RedisWire.MutexMessage, [
    "",
    "acquired",
    "acquired@",
    "acquired@x",
    "acquired@@",
    "acquired@@@x",
    "acquired@@x@",
    "acquired@@a@@b",
    "Acquired@@x",
    " acquired@@x",
    "released@@x",
    "look@@1",
    null,
    1
  ])
})

const badMessages = [
  "",
  "@@",
  "released",
  "released@x",
  "released@@",
  "released@@@x",
  "released@@x@",
  "released@@a@@b",
  "RELEASED@@x",
  "\nreleased@@x",
  "look",
  "look@@",
  "look@@-1",
  "look@@1.5",
  "look@@01",
  "look@@ 1",
  "look@@1 ",
  "look@@soon",
  "look@@1e3",
  "look@@1000000000000000",
  "look@@1@@",
  "acquired@@x"
]

describe("a contender's channel", () => {
  roundTrips("ContenderMessage", RedisWire.ContenderMessage)
  reads("ContenderMessage", RedisWire.ContenderMessage, [
    ["released@@x", { _tag: "Released", owner: "x" }],
    ["released@@1:4711@host", { _tag: "Released", owner: "1:4711@host" }],
    ["look@@0", { _tag: "PollAfter", millis: 0 }],
    ["look@@1500", { _tag: "PollAfter", millis: 1500 }]
  ])
  refuses("ContenderMessage", RedisWire.ContenderMessage, [...badMessages, "xxxxxx5", null, 1])
})

const badInboxMessages = [
  "",
  "@@",
  "forced",
  "forced@x",
  "forced@@",
  "forced@@@x",
  "forced@@x@",
  "forced@@a@@b",
  "Forced@@x",
  " forced@@x",
  "look@@1",
  "granted@@7@@1@@1500",
  "acquired@@x",
  "7@@acquired@@y",
  "7@@forced@@y",
  "7@look@@1",
  "@@look@@1",
  "x@@look@@1",
  "-7@@look@@1",
  "7.5@@look@@1",
  "7-abcdef012345:4711@host@@look@@1",
  "12345678901234567@@look@@1",
  "7@@@look@@1",
  "7@@look@@y@@1",
  "7@@released@@y",
  "7@@granted",
  "7@@granted@@7@@1",
  "7@@granted@@7@@1@@1500@@",
  "7@@granted@@0@@0@@1500",
  "7@@granted@@7@@8@@1500",
  "7@@granted@@7@@1.5@@1500",
  "7@@granted@@7@@-1@@1500",
  "7@@granted@@7@@1@@-1",
  "7@@granted@@9007199254740993@@1@@1500",
  "7@@granted@@7@@1@@9007199254740993",
  ...badMessages.map((text) => `7@@${text}`)
]

/** Formats a message like the scripts. */
const write = (message: RedisWire.InboxMessage): string => {
  if (message._tag === "Forced") return `forced@@${message.id}`
  switch (message._tag) {
    case "PollAfter":
      return `${message.counter}@@look@@${message.millis}`
    case "Granted": {
      const { micros, millis, token } = message.grant
      return `${message.counter}@@granted@@${token}@@${token - micros}@@${millis}`
    }
  }
}

describe("a layer's channel", () => {
  const grant = { token: FencingToken.make(1700000000000100), micros: 1700000000000001, millis: 1500 }
  const read = RedisWire.readInboxMessage

  it.each<readonly [string, RedisWire.InboxMessage]>([
    ["forced@@x", { _tag: "Forced", id: "x" }],
    ["forced@@7-abcdef012345:4711@host", { _tag: "Forced", id: "7-abcdef012345:4711@host" }],
    ["7@@look@@0", { _tag: "PollAfter", counter: "7", millis: 0 }],
    ["1234567890@@look@@1500", { _tag: "PollAfter", counter: "1234567890", millis: 1500 }],
    ["7@@granted@@1700000000000100@@99@@1500", { _tag: "Granted", counter: "7", grant }]
  ])("InboxMessage: %s", (text, message) => {
    assert.deepStrictEqual(read(text), Exit.succeed(message))
    assert.strictEqual(write(message), text)
  })

  it.each(badInboxMessages.map((text) => ({ text })))("InboxMessage: $text is refused", ({ text }) => {
    assert.isTrue(Exit.isFailure(read(text)))
  })

  const Part = Schema.Literals([..."@@|7|0|07|1500|granted|released|look|forced|x|-1|1.5".split("|")])
  it.prop("encoding a decoded text restores the text", [Schema.Array(Part)], ([parts]) => {
    const text = parts.join("@@")
    const message = read(text)
    if (Exit.isSuccess(message)) assert.strictEqual(write(message.value), text)
  }, { arbitrary: { runs: 1000 } })
})

const goodAcquire = ["x@@16000", 1700000000000001, 0, 0, 5, -7] as const

const badAcquires: ReadonlyArray<unknown> = [
  null,
  "",
  "x@@16000",
  "0",
  "-5",
  "1.5",
  "01",
  "5/6",
  "9999999999999999",
  "1.7e15",
  5,
  [],
  goodAcquire.slice(0, 3),
  goodAcquire.slice(0, 4),
  goodAcquire.slice(0, 5),
  [...goodAcquire, 0],
  ...badOwnerships.slice(0, 8).map((text) => [text, ...goodAcquire.slice(1)]),
  ["x@@1", "1700000000.000001", 0, 0],
  ["x@@1", "", "0", "0"],
  ["x@@1", -1, 0, 0],
  ["x@@1", 1.5, 0, 0],
  ["x@@1", 1, 0, 0],
  ["x@@1", 0, "", 0],
  ["x@@1", 0, -1, 0],
  ["x@@1", 0, 1.5, 0],
  ["x@@1", 0, 0, ""],
  ["x@@1", 0, 0, 2],
  ["x@@1", 0, 0, true],
  ["x@@1", 0, 0, 0, 0, 0],
  ["x@@1", null, 0, 0],
  ["x@@1", 5, 0, 0, "0", 0],
  ["x@@1", 5, 0, 0, 0, "0"],
  ["x@@1", 5, 0, 0, -6, 0],
  ["x@@1", 5, 0, 0, 0, 6],
  ["x@@1", 5, 0, 0, 0.5, 0],
  [null, 0, 0, 0]
]

const goodRelease = ["x@@16000", 1700000000000001, "1700000000000000"] as const

const badReleases: ReadonlyArray<unknown> = [
  null,
  0,
  5,
  "1",
  "OK",
  "x@@16000",
  ...badOwnerships.slice(0, 8),
  [],
  goodRelease.slice(0, 2),
  [...goodRelease, 0],
  ...badOwnerships.slice(0, 8).map((text) => [text, ...goodRelease.slice(1)]),
  ["x@@1", "1700000000.000001", "5"],
  ["x@@1", 0, "5"],
  ["x@@1", -1, "5"],
  ["x@@1", 1.5, "5"],
  [...goodRelease.slice(0, 2), ""],
  [...goodRelease.slice(0, 2), "0"],
  [...goodRelease.slice(0, 2), "1.5"],
  [...goodRelease.slice(0, 2), "5/6"],
  [...goodRelease.slice(0, 2), 5],
  [...goodRelease.slice(0, 2), 5, 0],
  [...goodRelease.slice(0, 2), "5", 0, 0],
  [...goodRelease.slice(0, 2), -1, 0, 0],
  [...goodRelease.slice(0, 2), 5, 0, 0, 0],
  ["x@@1", null, "5"]
]

const goodInspect = ["x@@16000", "1700000000000000", "1", [["7-abcdef012345:4711@host", "1500"]]] as const

const badInspects: ReadonlyArray<unknown> = [
  null,
  "x@@16000",
  [],
  goodInspect.slice(0, 3),
  [...goodInspect, ""],
  ...badOwnerships.slice(0, 8).map((text) => [text, ...goodInspect.slice(1)]),
  ["x@@1", "0", "0", []],
  ["x@@1", "1.5", "0", []],
  ["x@@1", null, "0", []],
  ["x@@1", "", "", []],
  ["x@@1", "", "-1", []],
  ["x@@1", "", 0, []],
  ["x@@1", "", "0", ""],
  ["x@@1", "", "0", {}],
  ["x@@1", "", "1", ["id"]],
  ["x@@1", "", "1", [["id"]]],
  ["x@@1", "", "1", [["id", ""]]],
  ["x@@1", "", "1", [["id", "-1"]]],
  ["x@@1", "", "1", [["id", "1.5"]]],
  ["x@@1", "", "1", [["id", 5]]],
  ["x@@1", "", "1", [[null, "5"]]],
  ["x@@1", "", "1", [["id", "5", "6"]]]
]

const badPolls: ReadonlyArray<unknown> = [
  null,
  "1",
  [],
  ["1"],
  ["", []],
  ["1", "at:job"]
]

const badJobs: ReadonlyArray<Readonly<Record<string, string>>> = [
  { at: "" },
  { at: "1.5" },
  { schedule: "every 1000" },
  { at: "1", outcome: "other" },
  { at: "1", start: "-1" }
]

const badClaims: ReadonlyArray<unknown> = [
  null,
  "Claimed",
  ["Claimed"],
  ["Claimed", "1", "1"],
  ["Other", "1", "1", "0"],
  ["Claimed", "", "1", "0"],
  ["Claimed", "1", "1.5", "0"],
  ["Claimed", "1", "1", -1]
]

describe("script replies", () => {
  const read = (reader: (reply: unknown) => Exit.Exit<unknown, ProtocolError>, reply: unknown) =>
    Exit.match(reader(reply), { onSuccess: (value) => value, onFailure: () => "refused" })

  it.each(badAcquires.map((reply) => ({ reply })))("reply to an acquire: $reply is refused", ({ reply }) => {
    assert.strictEqual(read(replies.readAcquire, reply), "refused")
  })
  it("a reply to an acquire is a token, a refused try or a place", () => {
    const ownership = { _tag: "Held", owner: "x", timeLeft: Duration.seconds(16) }
    assert.deepStrictEqual(read(replies.readAcquire, "7"), { _tag: "Granted", token: 7 })
    assert.deepStrictEqual(read(replies.readAcquire, ["@@", 0, 0, 1]), {
      ...{ _tag: "Refused", ownership: { _tag: "Free" } },
      ...{ ticket: undefined, position: 0, foreign: true }
    })
    assert.deepStrictEqual(read(replies.readAcquire, goodAcquire), {
      ...{ _tag: "Refused", ownership, ticket: "1700000000.000001", position: 0, foreign: false },
      stamp: { micros: 1700000000000006, token: 1700000000000013 }
    })
  })
  it.each(badReleases.map((reply) => ({ reply })))("reply to a release: $reply is refused", ({ reply }) => {
    assert.strictEqual(read(replies.readRelease, reply), "refused")
  })
  it("a reply to a release may contain a requeued id's grant or place", () => {
    const requeued = {
      ownership: { _tag: "Held", owner: "x", timeLeft: Duration.seconds(16) },
      ticket: "1700000000.000001"
    }
    assert.deepStrictEqual(read(replies.readRelease, 1), { requeued: undefined })
    assert.deepStrictEqual(read(replies.readRelease, goodRelease), {
      requeued: { ...requeued, token: 1700000000000000 }
    })
    assert.deepStrictEqual(read(replies.readRelease, [...goodRelease.slice(0, 2), 3, 0, 1700000000000001]), {
      requeued: { ...requeued, token: undefined, position: 3, stamp: { micros: 1700000000000001, token: 0 } }
    })
  })
  roundTrips("the reply to renewals", renewLeases.reply)
  refuses("the reply to renewals", renewLeases.reply, [
    null,
    "OK",
    [1],
    [[1]],
    [[1, "owner"]],
    [["1", "owner", "@@"]],
    [[1.5, "owner", "@@"]],
    [[1, "lost", "@@"]],
    [[1, "owner", "x"]],
    [[1, "error", null]],
    [[1, "owner", "@@", ""]]
  ])
  roundTrips("InspectReply", replies.InspectReply)
  reads("InspectReply", replies.InspectReply, [
    [["@@", "", "0", []], [{ _tag: "Free" }, "", 0, []]],
    [
      ["x@@16000", "1700000000000000", "250", [["7-abcdef012345:4711@host", "1500"], ["1:4711@stock-host", "0"]]],
      [
        { _tag: "Held", owner: "x", timeLeft: Duration.seconds(16) },
        1_700_000_000_000_000 as FencingToken,
        250,
        [["7-abcdef012345:4711@host", 1500], ["1:4711@stock-host", 0]]
      ]
    ]
  ])
  refuses("InspectReply", replies.InspectReply, badInspects)
})

describe("names on the wire", () => {
  it("keys and channels match the protocol exactly", () => {
    assert.strictEqual(RedisKeys.owner(mutex), "simba:{jobs}")
    assert.strictEqual(RedisKeys.queue(mutex), "simba:{jobs}:contender")
    assert.strictEqual(RedisKeys.fence(mutex), "simba:{jobs}:fence")
    assert.strictEqual(RedisKeys.mutexChannel(mutex), "simba:{jobs}")
    assert.strictEqual(RedisKeys.contenderChannel(mutex, id), "simba:{jobs}:7-abcdef012345:4711@host")
    assert.strictEqual(RedisKeys.jobs(mutex), "simba:{jobs}:jobs")
    assert.strictEqual(RedisKeys.inboxChannel("abcdef012345"), "simba:inbox:abcdef012345")
    assert.isTrue(RedisKeys.reserved(mutex).startsWith("simba:{jobs}:"))
    assert.strictEqual(
      new Set([
        RedisKeys.owner(mutex),
        RedisKeys.queue(mutex),
        RedisKeys.fence(mutex),
        RedisKeys.reserved(mutex)
      ]).size,
      4
    )
  })

  it("only the owner key and the queue identify a mutex", { tags: ["B59"] }, () => {
    for (const name of ["jobs", "a}b{c", "{", "x}:contender", "line\nbreak", "x}:fence", "{braces}"]) {
      const odd = MutexName.make(name)
      assert.strictEqual(RedisKeys.mutexOf(RedisKeys.owner(odd)), name)
      assert.strictEqual(RedisKeys.mutexOf(RedisKeys.queue(odd)), name)
      for (
        const key of [
          RedisKeys.fence(odd),
          RedisKeys.reserved(odd),
          RedisKeys.jobs(odd),
          "simba:jobs",
          `x${RedisKeys.owner(odd)}`
        ]
      ) {
        assert.isUndefined(RedisKeys.mutexOf(key), key)
      }
    }
  })

  it.prop("all keys of a mutex share a hash tag, for any name", [MutexName], ([name]) => {
    const tag = (key: string) => {
      const open = key.indexOf("{")
      const close = key.indexOf("}", open + 1)
      return key.slice(open + 1, close)
    }
    const tags = [RedisKeys.owner, RedisKeys.queue, RedisKeys.fence, RedisKeys.reserved].map((key) => tag(key(name)))
    assert.strictEqual(new Set(tags).size, 1)
    assert.isNotEmpty(tags[0]!)
  }, { tags: ["S19"] })
})

/** A Redis whose scripts all return `reply` and whose channels deliver `notices`. */
const storeOver = (reply: unknown, notices: ReadonlyArray<Notice> = []) =>
  RedisMutex.layerStore.pipe(
    Layer.provide(Layer.mock(Redis.Redis, {
      eval: () => () => Effect.succeed(reply as never),
      send: (command) => Effect.succeed((command === "SCRIPT" ? "sha" : reply) as never)
    })),
    Layer.provide(Layer.succeed(Subscriber, {
      countable: false,
      bound: undefined,
      subscribe: () =>
        Effect.gen(function*() {
          const queue = yield* Queue.unbounded<Notice>()
          yield* Queue.offerAll(queue, notices)
          return queue
        })
    }))
  )

const period = Duration.seconds(1)

const readingFails = <A>(
  read: unknown,
  use: (store: MutexStore.MutexStore["Service"]) => Effect.Effect<A, unknown>,
  reply: unknown = read
) =>
  Effect.gen(function*() {
    const error = yield* Effect.flip(MutexStore.MutexStore.use(use))
    assert.instanceOf(error, ProtocolError)
    assert.strictEqual(error.read, typeof read === "string" ? read : JSON.stringify(read))
    assert.include(error.message, JSON.stringify(error.read))
    assert.isNotEmpty(error.where)
  }).pipe(Effect.provide(storeOver(reply)))

describe("the store fails with a ProtocolError for a malformed reply to", () => {
  it.effect.each(badOwnerships)("owner: %j", (text) => readingFails(text, (store) => store.owner(mutex)))

  it.effect.each(badReleases.map((reply) => ({ reply })))(
    "release: $reply",
    ({ reply }) =>
      readingFails(reply, (store) => MutexStore.release(store, { mutex, id, confirm: period, lease: period }))
  )

  it.effect.each(badAcquires.map((reply) => ({ reply })))(
    "acquire: $reply",
    ({ reply }) =>
      readingFails(
        reply,
        (store) => MutexStore.acquire(store, { mutex, id, mode: "try", lease: period, confirm: period })
      )
  )

  it.effect.each([["x"], [[1, "owner", "x@@"]], [[1, "what", ""]]].map((reply) => ({ reply })))(
    "guard: $reply",
    ({ reply }) => readingFails(reply, (store) => MutexStore.guard(store, [{ mutex, id, lease: period }]))
  )

  it.effect.each(badInspects.map((reply) => ({ reply })))(
    "inspect: $reply",
    ({ reply }) => readingFails(reply, (store) => store.inspect(mutex, 10))
  )

  it.effect.each(badPolls.map((reply) => ({ reply })))(
    "a read of jobs: $reply",
    ({ reply }) => readingFails(reply, (store) => store.jobs.read({ mutex, jobs: [] }))
  )

  it.effect.each(badJobs.map((fields) => ({ fields })))(
    "a read of jobs, only for the malformed job: $fields",
    ({ fields }) =>
      readingFails(
        fields,
        (store) =>
          Effect.flatMap(store.jobs.read({ mutex, jobs: [] }), ({ malformed }) => Effect.fail(malformed.get("job"))),
        ["1", Object.entries(fields).flatMap(([name, value]) => [`${name}:job`, value])]
      )
  )

  it.effect.each(badClaims.map((reply) => ({ reply })))(
    "a claim of a run: $reply",
    ({ reply }) =>
      readingFails(reply, (store) =>
        store.jobs.claim({
          mutex,
          job: "job",
          id,
          token: 1 as FencingToken,
          claim: "claim",
          mode: "run",
          at: 0,
          after: 0,
          missed: 0,
          cause: "",
          minInterval: period,
          attempts: 1,
          changed: 0
        }))
  )

  it.effect.each(badOwnerships)(
    "a forced release: %j",
    (text) => readingFails(text, (store) => store.forceRelease(mutex, period))
  )
})

describe("a malformed message", () => {
  it.effect("to a layer is logged with its text, and later messages still arrive", () => {
    const lines: Array<string> = []
    const notices = [...badInboxMessages, "forced@@one", "nonsense", "forced@@two"].flatMap((text): Array<Notice> => [
      { _tag: "Message", channel: RedisKeys.inboxChannel("abcdef012345"), text },
      { _tag: "Gap" }
    ])
    return Effect.gen(function*() {
      const forced = yield* Queue.unbounded<string>()
      yield* MutexStore.MutexStore.use((store) => store.inbox("abcdef012345", (id) => Queue.offerUnsafe(forced, id)))
      assert.strictEqual(yield* Queue.take(forced), "one")
      assert.strictEqual(yield* Queue.take(forced), "two")
    }).pipe(
      Effect.provide([storeOver("@@", notices), capturingLogs(lines)]),
      Effect.andThen(Effect.sync(() => {
        assert.strictEqual(lines.length, badInboxMessages.length + 1)
        for (const [index, text] of [...badInboxMessages, "nonsense"].entries()) {
          assert.include(lines[index]!, JSON.stringify(text))
        }
      }))
    )
  })

  it.effect("about a mutex is logged with its text, and the observer continues", () => {
    const lines: Array<string> = []
    const notices = ["", "acquired@@", "released@@x", "acquired@@x"].map((text): Notice => ({
      _tag: "Message",
      channel: RedisKeys.mutexChannel(mutex),
      text
    }))
    return Effect.gen(function*() {
      const changes = yield* MutexStore.MutexStore.use((store) => store.changes(mutex))
      assert.deepStrictEqual(yield* changes.next, { _tag: "Acquired", owner: "x" })
      assert.deepStrictEqual(yield* changes.next, { _tag: "Gap" })
    }).pipe(
      Effect.provide([storeOver("@@", [...notices, { _tag: "Gap" }]), capturingLogs(lines)]),
      Effect.andThen(Effect.sync(() => {
        assert.strictEqual(lines.length, 3)
      }))
    )
  })

  it.effect("to a waiter is logged with its text, and the wait continues", () => {
    const lines: Array<string> = []
    // Messages to other waiters (8 and 1) are ignored
    const texts = [
      "8@@look@@1",
      "7@@granted@@7@@1@@1500",
      "nonsense",
      "1@@look@@2",
      "7@@look@@250"
    ]
    const notices = [...badInboxMessages, ...texts].map((text): Notice => ({
      _tag: "Message",
      channel: RedisKeys.inboxChannel("abcdef012345"),
      text
    }))
    return Effect.gen(function*() {
      const store = yield* MutexStore.MutexStore
      const wakeUps = yield* MutexStore.wakeUps(store, mutex, id)
      assert.deepStrictEqual(yield* wakeUps.next, {
        _tag: "YourTurn",
        grant: { token: FencingToken.make(7), micros: 6, millis: 1500 }
      })
      assert.deepStrictEqual(yield* wakeUps.next, { _tag: "PollAfter", delay: Duration.millis(250) })
      assert.deepStrictEqual(yield* wakeUps.next, { _tag: "Gap" })
    }).pipe(
      Effect.provide([storeOver("@@", [...notices, { _tag: "Gap" }]), capturingLogs(lines)]),
      Effect.andThen(Effect.sync(() => {
        assert.strictEqual(lines.length, badInboxMessages.length + 1)
        for (const [index, text] of [...badInboxMessages, "nonsense"].entries()) {
          assert.include(lines[index]!, JSON.stringify(text))
        }
      }))
    )
  })
})
