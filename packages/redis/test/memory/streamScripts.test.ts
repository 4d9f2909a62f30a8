/** What the contract does not say: what is left in Redis, what others write there, and what an outage does. */
import { BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import { ConsumerName, EntryId, Epoch, ServiceName, StreamName } from "@effect-simba/core/streams/StreamName"
import { type Held, StreamStore } from "@effect-simba/core/streams/StreamStore"
import * as RedisTopology from "@effect-simba/redis/RedisTopology"
import * as RedisStreamStore from "@effect-simba/redis/streams/RedisStreamStore"
import * as FakeRedis from "@effect-simba/testkit/FakeRedis"
import * as TestRedis from "@effect-simba/testkit/TestRedis"
import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, Fiber, Layer, Option, type Scope } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import { slot } from "../../src/internal/client/clusterSlot.ts"
import * as StreamKeys from "../../src/streams/internal/keys.ts"

const lease = Duration.seconds(2)
const name = ServiceName.make("{orders}")
const input = StreamKeys.input(name)
const group = StreamKeys.group(name)
const streamOf = (label: string) => StreamName.make(`{orders}:${label}`)
const a = ConsumerName.make("redis-consumer-a")
const b = ConsumerName.make("redis-consumer-b")

let count = 0
const epoch = () => Epoch.make(`s00000000000.${(++count).toString(36)}`)

const layer = RedisStreamStore.layer.pipe(
  Layer.provideMerge(TestRedis.layer({ expiryDelay: ["1 second", "1 second"] }))
)
const onFake = <A, E>(
  effect: Effect.Effect<A, E, FakeRedis.FakeRedis | Redis | StreamStore | Scope.Scope>
) => Effect.provide(effect, layer)

const setup = Effect.fnUntraced(function*(options?: { readonly enableEvents?: boolean }) {
  const { open } = yield* StreamStore
  const service = yield* open(name, options)
  yield* service.prepare
  const { send } = yield* Redis
  const server = yield* FakeRedis.FakeRedis
  const take = Effect.fnUntraced(function*(stream: StreamName, entry: EntryId, consumer = a, minIdle = Duration.zero) {
    const request = { stream, entry, consumer, epoch: epoch(), lease, minIdle, maxFailures: 10 }
    const [result] = yield* service.take([request])
    return { request, result: result! }
  })
  return {
    service,
    server,
    send,
    ask: (stream: StreamName, entry: EntryId, consumer = a) =>
      Effect.map(take(stream, entry, consumer), ({ result }) => result),
    own: Effect.fnUntraced(function*(label: string, consumer = a) {
      const stream = streamOf(label)
      const [answer] = yield* service.announce([{ stream, info: {} }])
      yield* service.read({ consumer, count: 1, block: Duration.millis(1) })
      const { request, result } = yield* take(stream, answer!.entry, consumer)
      assert.strictEqual(result._tag, "Taken")
      const { entry, epoch } = request
      return { stream, entry, epoch, consumer, token: result._tag === "Taken" ? result.token : NaN } as Held
    }),
    pending: Effect.map(
      service.pending({ minIdle: Duration.zero, count: 100 }),
      ({ entries }) => entries.map(({ content }) => content.entry)
    ),
    read: (consumer = a) => service.read({ consumer, count: 10, block: Duration.millis(1) }),
    xpending: send<ReadonlyArray<ReadonlyArray<unknown>>>("XPENDING", input, group, "-", "+", "100"),
    scriptCalls: Effect.map(server.trace, (trace) => trace.filter(({ args }) => args[0] === "EVALSHA").length)
  }
})

const keysOf = ({ entry, stream }: Held) => ({
  entryLease: StreamKeys.entryLease(stream, entry),
  streamLease: StreamKeys.streamLease(stream)
})

