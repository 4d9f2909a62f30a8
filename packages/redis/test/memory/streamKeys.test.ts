/** Which keys the data-stream scripts leave in Redis, and how many calls they take. */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import { type Ownership } from "@effect-simba/core/streams/StreamStore"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import * as StreamKeys from "../../src/streams/internal/keys.ts"
import { a, b, input, keysOf, lease, name, onFake, setup } from "../support/streamScriptSetup.ts"

describe("the data-stream scripts", () => {
  it.effect("`done` takes one call and leaves no lease keys", () =>
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

  it.effect("every key except the load-balancer stream has an expiry", () =>
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

  it.effect("the table of failures has an expiry even if a lease outlives it", () =>
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

  it.effect("a message is dead-lettered only once and only by its owner", () =>
    onFake(Effect.gen(function*() {
      const { own, send, service } = yield* setup()
      const held = yield* own("one")
      const message = { id: EntryId.make("2-0"), fields: [["x", "y"]] as const }
      const deadLetter = (held: Ownership) => service.deadLetterMessage(held, message, "why")
      assert.deepStrictEqual(
        [
          yield* deadLetter({ ...held, token: (held.token + 1) as typeof held.token }),
          yield* deadLetter(held),
          yield* deadLetter(held)
        ],
        ["NotOwner", "DeadLettered", "DeadLettered"]
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

  it.effect("dead letters are limited to about 10,000 and expire after 30 days", () =>
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
    "a yield makes the entry idle but keeps it pending, and lets its lease expire with an event",
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
        // An access triggers the event, even if the server would notice the expiry much later
        yield* TestClock.adjust("5 millis")
        const { stream } = held
        assert.deepStrictEqual(yield* Fiber.join(event), { _tag: "Expired", stream, entry: held.entry })
      })),
    { tags: ["G20"] }
  )

  it.effect("a renewal takes one call per 200 data streams", () =>
    onFake(Effect.gen(function*() {
      const { announceMany, scriptCalls, server, service } = yield* setup()
      const requests = yield* announceMany(1000)
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
