/** The stream store on the fake server: hand-overs, events, Cluster slots, outages and blocking reads. */
import { BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import { ServiceName, StreamStore } from "@effect-simba/core/streams/StreamStore"
import * as RedisTopology from "@effect-simba/redis/RedisTopology"
import * as RedisStreams from "@effect-simba/redis/streams/RedisStreams"
import * as TestRedis from "@effect-simba/testkit/TestRedis"
import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, Exit, Fiber, Layer, Option } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import { slot } from "../../src/internal/client/clusterSlot.ts"
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import { a, b, epoch, input, lease, name, onFake, setup, streamOf } from "../support/streamScriptSetup.ts"

describe("hand-overs", () => {
  const to = { consumer: b, session: "s00000000000" }
  const confirm = Duration.millis(1500)

  it.effect("a hand-over that expires counts as a failure only if it was confirmed", () =>
    onFake(Effect.gen(function*() {
      const { ask, own, service } = yield* setup()
      for (const isConfirmed of [false, true]) {
        const held = yield* own(String(isConfirmed))
        yield* service.handOver(held, to, confirm)
        if (isConfirmed) {
          const [received] = yield* service.handedOver(b, to.session)
          assert.deepStrictEqual(yield* service.renew([received!], confirm), [{ _tag: "Renewed" }])
        }
        yield* TestClock.adjust("2 seconds")
        const repeated = yield* ask(held.stream, held.entry)
        assert.strictEqual(repeated._tag === "Taken" ? repeated.failures : repeated._tag, isConfirmed ? 1 : 0)
      }
    })))

  it.effect("when a receiver soon releases or finishes a data stream, no failure is counted and no hand-over remains", () =>
    onFake(Effect.gen(function*() {
      const { ask, own, server, service } = yield* setup()
      const [one, two] = [yield* own("one"), yield* own("two")]
      yield* service.handOver(one, to, confirm)
      yield* service.handOver(two, to, confirm)
      const [first, second] = yield* service.handedOver(b, to.session)
      assert.strictEqual(yield* service.release(first!), "Released")
      assert.strictEqual(yield* service.done(second!), "Done")
      assert.deepStrictEqual(yield* service.handedOver(b, to.session), [])
      const repeated = yield* ask(one.stream, one.entry)
      assert.strictEqual(repeated._tag === "Taken" ? repeated.failures : repeated._tag, 0)
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
    "only `enableEvents` changes the server's setting, and it keeps existing flags",
    () =>
      onFake(Effect.gen(function*() {
        const { open } = yield* StreamStore
        const { send } = yield* Redis
        yield* send("CONFIG", "SET", "notify-keyspace-events", "Eg")
        const service = yield* open(name)
        assert.isTrue(Option.isNone(yield* service.expiries))
        assert.sameMembers([...(yield* flags)[1]!], ["g", "E"])
        yield* open(name, { enableEvents: true })
        assert.sameMembers([...(yield* flags)[1]!], ["g", "x", "K", "E"])
        assert.isTrue(Option.isSome(yield* service.expiries))
        yield* send("CONFIG", "SET", "notify-keyspace-events", "AE")
        yield* open(name, { enableEvents: true })
        assert.sameMembers([...(yield* flags)[1]!], ["A", "K", "E"])
      })),
    { tags: ["G21"] }
  )

  it.effect(
    "a service opens even if the setting can be neither read nor changed",
    () =>
      Effect.gen(function*() {
        const { open } = yield* StreamStore
        const service = yield* open(name, { enableEvents: true })
        // The service subscribes anyway, because events may be enabled already
        assert.isTrue(Option.isSome(yield* service.expiries))
      }).pipe(
        Effect.provide(RedisStreams.layerStore.pipe(
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

  it.effect("a service receives events from its connection's database", () =>
    Effect.gen(function*() {
      const { open } = yield* StreamStore
      const { send } = yield* Redis
      yield* send("CONFIG", "SET", "notify-keyspace-events", "Ex")
      const service = yield* open(name)
      const expiries = Option.getOrThrow(yield* service.expiries)
      const key = StreamKeys.entryLease(streamOf("one"), EntryId.make("5-0"))
      // G23: other programs' keys expire too
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
    }).pipe(Effect.provide(RedisStreams.layerStore.pipe(Layer.provideMerge(TestRedis.layer({ db: 3 }))))), {
    tags: ["G22"]
  })

  it.effect("a broken connection is reported as a gap in both hints and expiries", () =>
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

  it.effect("a malformed hint is skipped", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const hints = yield* service.signals
      yield* send("PUBLISH", StreamKeys.signalChannel(name), "nonsense")
      yield* service.release(held)
      assert.deepInclude(yield* hints.next, { _tag: "Released", entry: held.entry })
    })))
})

describe("on a Cluster", () => {
  const cluster = Layer.fresh(RedisStreams.layerStore).pipe(
    Layer.provide(Layer.succeed(RedisTopology.RedisTopology, { _tag: "Cluster", primaries: Effect.succeed([]) })),
    Layer.provideMerge(TestRedis.layer())
  )

  it("slots are the same as in Redis", { tags: ["G24"] }, () => {
    // The values that CLUSTER KEYSLOT returns
    assert.strictEqual(slot("123456789"), 12739)
    assert.strictEqual(slot("somekey"), 11058)
    assert.strictEqual(slot("foo{hash_tag}"), 2515)
    assert.strictEqual(slot("foo{hash_tag}"), slot("{hash_tag}{other}"))
    assert.strictEqual(slot("{user1000}.following"), slot("user1000"))
    assert.notStrictEqual(slot("foo{}{bar}"), slot("bar"))
    assert.strictEqual(slot("foo{{bar}}zap"), slot("{bar"))
  })

  it.effect(
    "refuses a service without a hash tag, and a data stream in another slot",
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
            assert.isTrue(error._tag === "BackendError" && !error.isRetryable, error.message)
          }
        }
        assert.strictEqual(yield* send("XLEN", input), 0)
        yield* send("XADD", input, "*", "lbs-input", JSON.stringify({ DataStreamName: elsewhere, Info: {} }))
        const [reply] = yield* service.announce([{ stream: streamOf("one"), info: {} }])
        const entries = yield* service.read({ consumer: a, count: 10, block: Duration.millis(1) })
        assert.deepStrictEqual(entries.map(({ _tag }) => _tag), ["Malformed", "Announced"])
        const request = { consumer: a, lease, minIdle: Duration.zero, maxFailures: 10 }
        const foreign = { ...request, stream: elsewhere, entry: entries[0]!.entry, epoch: epoch() }
        const own = { ...request, stream: streamOf("one"), entry: reply!.entry, epoch: epoch() }
        const refusal = yield* Effect.flip(service.take([own, foreign]))
        assert.isTrue(refusal._tag === "BackendError" && !refusal.isRetryable, refusal.message)
        assert.isNull(yield* send("GET", StreamKeys.streamLease(own.stream)))
        assert.strictEqual((yield* service.take([own]))[0]!._tag, "Taken")
        // On a single server, any name is valid
        const single = yield* Effect.map(
          Layer.build(Layer.fresh(RedisStreams.layerStore)),
          (context) => Context.get(context, StreamStore)
        )
        yield* (yield* single.open(ServiceName.make("orders"))).announce([{ stream: untagged, info: {} }])
      }).pipe(Effect.provide(cluster)),
    { tags: ["G24"] }
  )
})

describe("outages", () => {
  it.effect("temporary errors are retryable, and forgotten scripts are loaded again", () =>
    onFake(Effect.gen(function*() {
      const { own, server, service } = yield* setup()
      const held = yield* own("one")
      for (const state of ["LOADING", "BUSY", "READONLY"] as const) {
        yield* server.setErrorState(state)
        const error = yield* Effect.flip(service.commit(held, EntryId.make("1-0")))
        assert.isTrue(error._tag === "BackendError" && error.isRetryable, `${state}: ${error.message}`)
        const renewal = yield* Effect.flip(service.renew([held], lease))
        assert.isTrue(renewal._tag === "BackendError" && renewal.isRetryable, `${state}: ${renewal.message}`)
        yield* server.setErrorState(undefined)
        yield* TestClock.adjust("200 millis")
      }
      yield* server.flushScripts
      assert.strictEqual(yield* service.done(held), "Done")
    })))

  it.effect("a handler's request does not wait forever if the provider of `Redis` loses a reply", () => {
    const lost = new Set<string>()
    const losing = Layer.effect(
      Redis,
      Effect.map(Redis, (redis) => ({
        ...redis,
        send: <A>(command: string, ...args: ReadonlyArray<string>) =>
          Effect.suspend(() => {
            const isLost = lost.delete(command)
            return Effect.tap(redis.send<A>(command, ...args), () => isLost ? Effect.never : Effect.void)
          })
      }))
    )
    const layer = RedisStreams.layerStore.pipe(Layer.provideMerge(losing), Layer.provideMerge(TestRedis.layer()))
    return Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* service.renew([held], Duration.minutes(1))
      const id = EntryId.make("1-0")
      yield* send("XADD", held.stream, id, "n", "1")
      lost.add("XRANGE")
      const waiting = yield* Effect.forkChild(service.awaitMessages(held.stream, EntryId.make("0-0"), 1))
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(waiting.pollUnsafe(), Exit.succeed([{ id, fields: [["n", "1"]] }]))
      yield* service.commit(held, id)
      lost.add("EVALSHA")
      const committing = yield* Effect.forkChild(Effect.flip(service.commit(held, id)))
      yield* TestClock.adjust("10 seconds")
      const error = committing.pollUnsafe()
      assert(error !== undefined && Exit.isSuccess(error) && error.value._tag === "BackendError")
      assert.isTrue(error.value.isRetryable)
      assert.strictEqual(yield* service.commit(held, id), "Behind")
    }).pipe(Effect.provide(layer))
  })

  it.effect(
    "a read fails immediately when its connection breaks, and the next read works",
    () =>
      onFake(Effect.gen(function*() {
        const { server, service } = yield* setup()
        const read = service.read({ consumer: a, count: 1, block: Duration.minutes(1) })
        const first = yield* Effect.forkChild(Effect.flip(read), { startImmediately: true })
        yield* TestClock.adjust("10 millis")
        assert.strictEqual(yield* server.connections(), 2)
        yield* server.dropConnections()
        const error = yield* Fiber.join(first)
        assert.isTrue(error._tag === "BackendError" && error.isRetryable)
        yield* TestClock.adjust("1 second")
        yield* service.announce([{ stream: streamOf("one"), info: {} }])
        assert.strictEqual((yield* read).length, 1)
      })),
    { tags: ["G31"] }
  )

  it.effect("an interrupted read does not consume an announcement", () =>
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

  it.effect("all waiters share one connection, and a new one joins without waiting for the current read", () =>
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

  it.effect("several waiters for one data stream each get the messages after their own position", () =>
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

  it.effect("a waiter misses nothing if it joins during an outage with a position before the current read's", () =>
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
      // The waiter's own read was refused, but the waiter will not unblock the current read for another millisecond
      yield* TestClock.adjust("100 micros")
      yield* server.setErrorState(undefined)
      yield* send("XADD", streamOf("one"), "7-0", "n", "7")
      yield* TestClock.adjust("20 millis")
      assert.deepStrictEqual((yield* Fiber.join(far)).map(({ id }) => String(id)), ["7-0"])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual((yield* Fiber.join(near)).map(({ id }) => String(id)), ["3-0", "7-0"])
    })))

  it.effect("a waiter waits indefinitely, even through an outage", () =>
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

  it.effect("a key of the wrong type fails only the waiters for it", () =>
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
      assert.isTrue(error._tag === "BackendError" && !error.isRetryable)
      yield* send("XADD", streamOf("good"), "*", "n", "1")
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(good)).length, 1)
    })))

  it.effect("no request is sent while nobody is waiting", () =>
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