describe("what is left in Redis", () => {
  it.effect("done is one call, after which nothing of the holding is left", () =>
    onFake(Effect.gen(function*() {
      const { own, send, scriptCalls, server, service } = yield* setup()
      const held = yield* own("one")
      yield* service.fail(held)
      yield* server.clearTrace
      assert.strictEqual(yield* service.done(held), "Done")
      assert.deepStrictEqual(
        (yield* server.trace).map(({ args }) => args[0]).filter((command) => command !== "SCRIPT"),
        ["EVALSHA", "EVALSHA"].slice(0, yield* scriptCalls)
      )
      const left = (yield* server.keys).map(({ key }) => key)
      const { entryLease, streamLease } = keysOf(held)
      assert.isFalse(left.includes(entryLease) || left.includes(streamLease))
      assert.isFalse(left.includes(StreamKeys.failures(name)))
      assert.isFalse(left.includes(StreamKeys.announced(name)))
      assert.strictEqual(yield* send("XLEN", input), 0)
    })), { tags: ["G17"] })

  it.effect("every key expires but unfinished announcements", () =>
    onFake(Effect.gen(function*() {
      const { own, read, send, server, service } = yield* setup()
      const held = yield* own("one")
      yield* service.commit(held, EntryId.make("1-0"))
      yield* service.deadLetterMessage(held, { id: EntryId.make("2-0"), fields: [["x", "y"]] }, "why")
      yield* service.fail(held)
      const second = yield* own("two")
      yield* service.handOver(second, { consumer: b, session: "s00000000000" }, lease)
      yield* service.deadLetter(yield* own("three"), "why")
      yield* send("XADD", input, "*", "x", "y")
      const [malformed] = yield* read()
      yield* service.deadLetterMalformed(malformed!.entry, a, "why")
      yield* service.heartbeat({ consumer: a, session: "s00000000000", capacity: 1, owned: 0 }, lease)
      yield* service.release(yield* own("four"))
      yield* service.reap(lease)
      const keys = yield* server.keys
      assert.deepStrictEqual(keys.filter(({ expiresAt }) => expiresAt === undefined).map(({ key }) => key), [input])
      assert.isAbove(keys.length, 12)
    })), { tags: ["B53"] })

  it.effect("every key expires, also after a lease that outlived its failure count", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      for (const how of ["release", "handOver"] as const) {
        const held = yield* own(how)
        yield* send("DEL", StreamKeys.failures(name))
        if (how === "release") yield* service.release(held)
        else yield* service.handOver(held, { consumer: b, session: "s00000000000" }, lease)
        assert.isAbove(yield* send<number>("PTTL", StreamKeys.failures(name)), 0)
      }
    })))

  it.effect("a message becomes a dead letter once, by its owner", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const message = { id: EntryId.make("2-0"), fields: [["x", "y"]] as const }
      const bury = (held: Held) => service.deadLetterMessage(held, message, "why")
      assert.deepStrictEqual(
        [yield* bury({ ...held, token: (held.token + 1) as typeof held.token }), yield* bury(held), yield* bury(held)],
        ["NotOwner", "Committed", "Behind"]
      )
      const letters = yield* send<ReadonlyArray<[string, ReadonlyArray<string>]>>(
        "XRANGE",
        StreamKeys.deadMessages(held.stream),
        "-",
        "+"
      )
      assert.deepStrictEqual(letters.map(([, fields]) => fields), [
        ["x", "y", "simba-reason", "why", "simba-id", "2-0", "simba-token", String(held.token)]
      ])
    })))

  it.effect("dead letters are bounded, and are not kept for ever", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const dead = StreamKeys.deadLetters(name)
      for (let i = 0; i < 10_150; i++) yield* send("XADD", dead, `1-${i + 1}`, "x", "y")
      yield* service.deadLetter(yield* own("one"), "why")
      const length = yield* send<number>("XLEN", dead)
      assert.isBelow(length, 10_101)
      assert.isAtLeast(length, 10_000)
      const left = yield* send<number>("PTTL", dead)
      assert.isAtMost(left, Duration.toMillis("30 days"))
      assert.isAbove(left, Duration.toMillis("29 days"))
      const [newest] = yield* send<ReadonlyArray<[string, ReadonlyArray<string>]>>(
        "XREVRANGE",
        dead,
        "+",
        "-",
        "COUNT",
        "1"
      )
      assert.includeMembers([...newest![1]], ["lbs-input", "simba-reason", "why", "simba-id", "simba-token"])
    })), { tags: ["B53"] })

  it.effect(
    "giving back acknowledges nothing, ages the entry, and lets its lease expire with the event",
    () =>
      onFake(Effect.gen(function*() {
        const { own, send, service, xpending } = yield* setup()
        yield* send("CONFIG", "SET", "notify-keyspace-events", "Ex")
        const expiries = Option.getOrThrow(yield* service.expiries)
        const held = yield* own("one")
        const { entryLease, streamLease } = keysOf(held)
        yield* service.release(held)
        const [[entry, consumer, idle, deliveries]] = (yield* xpending) as [[string, string, number, number]]
        assert.deepStrictEqual([entry, consumer, deliveries], [held.entry, a, 1])
        assert.isAtLeast(idle, 60_000)
        assert.strictEqual(yield* send("EXISTS", streamLease), 0)
        assert.strictEqual(yield* send("PTTL", entryLease), 1)
        const event = yield* Effect.forkChild(expiries.next)
        // However late the server would notice by itself
        yield* TestClock.adjust("5 millis")
        const { stream } = held
        assert.deepStrictEqual(yield* Fiber.join(event), { _tag: "Expired", stream, entry: held.entry })
      })),
    { tags: ["G20"] }
  )

  it.effect("at ten thousand data streams a renewal is one call for every 200 of them", () =>
    onFake(Effect.gen(function*() {
      const { scriptCalls, server, service } = yield* setup()
      const streams = Array.from({ length: 1000 }, (_, i) => streamOf(String(i)))
      const entries = yield* service.announce(streams.map((stream) => ({ stream, info: {} })))
      yield* service.read({ consumer: a, count: 1000, block: Duration.millis(1) })
      const requests = streams.map((stream, i) => ({
        stream,
        entry: entries[i]!.entry,
        consumer: a,
        epoch: epoch(),
        lease,
        minIdle: Duration.zero,
        maxFailures: 10
      }))
      const taken = yield* service.take(requests)
      const held = requests.map((request, i) => {
        const result = taken[i]!
        assert.strictEqual(result._tag, "Taken")
        return { ...request, token: (result as Extract<typeof result, { readonly _tag: "Taken" }>).token }
      })
      yield* service.renew(held.slice(0, 1), lease)
      yield* server.clearTrace
      const renewed = yield* service.renew(held, lease)
      assert.isTrue(renewed.every(({ _tag }) => _tag === "Renewed"))
      assert.strictEqual(yield* scriptCalls, 5)
    })))
})

