/** How the data-stream scripts treat entries and keys that other programs write, delete or overwrite. */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import { type Ownership, ServiceName, StreamStore } from "@effect-simba/core/streams/StreamStore"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Option } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import { committed } from "../support/streams.ts"
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

describe("writes by other programs", () => {
  it.effect(
    "unreadable entries are reported along with readable ones, and only their consumer can dead-letter them",
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
        // The redriven entry is unchanged, so it is still malformed
        assert.isTrue(yield* service.redrive(letters[0]!.id))
        assert.strictEqual((yield* read())[0]!._tag, "Malformed")
        assert.strictEqual(yield* send("EXISTS", StreamKeys.announced(name)), 0)
      })),
    { tags: ["G2"] }
  )

  it.effect("finishing a foreign announcement does not lose a later one for the same data stream", () =>
    onFake(Effect.gen(function*() {
      const { read, send, service } = yield* setup()
      const stream = streamOf("one")
      const announcement = { stream, info: {} }
      const text = JSON.stringify({ DataStreamName: stream, Info: {} })
      const first = EntryId.make(String(yield* send("XADD", input, "*", "lbs-input", text)))
      const [second] = yield* service.announce([announcement])
      yield* read()
      const request = {
        stream,
        entry: first,
        consumer: a,
        epoch: epoch(),
        lease,
        minIdle: Duration.zero,
        maxFailures: 10
      }
      const [taken] = yield* service.take([request])
      assert(taken?._tag === "Taken")
      assert.strictEqual(yield* service.done({ ...request, token: taken.token }), "Done")
      assert.deepStrictEqual(yield* service.announce([announcement]), [{ entry: second!.entry, isNew: false }])
    })))

  it.effect("a pause under an invalid name does not hide other pauses", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      yield* service.setPaused(streamOf("one"), true)
      yield* send("HSET", StreamKeys.paused(name), " ", "1")
      const paused = { service: false, streams: [streamOf("one")] }
      assert.deepStrictEqual(yield* service.paused, paused)
      assert.deepStrictEqual((yield* service.inspect).paused, paused)
    })))

  it.effect("after a redrive, a commit does not reset the checkpoint's dead-letter retention", () =>
    onFake(Effect.gen(function*() {
      const { ask, own, read, send, service } = yield* setup()
      const held = yield* own("one")
      yield* service.commit(held, EntryId.make("1-0"))
      yield* service.deadLetter(held, "poison")
      const [letter] = yield* service.deadLetters(undefined, 1)
      yield* service.redrive(letter!.id)
      const [repeated] = yield* read()
      const taken = yield* ask(held.stream, repeated!.entry)
      assert.strictEqual(taken._tag, "Taken")
      const value = String(yield* send("GET", StreamKeys.streamLease(held.stream)))
      const [consumer, epoch] = value.split("@@")
      const next = {
        ...held,
        entry: repeated!.entry,
        consumer,
        epoch,
        token: Number(value.split("@@")[2])
      } as Ownership
      assert.strictEqual(yield* service.commit(next, EntryId.make("2-0")), "Committed")
      const left = Number(yield* send("PTTL", StreamKeys.checkpoint(held.stream)))
      assert.isAbove(left, Duration.toMillis("29 days"))
    })))

  it.effect(
    "a deleted entry cannot be taken or renewed, and stops being pending",
    () =>
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
      })),
    { tags: ["B50"] }
  )

  it.effect(
    "two entries for one data stream are owned one after another",
    () =>
      onFake(Effect.gen(function*() {
        const { ask, own, send, service } = yield* setup()
        const held = yield* own("one")
        const payload = JSON.stringify({ DataStreamName: held.stream, Info: {} })
        const entry = EntryId.make(yield* send<string>("XADD", input, "*", "lbs-input", payload))
        yield* service.read({ consumer: b, count: 1, block: Duration.millis(1) })
        const refused = yield* ask(held.stream, entry, b)
        assert.strictEqual(refused._tag === "Occupied" ? refused.owner : refused._tag, a)
        assert.strictEqual(yield* service.done(held), "Done")
        const second = yield* ask(held.stream, entry, b)
        assert.isTrue(second._tag === "Taken" && second.token > held.token)
        assert.strictEqual(yield* send("XLEN", input), 1)
      })),
    { tags: ["G8"] }
  )

  it.effect("a Go consumer's lock prevents a take, and the reply names the Go consumer", () =>
    onFake(Effect.gen(function*() {
      const { ask, read, send, service } = yield* setup()
      const [reply] = yield* service.announce([{ stream: streamOf("one"), info: {} }])
      yield* read()
      yield* send("SET", StreamKeys.entryLease(streamOf("one"), reply!.entry), "redis-consumer-go", "PX", "2000")
      const refused = yield* ask(streamOf("one"), reply!.entry)
      assert.strictEqual(refused._tag === "Occupied" ? refused.owner : refused._tag, "redis-consumer-go")
      yield* TestClock.adjust("2100 millis")
      assert.strictEqual((yield* ask(streamOf("one"), reply!.entry))._tag, "Taken")
    })))

  it.effect("a lease is lost if another owner has one of its two keys; the other key expires", () =>
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
      // The other key stays until it expires, because the owner keeps working until the reply arrives
      const left = (key: string) => send<number>("PTTL", key)
      assert.strictEqual(yield* left(keysOf(one).entryLease), Duration.toMillis(lease))
      assert.strictEqual(yield* left(keysOf(two).streamLease), Duration.toMillis(lease))
      yield* TestClock.adjust(Duration.sum(lease, Duration.millis(1)))
      assert.strictEqual(yield* send("EXISTS", keysOf(one).entryLease, keysOf(two).streamLease), 0)
    })))

  it.effect("a late, repeated take of a deleted entry does not end the current lease", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const [one, two] = [yield* own("one"), yield* own("two")]
      yield* send("XDEL", input, one.entry, two.entry)
      yield* send("XACK", input, group, two.entry)
      const requests = [one, two].map((held) => ({ ...held, lease, minIdle: Duration.zero, maxFailures: 10 }))
      assert.deepStrictEqual(yield* service.take(requests), [{ _tag: "Gone" }, { _tag: "Gone" }])
      for (const held of [one, two]) {
        assert.strictEqual(yield* service.commit(held, EntryId.make("1-0")), "Committed")
      }
    })))

  it.effect("an owner can move a checkpoint that another program wrote with additional parts", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* send("SET", StreamKeys.checkpoint(held.stream), "4-0@@@@4@@more")
      const observed = Option.getOrThrow(yield* service.checkpoint(held.stream))
      const to = { id: EntryId.make("2-0"), offset: 2 }
      assert.strictEqual(yield* service.seek(held.stream, to, { owner: held, from: observed.id }), "Moved")
    })))

  it.effect("tokens grow even if the server's clock is set back", () =>
    onFake(Effect.gen(function*() {
      const { ask, own, server, service } = yield* setup()
      const held = yield* own("one")
      yield* server.stepClock("-1 hour")
      yield* service.release(held)
      const repeated = yield* ask(held.stream, held.entry)
      assert.deepStrictEqual<unknown>(repeated, { _tag: "Taken", token: held.token + 1, failures: 0 })
      const other = yield* own("two")
      yield* server.stepClock("-1 hour")
      yield* service.handOver(other, { consumer: b, session: "s00000000000" }, lease)
      const [received] = yield* service.handedOver(b, "s00000000000")
      assert.strictEqual<number>(received!.token, other.token + 1)
      yield* service.release(received!)
      const last = yield* ask(other.stream, other.entry)
      assert.deepStrictEqual<unknown>(last, { _tag: "Taken", token: other.token + 2, failures: 0 })
    })))

  it.effect("a checkpoint is kept while its data stream is taken at least every seven days", () =>
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
        const [repeated] = yield* service.take([request])
        if (repeated!._tag === "Taken") held = { ...request, token: repeated!.token }
      }
      assert.deepStrictEqual(yield* committed(service, held.stream), Option.some(EntryId.make("5-0")))
      yield* TestClock.adjust("8 days")
      assert.isTrue(Option.isNone(yield* committed(service, held.stream)))
    })))

  it.effect("the owner's requests, hand-overs and dead letters extend a checkpoint's retention", () =>
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
      const [received] = yield* service.handedOver(b, "s00000000001")
      held = received!
      const daysOfSecond = send<number>("PTTL", StreamKeys.checkpoint(held.stream))
      assert.isAbove(yield* daysOfSecond, 6 * 86_400_000)
      assert.strictEqual(yield* service.deadLetter(held, "poison"), "DeadLettered")
      assert.isAbove(yield* daysOfSecond, 29 * 86_400_000)
    })))

  it.effect("if too many leases expired, the checkpoint is kept as long as the dead letter", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* service.commit(held, EntryId.make("5-0"))
      yield* TestClock.adjust("3 seconds")
      const request = { ...held, epoch: epoch(), lease, minIdle: Duration.zero, maxFailures: 1 }
      assert.strictEqual((yield* service.take([request]))[0]!._tag, "DeadLettered")
      assert.isAbove(yield* send<number>("PTTL", StreamKeys.checkpoint(held.stream)), 29 * 86_400_000)
      assert.strictEqual(yield* send<number>("HLEN", StreamKeys.announced(name)), 0)
    })))

  it.effect("two services that announce the same data stream own it alternately and share its checkpoint", () =>
    onFake(Effect.gen(function*() {
      const { own, service } = yield* setup()
      const { open } = yield* StreamStore
      const other = yield* open(ServiceName.make("{orders}-audit"))
      yield* other.prepare
      const held = yield* own("one")
      const [reply] = yield* other.announce([{ stream: held.stream, info: {} }])
      const { entry } = reply!
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
      assert.deepStrictEqual(yield* committed(other, held.stream), Option.some(EntryId.make("5-0")))
    })))

  it.effect("a lease key without an expiry blocks the data stream", () =>
    onFake(Effect.gen(function*() {
      const { ask, read, send, service } = yield* setup()
      const [reply] = yield* service.announce([{ stream: streamOf("one"), info: {} }])
      yield* read()
      yield* send("SET", StreamKeys.entryLease(streamOf("one"), reply!.entry), "redis-consumer-go")
      const refused = yield* ask(streamOf("one"), reply!.entry)
      assert.isTrue(refused._tag === "Occupied" && !Duration.isFinite(refused.timeLeft))
    })))

  it.effect(
    "a renewal claims an entry back from another consumer",
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

  it.effect("a deleted group is recreated without ending any ownership", () =>
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

  it.effect("a renewal makes owned entries pending in a new group, even one that starts after them, so `reap` keeps them", () =>
    onFake(Effect.gen(function*() {
      const { own, pending, send, service } = yield* setup()
      const held = yield* own("one")
      yield* service.reap(Duration.days(1))
      yield* send("XGROUP", "DESTROY", input, group)
      yield* send("XGROUP", "CREATE", input, group, "$")
      assert.deepStrictEqual(yield* service.renew([held], lease), [{ _tag: "Renewed" }])
      assert.deepStrictEqual(yield* pending, [held.entry])
      assert.deepStrictEqual(yield* service.reap(Duration.days(1)), { consumers: 0, entries: 0 })
      assert.strictEqual(yield* service.done(held), "Done")
    })))

  it.effect("an unfinished announcement's failures are kept", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      yield* service.fail(held)
      yield* service.release(held)
      for (let i = 0; i < 3; i++) {
        yield* TestClock.adjust("5 days")
        yield* service.reap(Duration.days(30))
      }
      assert.match(String(yield* send("HGET", StreamKeys.failures(name), held.entry)), /^1[|]/)
    })))

  it.effect("an announcement's record is deleted when the announcement is done or dead-lettered", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      for (const label of ["done", "dead"]) {
        const held = yield* own(label)
        yield* service.fail(held, { attempt: 1 })
        assert.isAbove(yield* send<number>("HLEN", StreamKeys.failures(name)), 0)
        yield* label === "done" ? service.done(held) : service.deadLetter(held, "it does not work")
        assert.strictEqual(yield* send<number>("HLEN", StreamKeys.failures(name)), 0)
        assert.strictEqual(yield* send<number>("HLEN", StreamKeys.announced(name)), 0)
      }
    })))

  it.effect("the next attempt writes a dead letter that could not be written", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const message = { id: EntryId.make("5-0"), fields: [["n", "5"]] as const }
      yield* send("RPUSH", StreamKeys.deadMessages(held.stream), "x")
      yield* Effect.flip(service.deadLetterMessage(held, message, "poison"))
      assert.isTrue(Option.isNone(yield* committed(service, held.stream)))
      yield* send("DEL", StreamKeys.deadMessages(held.stream))
      assert.strictEqual(yield* service.deadLetterMessage(held, message, "poison"), "DeadLettered")
      assert.strictEqual(yield* send("XLEN", StreamKeys.deadMessages(held.stream)), 1)
    })))

  it.effect("a message with more fields than a Lua call can pass is dead-lettered", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const fields = Array.from({ length: 5000 }, (_, i) => [`n${i}`, String(i)] as const)
      const message = { id: EntryId.make("5-0"), fields }
      assert.strictEqual(yield* service.deadLetterMessage(held, message, "too much"), "DeadLettered")
      const [[, letter]] = (yield* send("XRANGE", StreamKeys.deadMessages(held.stream), "-", "+")) as [
        [string, ReadonlyArray<string>]
      ]
      assert.strictEqual(letter[0], "simba-fields")
      assert.deepStrictEqual(JSON.parse(letter[1]!), fields.flat())
    })))

  it.effect("an announcement with more fields than a Lua call can pass is redriven unchanged", () =>
    onFake(Effect.gen(function*() {
      const { read, send, service } = yield* setup()
      const payload = JSON.stringify({ DataStreamName: "{orders}:one", Info: { n: 1 } })
      const more = Array.from({ length: 4000 }, (_, i) => [`n${i}`, String(i)] as const)
      const fields = [...more, ["lbs-input", payload] as const]
      yield* send("XADD", input, "*", ...fields.flat())
      const content = { _tag: "Announced", stream: streamOf("one"), info: { n: 1 } }
      for (let round = 0; round < 2; round++) {
        const [entry] = yield* read()
        assert.deepInclude(entry as object, content)
        assert.isTrue(yield* service.deadLetterMalformed(entry!.entry, a, "too much"))
        const [letter] = yield* service.deadLetters(undefined, 10)
        assert.deepInclude(letter as object, { entry: entry!.entry, stream: content.stream })
        if (round === 0) assert.deepStrictEqual<unknown>(letter!.fields, fields)
        assert.isTrue(yield* service.redrive(letter!.id))
      }
      assert.deepInclude((yield* read())[0] as object, content)
    })))

  it.effect("a dead message whose only field is named `simba-fields` is redriven unchanged", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const message = { id: EntryId.make("5-0"), fields: [["simba-fields", "text"]] as const }
      assert.strictEqual(yield* service.deadLetterMessage(held, message, "poison"), "DeadLettered")
      const [letter] = yield* service.deadMessages(held.stream, undefined, 10)
      assert.deepInclude(letter as object, { message: message.id, fields: message.fields })
      assert.isTrue(yield* service.redriveMessage(held.stream, letter!.id))
      const [[, fields]] = (yield* send("XRANGE", held.stream, "-", "+")) as [[string, ReadonlyArray<string>]]
      assert.deepStrictEqual<unknown>(fields, message.fields.flat())
    })))

  it.effect("a take creates a missing group and reports the entry as undelivered", () =>
    onFake(Effect.gen(function*() {
      const { ask, read, send, service } = yield* setup()
      const [reply] = yield* service.announce([{ stream: streamOf("one"), info: {} }])
      yield* read()
      yield* send("XGROUP", "DESTROY", input, group)
      assert.strictEqual((yield* ask(streamOf("one"), reply!.entry))._tag, "Undelivered")
      assert.isFalse(yield* service.prepare)
      assert.strictEqual((yield* read())[0]!.entry, reply!.entry)
    })))

  it.effect("FLUSHALL ends the ownership of data streams but not the service", () =>
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

  it.effect("a foreign announcement is found until it is finished", () =>
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

  it.effect("entries that Go consumers finish do not block the next announcement", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const repeated = Effect.map(service.announce([{ stream: held.stream, info: {} }]), ([reply]) => reply!)
      assert.isFalse((yield* repeated).isNew)
      // The Go client acknowledges the entry but crashes before deleting it
      yield* send("XACK", input, group, held.entry)
      const second = yield* repeated
      assert.isTrue(second.isNew)
      yield* service.read({ consumer: a, count: 1, block: Duration.millis(1) })
      yield* send("XACK", input, group, second.entry)
      yield* send("XDEL", input, second.entry)
      assert.isTrue((yield* repeated).isNew)
    })))

  it.effect(
    "`reap` deletes acknowledged entries unless another group may need them",
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

  it.effect("`reap` deletes a large backlog of acknowledged entries in pages", () =>
    onFake(Effect.gen(function*() {
      const { announceMany, own, send, service } = yield* setup()
      const announced = yield* announceMany(1203)
      yield* send("XACK", input, group, ...announced.filter((_, i) => i % 3 > 0).map(({ entry }) => entry))
      yield* own("more")
      assert.deepStrictEqual(yield* service.reap(Duration.days(1)), { consumers: 0, entries: 802 })
      assert.strictEqual(yield* send("XLEN", input), 402)
    })), { tags: ["B53"] })

  it.effect("`reap` keeps pending entries even if many other pending entries were deleted", () =>
    onFake(Effect.gen(function*() {
      const { announceMany, own, send, service } = yield* setup()
      const announced = yield* announceMany(1100)
      yield* own("more")
      yield* send("XDEL", input, ...announced.slice(5, 605).map(({ entry }) => entry))
      assert.deepStrictEqual(yield* service.reap(Duration.days(1)), { consumers: 0, entries: 0 })
      assert.strictEqual(yield* send("XLEN", input), 501)
    })))

  it.effect(
    "`reap` forgets only entries that Go consumers have finished",
    () =>
      onFake(Effect.gen(function*() {
        const { announceMany, own, send, service } = yield* setup()
        const announced = yield* announceMany(1100)
        const results = yield* service.take(announced)
        for (const [i, result] of results.entries()) {
          if (result._tag === "Taken") yield* service.release({ ...announced[i]!, token: result.token })
        }
        const kept = yield* own("kept")
        for (const { entry } of announced) {
          yield* send("XACK", input, group, entry)
          yield* send("XDEL", input, entry)
        }
        yield* service.reap(Duration.days(1))
        const fields = yield* send<ReadonlyArray<string>>("HKEYS", StreamKeys.failures(name))
        assert.deepStrictEqual([...fields].sort(), [`${kept.entry}:busy`])
        assert.deepStrictEqual(yield* send("HKEYS", StreamKeys.announced(name)), [kept.stream])
      })),
    { tags: ["B53"] }
  )

  it.effect("undelivered announcements do not count as finished if their group was recreated at a later position", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      yield* service.done(yield* own("read"))
      yield* service.announce(["one", "two"].map((label) => ({ stream: streamOf(label), info: {} })))
      for (const remake of [send("XGROUP", "CREATE", input, group, "$"), service.prepare]) {
        yield* send("XGROUP", "DESTROY", input, group)
        yield* remake
        for (let i = 0; i < 2; i++) assert.strictEqual((yield* service.reap(Duration.zero)).entries, 0)
        assert.strictEqual(yield* send("XLEN", input), 2)
      }
      assert.lengthOf(yield* service.read({ consumer: a, count: 9, block: Duration.millis(1) }), 2)
      // The group's mark does not count as a consumer
      assert.deepStrictEqual((yield* service.inspect).consumers.map(({ name }) => name), [a])
    })))

  it.effect("the load-balancer stream cannot be announced as a data stream in its own service", () =>
    onFake(Effect.gen(function*() {
      const { send, service } = yield* setup()
      const error = yield* Effect.flip(service.announce([{ stream: input as never, info: {} }]))
      assert.isTrue(error._tag === "BackendError" && !error.isRetryable)
      assert.include(error.message, "is the load-balancer stream of service")
      assert.strictEqual(yield* send("EXISTS", input), 1)
      assert.strictEqual(yield* send("XLEN", input), 0)
    })))

  it.effect("entries that precede a group created by another program do not count as finished", () =>
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
    "a key of the wrong type fails only the take of its own data stream, and that take changes nothing",
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
        assert.isTrue(first._tag === "Failed" && first.error._tag === "BackendError" && !first.error.isRetryable)
        const keys = (yield* server.keys).map(({ key }) => key)
        assert.isFalse(keys.includes(StreamKeys.streamLease(streams[0]!)))
        assert.isFalse(keys.includes(StreamKeys.entryLease(streams[0]!, entries[0]!.entry)))
        assert.isFalse(keys.includes(StreamKeys.entryLease(streams[1]!, entries[1]!.entry)))
        assert.deepStrictEqual((yield* xpending).map(([, consumer]) => consumer), [b, b, b, a])
      })),
    { tags: ["G25"] }
  )
})