describe("what others write", () => {
  it.effect(
    "what cannot be read is named, its neighbours are read, and it can be buried by its consumer",
    () =>
      onFake(Effect.gen(function*() {
        const { pending, read, send, service } = yield* setup()
        const payload = JSON.stringify({ DataStreamName: "{orders}:one", Info: null })
        const bad = [
          ["other", "x"],
          ["lbs-input", "{"],
          ["lbs-input", "{}"],
          // G30
          ["lbs-input", JSON.stringify({ DataStreamName: "a<MUTEX_KEY_SEP>b", Info: {} })]
        ]
        for (const fields of bad) yield* send("XADD", input, "*", ...fields)
        yield* send("XADD", input, "*", "more", "kept", "lbs-input", payload)
        const entries = yield* read()
        assert.deepStrictEqual(entries.map(({ _tag }) => _tag), [...bad.map(() => "Malformed" as const), "Announced"])
        assert.deepInclude(entries[4] as object, { stream: "{orders}:one", info: {} })
        const first = entries[0]!
        assert.isFalse(yield* service.deadLetterMalformed(first.entry, b, "not mine"))
        for (const entry of entries.slice(0, 4)) {
          assert.isTrue(
            yield* service.deadLetterMalformed(entry.entry, a, entry._tag === "Malformed" ? entry.problem : "")
          )
        }
        assert.isFalse(yield* service.deadLetterMalformed(first.entry, a, "again"))
        assert.deepStrictEqual(yield* pending, [entries[4]!.entry])
        const letters = yield* service.deadLetters(undefined, 10)
        assert.deepStrictEqual(letters.map(({ entry }) => entry), entries.slice(0, 4).map(({ entry }) => entry))
        assert.deepStrictEqual(letters.map(({ fields }) => fields.flat()), bad)
        assert.isTrue(letters.every(({ reason }) => reason.length > 5))
        assert.match(letters[0]!.reason, /lbs-input/)
        // Once more, as it was
        assert.isTrue(yield* service.redrive(letters[0]!.id))
        assert.strictEqual((yield* read())[0]!._tag, "Malformed")
      })),
    { tags: ["G2"] }
  )

  it.effect("what is deleted and still pending is nobody's, and pending no more", () =>
    onFake(Effect.gen(function*() {
      const { ask, own, pending, send, service, xpending } = yield* setup()
      const held = yield* own("one")
      const other = yield* own("two")
      yield* service.announce([{ stream: streamOf("three"), info: {} }])
      const [third] = yield* service.read({ consumer: b, count: 1, block: Duration.millis(1) })
      yield* send("XDEL", input, held.entry, third!.entry)
      assert.strictEqual((yield* ask(streamOf("three"), third!.entry, b))._tag, "Gone")
      assert.strictEqual((yield* xpending).length, 2)
      assert.deepStrictEqual(yield* pending, [other.entry])
      assert.strictEqual((yield* xpending).length, 1)
      const renewed = yield* service.renew([held, other], lease)
      assert.deepStrictEqual(renewed, [{ _tag: "Lost", reason: "Vanished" }, { _tag: "Renewed" }])
      assert.strictEqual(yield* service.done(held), "AlreadyDone")
    })), { tags: ["B50"] })

  it.effect("a stock consumer's lock keeps ours out, by its name", () =>
    onFake(Effect.gen(function*() {
      const { ask, read, send, service } = yield* setup()
      const [answer] = yield* service.announce([{ stream: streamOf("one"), info: {} }])
      yield* read()
      yield* send("SET", StreamKeys.entryLease(streamOf("one"), answer!.entry), "redis-consumer-go", "PX", "2000")
      const refused = yield* ask(streamOf("one"), answer!.entry)
      assert.strictEqual(refused._tag === "Occupied" ? refused.by : refused._tag, "redis-consumer-go")
      yield* TestClock.adjust("2100 millis")
      assert.strictEqual((yield* ask(streamOf("one"), answer!.entry))._tag, "Taken")
    })))

  it.effect("a lease of which another owns one half is lost, and the other half runs out", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const [one, two, three, four] = [yield* own("1"), yield* own("2"), yield* own("3"), yield* own("4")]
      yield* send("SET", keysOf(one).streamLease, `${b}@@${epoch()}@@7`, "PX", "2000")
      yield* send("SET", keysOf(two).entryLease, "redis-consumer-go", "PX", "2000")
      yield* send("DEL", keysOf(three).streamLease)
      yield* send("SET", keysOf(four).streamLease, `${a}@@${four.epoch}@@7`, "PX", "2000")
      for (const held of [one, two, three, four]) {
        assert.strictEqual(yield* service.done(held), "NotOwner")
        if (held !== two) assert.strictEqual(yield* service.commit(held, EntryId.make("1-0")), "NotOwner")
      }
      assert.deepStrictEqual(yield* service.renew([one, two, three, four], lease), [
        { _tag: "Lost", reason: "TakenOver" },
        { _tag: "Lost", reason: "TakenOver" },
        { _tag: "Lost", reason: "Vanished" },
        { _tag: "Lost", reason: "TakenOver" }
      ])
      // Its owner works under it until the answer is there
      const left = (key: string) => send<number>("PTTL", key)
      assert.strictEqual(yield* left(keysOf(one).entryLease), Duration.toMillis(lease))
      assert.strictEqual(yield* left(keysOf(two).streamLease), Duration.toMillis(lease))
      yield* TestClock.adjust(Duration.sum(lease, Duration.millis(1)))
      assert.strictEqual(yield* send("EXISTS", keysOf(one).entryLease, keysOf(two).streamLease), 0)
    })))

  it.effect("a repeated take of a deleted entry gives its leases up", () =>
    onFake(Effect.gen(function*() {
      const { own, send, server, service } = yield* setup()
      const held = yield* own("one")
      yield* send("XDEL", input, held.entry)
      const request = { ...held, lease, minIdle: Duration.zero, maxFailures: 10 }
      assert.deepStrictEqual(yield* service.take([request]), [{ _tag: "Gone" }])
      const { entryLease, streamLease } = keysOf(held)
      assert.isFalse((yield* server.keys).some(({ key }) => key === entryLease || key === streamLease))
    })))

  it.effect("tokens grow although the server's clock is set back", () =>
    onFake(Effect.gen(function*() {
      const { ask, own, server, service } = yield* setup()
      const held = yield* own("one")
      yield* server.stepClock("-1 hour")
      yield* service.release(held)
      const again = yield* ask(held.stream, held.entry)
      assert.deepStrictEqual<unknown>(again, { _tag: "Taken", token: held.token + 1, failures: 0 })
      const other = yield* own("two")
      yield* server.stepClock("-1 hour")
      yield* service.handOver(other, { consumer: b, session: "s00000000000" }, lease)
      const [given] = yield* service.handedOver(b, "s00000000000")
      assert.strictEqual<number>(given!.token, other.token + 1)
      yield* service.release(given!)
      const last = yield* ask(other.stream, other.entry)
      assert.deepStrictEqual<unknown>(last, { _tag: "Taken", token: other.token + 2, failures: 0 })
    })))

  it.effect("a checkpoint is kept for as long as its data stream is taken now and then", () =>
    onFake(Effect.gen(function*() {
      const { ask, own, service } = yield* setup()
      let held = yield* own("one")
      yield* service.commit(held, EntryId.make("5-0"))
      for (let i = 0; i < 3; i++) {
        yield* service.release(held)
        yield* TestClock.adjust("6 days")
        const { stream, entry } = held
        const result = yield* ask(stream, entry)
        assert.strictEqual(result._tag, "Taken")
        const request = { stream, entry, consumer: a, epoch: epoch(), lease, minIdle: Duration.zero, maxFailures: 10 }
        yield* TestClock.adjust("3 seconds")
        const [again] = yield* service.take([request])
        if (again!._tag === "Taken") held = { ...request, token: again!.token }
      }
      assert.deepStrictEqual(yield* service.checkpoint(held.stream), Option.some(EntryId.make("5-0")))
      yield* TestClock.adjust("8 days")
      assert.isTrue(Option.isNone(yield* service.checkpoint(held.stream)))
    })))

  it.effect("a checkpoint is kept while its owner says so, while it is a dead letter, and through a hand-over", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      let held = yield* own("one")
      yield* service.commit(held, EntryId.make("5-0"))
      const days = Effect.map(
        send<number>("PTTL", StreamKeys.checkpoint(held.stream)),
        (millis) => Math.round(millis / 86_400_000)
      )
      yield* TestClock.adjust("6 days")
      assert.strictEqual(yield* days, 1)
      yield* service.keepCheckpoints([held.stream])
      assert.strictEqual(yield* days, 7)

      const first = yield* own("two")
      yield* service.commit(first, EntryId.make("5-0"))
      yield* send("PEXPIRE", StreamKeys.checkpoint(first.stream), String(86_400_000))
      yield* service.handOver(first, { consumer: b, session: "s00000000001" }, Duration.seconds(1))
      const [{ info: _, ...given }] = (yield* service.handedOver(b, "s00000000001")) as [
        Held & { readonly info: unknown }
      ]
      held = given
      const daysOfSecond = send<number>("PTTL", StreamKeys.checkpoint(held.stream))
      assert.isAbove(yield* daysOfSecond, 6 * 86_400_000)
      assert.strictEqual(yield* service.deadLetter(held, "poison"), "Buried")
      assert.isAbove(yield* daysOfSecond, 29 * 86_400_000)
    })))

  it.effect("a checkpoint lasts as long as the dead letters where too many leases ran out, too", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* service.commit(held, EntryId.make("5-0"))
      yield* TestClock.adjust("3 seconds")
      const request = { ...held, epoch: epoch(), lease, minIdle: Duration.zero, maxFailures: 1 }
      assert.strictEqual((yield* service.take([request]))[0]!._tag, "Buried")
      assert.isAbove(yield* send<number>("PTTL", StreamKeys.checkpoint(held.stream)), 29 * 86_400_000)
    })))

  it.effect("two services that announce one data stream take turns at it, and have one checkpoint", () =>
    onFake(Effect.gen(function*() {
      const { own, service } = yield* setup()
      const { open } = yield* StreamStore
      const other = yield* open(ServiceName.make("{orders}-audit"))
      yield* other.prepare
      const held = yield* own("one")
      const [answer] = yield* other.announce([{ stream: held.stream, info: {} }])
      const { entry } = answer!
      yield* other.read({ consumer: b, count: 1, block: Duration.millis(1) })
      const take = Effect.suspend(() =>
        other.take([
          { stream: held.stream, entry, consumer: b, epoch: epoch(), lease, minIdle: Duration.zero, maxFailures: 10 }
        ])
      )
      yield* service.commit(held, EntryId.make("5-0"))
      assert.strictEqual((yield* take)[0]!._tag, "Occupied")
      yield* service.done(held)
      assert.strictEqual((yield* take)[0]!._tag, "Taken")
      assert.deepStrictEqual(yield* other.checkpoint(held.stream), Option.some(EntryId.make("5-0")))
    })))

  it.effect("a lease without expiry stays occupied", () =>
    onFake(Effect.gen(function*() {
      const { ask, read, send, service } = yield* setup()
      const [answer] = yield* service.announce([{ stream: streamOf("one"), info: {} }])
      yield* read()
      yield* send("SET", StreamKeys.entryLease(streamOf("one"), answer!.entry), "redis-consumer-go")
      const refused = yield* ask(streamOf("one"), answer!.entry)
      assert.isTrue(refused._tag === "Occupied" && !Duration.isFinite(refused.remaining))
    })))

  it.effect(
    "an entry that somebody claimed away comes back with the next renewal of its owner",
    () =>
      onFake(Effect.gen(function*() {
        const { own, send, service, xpending } = yield* setup()
        const held = yield* own("one")
        yield* send("XCLAIM", input, group, "redis-consumer-go", "0", held.entry)
        assert.deepStrictEqual(yield* service.renew([held], lease), [{ _tag: "Renewed" }])
        assert.strictEqual((yield* xpending)[0]![1], a)
      })),
    { tags: ["G3"] }
  )

  it.effect("a group that is gone is made again, and what is owned stays owned", () =>
    onFake(Effect.gen(function*() {
      const { ask, own, pending, read, send, service } = yield* setup()
      const held = yield* own("one")
      const released = yield* own("two")
      yield* send("XGROUP", "DESTROY", input, group)
      assert.deepStrictEqual(yield* service.renew([held], lease), [{ _tag: "Renewed" }])
      assert.strictEqual(yield* service.release(released), "Released")
      assert.deepStrictEqual(yield* pending, [])
      assert.deepStrictEqual(yield* service.renew([held], lease), [{ _tag: "Renewed" }])
      assert.deepStrictEqual((yield* read(b)).map(({ entry }) => entry), [held.entry, released.entry])
      assert.strictEqual((yield* ask(held.stream, held.entry, b))._tag, "Occupied")
      assert.strictEqual((yield* ask(released.stream, released.entry, b))._tag, "Taken")
      assert.strictEqual(yield* service.done(held), "Done")
    })))

  it.effect("a take that finds no group makes it, and waits for what it hands out", () =>
    onFake(Effect.gen(function*() {
      const { ask, read, send, service } = yield* setup()
      const [answer] = yield* service.announce([{ stream: streamOf("one"), info: {} }])
      yield* read()
      yield* send("XGROUP", "DESTROY", input, group)
      assert.strictEqual((yield* ask(streamOf("one"), answer!.entry))._tag, "Unread")
      assert.isFalse(yield* service.prepare)
      assert.strictEqual((yield* read())[0]!.entry, answer!.entry)
    })))

  it.effect("when everything is deleted, what was owned is lost, and the service goes on", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* send("FLUSHALL")
      assert.deepStrictEqual(yield* service.renew([held], lease), [{ _tag: "Lost", reason: "Vanished" }])
      assert.strictEqual(yield* service.done(held), "AlreadyDone")
      assert.deepInclude(yield* service.inspect, { announced: 0, pending: 0 })
      yield* service.reap(lease)
      yield* own("one")
    })))

  it.effect("what others announced is found, and announced again only if it is finished", () =>
    onFake(Effect.gen(function*() {
      const { read, send, service } = yield* setup()
      const payload = JSON.stringify({ DataStreamName: "{orders}:theirs", Info: { n: 1 } })
      const entry = yield* send<string>("XADD", input, "*", "lbs-input", payload)
      const find = Effect.map(service.find(streamOf("theirs")), Option.getOrUndefined)
      assert.deepInclude((yield* find) as object, { entry, info: { n: 1 } })
      yield* read()
      yield* send("XACK", input, group, entry)
      assert.isUndefined(yield* find)
    })))

  it.effect("what stock consumers finish does not block the next announcement", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const again = Effect.map(service.announce([{ stream: held.stream, info: {} }]), ([answer]) => answer!)
      assert.isFalse((yield* again).isNew)
      // As the Go client ends it, with a crash between the two
      yield* send("XACK", input, group, held.entry)
      const second = yield* again
      assert.isTrue(second.isNew)
      yield* service.read({ consumer: a, count: 1, block: Duration.millis(1) })
      yield* send("XACK", input, group, second.entry)
      yield* send("XDEL", input, second.entry)
      assert.isTrue((yield* again).isNew)
    })))

  it.effect(
    "what was acknowledged and not deleted is deleted, unless another group may want it",
    () =>
      onFake(Effect.gen(function*() {
        const { own, read, send, service } = yield* setup()
        const [done, kept] = [yield* own("one"), yield* own("two")]
        yield* service.announce([{ stream: streamOf("three"), info: {} }])
        yield* send("XACK", input, group, done.entry)
        yield* send("XGROUP", "CREATE", input, "other", "$")
        assert.deepStrictEqual(yield* service.reap(Duration.days(1)), { consumers: 0, entries: 0 })
        yield* send("XGROUP", "DESTROY", input, "other")
        assert.deepStrictEqual(yield* service.reap(Duration.days(1)), { consumers: 0, entries: 1 })
        assert.strictEqual(yield* send("XLEN", input), 2)
        assert.deepStrictEqual(yield* service.renew([kept], lease), [{ _tag: "Renewed" }])
        assert.strictEqual((yield* read()).length, 1)
      })),
    { tags: ["B53"] }
  )

  it.effect("a large backlog of acknowledged entries is deleted page by page", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const streams = Array.from({ length: 1203 }, (_, i) => streamOf(String(i)))
      const entries = yield* service.announce(streams.map((stream) => ({ stream, info: {} })))
      yield* service.read({ consumer: a, count: 2000, block: Duration.millis(1) })
      yield* send("XACK", input, group, ...entries.filter((_, i) => i % 3 > 0).map(({ entry }) => entry))
      yield* own("more")
      assert.deepStrictEqual(yield* service.reap(Duration.days(1)), { consumers: 0, entries: 802 })
      assert.strictEqual(yield* send("XLEN", input), 402)
    })), { tags: ["B53"] })

  it.effect("tidying up leaves what is pending, however much of what is pending was deleted", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const streams = Array.from({ length: 1100 }, (_, i) => streamOf(String(i)))
      const entries = yield* service.announce(streams.map((stream) => ({ stream, info: {} })))
      yield* service.read({ consumer: a, count: 2000, block: Duration.millis(1) })
      yield* own("more")
      yield* send("XDEL", input, ...entries.slice(5, 605).map(({ entry }) => entry))
      assert.deepStrictEqual(yield* service.reap(Duration.days(1)), { consumers: 0, entries: 0 })
      assert.strictEqual(yield* send("XLEN", input), 501)
    })))

  it.effect(
    "what stock consumers finish is forgotten in the end, and nothing else",
    () =>
      onFake(Effect.gen(function*() {
        const { own, send, service } = yield* setup()
        const streams = Array.from({ length: 1100 }, (_, i) => streamOf(String(i)))
        const entries = yield* service.announce(streams.map((stream) => ({ stream, info: {} })))
        yield* service.read({ consumer: a, count: 2000, block: Duration.millis(1) })
        const requests = streams.map((stream, i) => {
          const { entry } = entries[i]!
          return { stream, entry, consumer: a, epoch: epoch(), lease, minIdle: Duration.zero, maxFailures: 10 }
        })
        const results = yield* service.take(requests)
        for (const [i, result] of results.entries()) {
          if (result._tag === "Taken") yield* service.release({ ...requests[i]!, token: result.token })
        }
        const kept = yield* own("kept")
        for (const { entry } of entries) {
          yield* send("XACK", input, group, entry)
          yield* send("XDEL", input, entry)
        }
        yield* service.reap(Duration.days(1))
        const fields = yield* send<ReadonlyArray<string>>("HKEYS", StreamKeys.failures(name))
        assert.deepStrictEqual([...fields].sort(), [kept.entry, `${kept.entry}:by`])
        assert.deepStrictEqual(yield* send("HKEYS", StreamKeys.announced(name)), [kept.stream])
      })),
    { tags: ["B53"] }
  )

  it.effect("what a group of others never was given is not taken for finished", () =>
    onFake(Effect.gen(function*() {
      const { open } = yield* StreamStore
      const { send } = yield* Redis
      const payload = (label: string) => JSON.stringify({ DataStreamName: streamOf(label), Info: {} })
      yield* send("XADD", input, "*", "lbs-input", payload("early"))
      yield* send("XGROUP", "CREATE", input, group, "$")
      const service = yield* open(name)
      assert.isFalse(yield* service.prepare)
      assert.strictEqual((yield* service.reap(Duration.days(1))).entries, 0)
      const entry = yield* send<string>("XADD", input, "*", "lbs-input", payload("late"))
      yield* service.read({ consumer: a, count: 1, block: Duration.millis(1) })
      yield* send("XACK", input, group, entry)
      assert.strictEqual((yield* service.reap(Duration.days(1))).entries, 1)
      assert.strictEqual(yield* send("XLEN", input), 1)
    })))

  it.effect(
    "a key of another type fails its data stream alone, and leaves nothing half done",
    () =>
      onFake(Effect.gen(function*() {
        const { send, server, service, xpending } = yield* setup()
        const streams = ["a", "b", "c", "d"].map(streamOf)
        const entries = yield* service.announce(streams.map((stream) => ({ stream, info: {} })))
        yield* service.read({ consumer: b, count: 10, block: Duration.millis(1) })
        yield* send("RPUSH", StreamKeys.fence(streams[0]!), "x")
        yield* send("RPUSH", StreamKeys.streamLease(streams[1]!), "x")
        yield* send("RPUSH", StreamKeys.entryLease(streams[2]!, entries[2]!.entry), "x")
        const results = yield* service.take(streams.map((stream, i) => ({
          stream,
          entry: entries[i]!.entry,
          consumer: a,
          epoch: epoch(),
          lease,
          minIdle: Duration.zero,
          maxFailures: 10
        })))
        assert.deepStrictEqual(results.map(({ _tag }) => _tag), ["Failed", "Failed", "Failed", "Taken"])
        const first = results[0]!
        assert.isTrue(first._tag === "Failed" && first.error._tag === "BackendError" && !first.error.retryable)
        const keys = (yield* server.keys).map(({ key }) => key)
        assert.isFalse(keys.includes(StreamKeys.streamLease(streams[0]!)))
        assert.isFalse(keys.includes(StreamKeys.entryLease(streams[0]!, entries[0]!.entry)))
        assert.isFalse(keys.includes(StreamKeys.entryLease(streams[1]!, entries[1]!.entry)))
        assert.deepStrictEqual((yield* xpending).map(([, consumer]) => consumer), [b, b, b, a])
      })),
    { tags: ["G25"] }
  )
})

describe("hand-overs", () => {
  const to = { consumer: b, session: "s00000000000" }
  const confirm = Duration.millis(1500)

  it.effect("what is not confirmed is no failure, what is confirmed and runs out is one", () =>
    onFake(Effect.gen(function*() {
      const { ask, own, service } = yield* setup()
      for (const isConfirmed of [false, true]) {
        const held = yield* own(String(isConfirmed))
        yield* service.handOver(held, to, confirm)
        if (isConfirmed) {
          const [given] = yield* service.handedOver(b, to.session)
          assert.deepStrictEqual(yield* service.renew([given!], confirm), [{ _tag: "Renewed" }])
        }
        yield* TestClock.adjust("2 seconds")
        const again = yield* ask(held.stream, held.entry)
        assert.strictEqual(again._tag === "Taken" ? again.failures : again._tag, isConfirmed ? 1 : 0)
      }
    })))

  it.effect("what is over within the time to confirm is given no more, counts nothing and leaves nothing", () =>
    onFake(Effect.gen(function*() {
      const { ask, own, server, service } = yield* setup()
      const [one, two] = [yield* own("one"), yield* own("two")]
      yield* service.handOver(one, to, confirm)
      yield* service.handOver(two, to, confirm)
      const [first, second] = yield* service.handedOver(b, to.session)
      assert.strictEqual(yield* service.release(first!), "Released")
      assert.strictEqual(yield* service.done(second!), "Done")
      assert.deepStrictEqual(yield* service.handedOver(b, to.session), [])
      const again = yield* ask(one.stream, one.entry)
      assert.strictEqual(again._tag === "Taken" ? again.failures : again._tag, 0)
      const failures = yield* server.dump(StreamKeys.failures(name))
      assert.isTrue(failures?.type === "hash" && failures.value.every(([field]) => field.startsWith(one.entry)))
    })))
})

describe("events", () => {
  const flags = Effect.flatMap(
    Redis,
    ({ send }) => send<ReadonlyArray<string>>("CONFIG", "GET", "notify-keyspace-events")
  )

  it.effect(
    "the server's setting is left alone, unless asked; then flags of others stay",
    () =>
      onFake(Effect.gen(function*() {
        const { open } = yield* StreamStore
        const { send } = yield* Redis
        yield* send("CONFIG", "SET", "notify-keyspace-events", "Kg")
        const service = yield* open(name)
        assert.isTrue(Option.isNone(yield* service.expiries))
        assert.sameMembers([...(yield* flags)[1]!], ["g", "K"])
        yield* open(name, { enableEvents: true })
        assert.sameMembers([...(yield* flags)[1]!], ["g", "x", "K", "E"])
        assert.isTrue(Option.isSome(yield* service.expiries))
      })),
    { tags: ["G21"] }
  )

  it.effect(
    "where the setting may neither be read nor changed, the service opens all the same",
    () =>
      Effect.gen(function*() {
        const { open } = yield* StreamStore
        const service = yield* open(name, { enableEvents: true })
        // Nobody knows whether there will be events: heard if there are
        assert.isTrue(Option.isSome(yield* service.expiries))
      }).pipe(
        Effect.provide(RedisStreamStore.layer.pipe(
          Layer.provide(Layer.effect(
            Redis,
            Effect.map(Redis, (redis) =>
              Redis.of({
                ...redis,
                send: (command, ...args) => redis.send(command === "CONFIG" ? "NOSUCHCOMMAND" : command, ...args)
              }))
          )),
          Layer.provide(TestRedis.layer())
        ))
      ),
    { tags: ["G21"] }
  )

  it.effect("the events of the connection's own database are heard", () =>
    Effect.gen(function*() {
      const { open } = yield* StreamStore
      const { send } = yield* Redis
      yield* send("CONFIG", "SET", "notify-keyspace-events", "Ex")
      const service = yield* open(name)
      const expiries = Option.getOrThrow(yield* service.expiries)
      const key = StreamKeys.entryLease(streamOf("one"), EntryId.make("5-0"))
      // G23: keys of all sorts expire
      yield* send("SET", "something", "else", "PX", "1")
      yield* send("SET", "a<MUTEX_KEY_SEP>b", "else", "PX", "1")
      yield* send("SET", key, "x", "PX", "1")
      const event = yield* Effect.forkChild(expiries.next)
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* Fiber.join(event), {
        _tag: "Expired",
        stream: streamOf("one"),
        entry: EntryId.make("5-0")
      })
    }).pipe(Effect.provide(RedisStreamStore.layer.pipe(Layer.provideMerge(TestRedis.layer({ db: 3 }))))), {
    tags: ["G22"]
  })

  it.effect("a broken connection is a gap in hints and in expiries", () =>
    onFake(Effect.gen(function*() {
      const { send, server, service } = yield* setup()
      yield* send("CONFIG", "SET", "notify-keyspace-events", "Ex")
      const hints = yield* service.signals
      const expiries = Option.getOrThrow(yield* service.expiries)
      const next = yield* Effect.forkChild(Effect.all([hints.next, expiries.next]))
      yield* server.dropConnections()
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual<unknown>(yield* Fiber.join(next), [{ _tag: "Gap" }, { _tag: "Gap" }])
    })))

  it.effect("a hint that cannot be read is passed over", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const hints = yield* service.signals
      yield* send("PUBLISH", StreamKeys.signalChannel(name), "nonsense")
      yield* service.release(held)
      assert.deepInclude(yield* hints.next, { _tag: "Released", entry: held.entry })
    })))
})

describe("Cluster", () => {
  const cluster = Layer.fresh(RedisStreamStore.layer).pipe(
    Layer.provide(Layer.succeed(RedisTopology.RedisTopology, { _tag: "Cluster", primaries: Effect.succeed([]) })),
    Layer.provideMerge(TestRedis.layer())
  )

  it("slots are those of Redis", { tags: ["G24"] }, () => {
    // As CLUSTER KEYSLOT answers
    assert.strictEqual(slot("123456789"), 12739)
    assert.strictEqual(slot("somekey"), 11058)
    assert.strictEqual(slot("foo{hash_tag}"), 2515)
    assert.strictEqual(slot("foo{hash_tag}"), slot("{hash_tag}{other}"))
    assert.strictEqual(slot("{user1000}.following"), slot("user1000"))
    assert.notStrictEqual(slot("foo{}{bar}"), slot("bar"))
    assert.strictEqual(slot("foo{{bar}}zap"), slot("{bar"))
  })

  it.effect(
    "a service without a hash tag is refused, and a data stream in another slot too",
    () =>
      Effect.gen(function*() {
        const { open } = yield* StreamStore
        const { send } = yield* Redis
        const refused = yield* Effect.flip(open(ServiceName.make("orders")))
        assert.instanceOf(refused, InvalidConfig)
        const service = yield* open(name)
        assert.isTrue(Option.isNone(yield* service.expiries))
        const elsewhere = StreamName.make("{other}:one")
        const untagged = StreamName.make("orders")
        for (const stream of [elsewhere, untagged]) {
          const errors = [
            yield* Effect.flip(service.announce([{ stream: streamOf("one"), info: {} }, { stream, info: {} }])),
            yield* Effect.flip(service.find(stream)),
            yield* Effect.flip(service.checkpoint(stream)),
            yield* Effect.flip(service.messages(stream, EntryId.make("0-0"), 1)),
            yield* Effect.flip(service.awaitMessages(stream, EntryId.make("0-0"), 1))
          ]
          for (const error of errors) {
            assert.instanceOf(error, BackendError)
            assert.isTrue(error._tag === "BackendError" && !error.retryable, error.message)
          }
        }
        assert.strictEqual(yield* send("XLEN", input), 0)
        yield* send("XADD", input, "*", "lbs-input", JSON.stringify({ DataStreamName: elsewhere, Info: {} }))
        const [answer] = yield* service.announce([{ stream: streamOf("one"), info: {} }])
        const entries = yield* service.read({ consumer: a, count: 10, block: Duration.millis(1) })
        assert.deepStrictEqual(entries.map(({ _tag }) => _tag), ["Malformed", "Announced"])
        const request = { consumer: a, lease, minIdle: Duration.zero, maxFailures: 10 }
        const results = yield* service.take([
          { ...request, stream: elsewhere, entry: entries[0]!.entry, epoch: epoch() },
          { ...request, stream: streamOf("one"), entry: answer!.entry, epoch: epoch() }
        ])
        assert.deepStrictEqual(results.map(({ _tag }) => _tag), ["Failed", "Taken"])
        // On one server any name will do
        const single = yield* Effect.map(
          Layer.build(Layer.fresh(RedisStreamStore.layer)),
          (context) => Context.get(context, StreamStore)
        )
        yield* (yield* single.open(ServiceName.make("orders"))).announce([{ stream: untagged, info: {} }])
      }).pipe(Effect.provide(cluster)),
    { tags: ["G24"] }
  )
})

describe("outages", () => {
  it.effect("temporary errors are retried, and scripts may be forgotten", () =>
    onFake(Effect.gen(function*() {
      const { own, server, service } = yield* setup()
      const held = yield* own("one")
      for (const state of ["LOADING", "BUSY", "READONLY"] as const) {
        yield* server.setErrorState(state)
        const error = yield* Effect.flip(service.commit(held, EntryId.make("1-0")))
        assert.isTrue(error._tag === "BackendError" && error.retryable, `${state}: ${error.message}`)
        const renewal = yield* Effect.flip(service.renew([held], lease))
        assert.isTrue(renewal._tag === "BackendError" && renewal.retryable, `${state}: ${renewal.message}`)
        yield* server.setErrorState(undefined)
        yield* TestClock.adjust("200 millis")
      }
      yield* server.flushScripts
      assert.strictEqual(yield* service.done(held), "Done")
    })))

  it.effect(
    "a read whose connection breaks fails at once, and the next one works",
    () =>
      onFake(Effect.gen(function*() {
        const { server, service } = yield* setup()
        const read = service.read({ consumer: a, count: 1, block: Duration.minutes(1) })
        const first = yield* Effect.forkChild(Effect.flip(read), { startImmediately: true })
        yield* TestClock.adjust("10 millis")
        assert.strictEqual(yield* server.connections(), 2)
        yield* server.dropConnections()
        const error = yield* Fiber.join(first)
        assert.isTrue(error._tag === "BackendError" && error.retryable)
        yield* TestClock.adjust("1 second")
        yield* service.announce([{ stream: streamOf("one"), info: {} }])
        assert.strictEqual((yield* read).length, 1)
      })),
    { tags: ["G31"] }
  )

  it.effect("a read that is interrupted takes nothing with it", () =>
    onFake(Effect.gen(function*() {
      const { server, service } = yield* setup()
      const fiber = yield* Effect.forkChild(
        service.read({ consumer: a, count: 1, block: Duration.minutes(1) }),
        { startImmediately: true }
      )
      yield* TestClock.adjust("10 millis")
      assert.strictEqual(yield* server.connections(), 2)
      yield* Fiber.interrupt(fiber)
      yield* service.announce([{ stream: streamOf("one"), info: {} }])
      const entries = yield* service.read({ consumer: b, count: 1, block: Duration.millis(1) })
      assert.strictEqual(entries.length, 1)
    })), { tags: ["G31"] })
})

describe("waiting for messages", () => {
  const first = EntryId.make("0-0")

  it.effect("all who wait share one connection, which a newcomer does not wait for", () =>
    onFake(Effect.gen(function*() {
      const { send, server, service } = yield* setup()
      const before = yield* server.connections()
      const wait = (label: string) =>
        Effect.forkChild(service.awaitMessages(streamOf(label), first, 1), { startImmediately: true })
      const fibers = yield* Effect.forEach(Array.from({ length: 50 }, (_, i) => String(i)), wait)
      yield* TestClock.adjust("20 millis")
      yield* TestClock.adjust("20 millis")
      assert.strictEqual(yield* server.connections(), before + 1)
      assert.isTrue((yield* server.trace).some(({ args }) => args[0] === "CLIENT" && args[1] === "ID"))
      const late = yield* wait("late")
      yield* TestClock.adjust("20 millis")
      assert.strictEqual(yield* server.connections(), before + 1)
      yield* send("XADD", streamOf("late"), "*", "n", "1")
      assert.strictEqual((yield* Fiber.join(late)).length, 1)
      yield* send("XADD", streamOf("7"), "*", "n", "1")
      assert.strictEqual((yield* Fiber.join(fibers[7]!)).length, 1)
    })))

  it.effect("of several who wait for one data stream each gets what is after its own place", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      const wait = (after: string) =>
        Effect.forkChild(service.awaitMessages(streamOf("one"), EntryId.make(after), 10), { startImmediately: true })
      const [near, far] = [yield* wait("0-0"), yield* wait("5-0")]
      yield* TestClock.adjust("20 millis")
      yield* send("XADD", streamOf("one"), "3-0", "n", "3")
      assert.deepStrictEqual((yield* Fiber.join(near)).map(({ id }) => String(id)), ["3-0"])
      yield* send("XADD", streamOf("one"), "7-0", "n", "7")
      yield* TestClock.adjust("20 millis")
      assert.deepStrictEqual((yield* Fiber.join(far)).map(({ id }) => String(id)), ["7-0"])
    })))

  it.effect("who joins in an outage, and asks from further back than the read that goes on, misses nothing", () =>
    onFake(Effect.gen(function*() {
      const { send, server, service } = yield* setup()
      const wait = (after: string) =>
        Effect.forkChild(service.awaitMessages(streamOf("one"), EntryId.make(after), 10), { startImmediately: true })
      yield* send("XADD", streamOf("one"), "3-0", "n", "3")
      const far = yield* wait("5-0")
      yield* TestClock.adjust("20 millis")
      yield* TestClock.adjust("20 millis")
      yield* server.setErrorState("LOADING")
      const near = yield* wait("0-0")
      // It has been refused, and has not ended the read yet, a millisecond later
      yield* TestClock.adjust("100 micros")
      yield* server.setErrorState(undefined)
      yield* send("XADD", streamOf("one"), "7-0", "n", "7")
      yield* TestClock.adjust("20 millis")
      assert.deepStrictEqual((yield* Fiber.join(far)).map(({ id }) => String(id)), ["7-0"])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual((yield* Fiber.join(near)).map(({ id }) => String(id)), ["3-0", "7-0"])
    })))

  it.effect("it goes on for as long as it takes, and through an outage", () =>
    onFake(Effect.gen(function*() {
      const { send, server, service } = yield* setup()
      const one = yield* Effect.forkChild(service.awaitMessages(streamOf("one"), first, 1), { startImmediately: true })
      yield* TestClock.adjust("1 minute")
      yield* server.setErrorState("LOADING")
      yield* server.dropConnections()
      const two = yield* Effect.forkChild(service.awaitMessages(streamOf("two"), first, 1), { startImmediately: true })
      yield* TestClock.adjust("10 seconds")
      yield* server.setErrorState(undefined)
      yield* TestClock.adjust("2 seconds")
      yield* send("XADD", streamOf("one"), "*", "n", "1")
      yield* send("XADD", streamOf("two"), "*", "n", "2")
      yield* TestClock.adjust("10 millis")
      assert.strictEqual((yield* Fiber.join(one)).length, 1)
      assert.strictEqual((yield* Fiber.join(two)).length, 1)
    })))

  it.effect("a key of another type fails whoever waits for it, and nobody else", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      const bad = yield* Effect.forkChild(Effect.flip(service.awaitMessages(streamOf("bad"), first, 1)), {
        startImmediately: true
      })
      const good = yield* Effect.forkChild(service.awaitMessages(streamOf("good"), first, 1), {
        startImmediately: true
      })
      yield* TestClock.adjust("20 millis")
      yield* send("SET", streamOf("bad"), "no stream")
      yield* TestClock.adjust("10 seconds")
      const error = yield* Fiber.join(bad)
      assert.isTrue(error._tag === "BackendError" && !error.retryable)
      yield* send("XADD", streamOf("good"), "*", "n", "1")
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(good)).length, 1)
    })))

  it.effect("nobody waits: nothing is asked", () =>
    onFake(Effect.gen(function*() {
      const { send, server, service } = yield* setup()
      const one = yield* Effect.forkChild(service.awaitMessages(streamOf("one"), first, 1), { startImmediately: true })
      yield* TestClock.adjust("20 millis")
      yield* send("XADD", streamOf("one"), "*", "n", "1")
      yield* Fiber.join(one)
      yield* TestClock.adjust("10 seconds")
      yield* server.clearTrace
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* server.trace, [])
    })))
})
