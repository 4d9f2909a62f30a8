/** Tests the rebalancer: its registrations, revocations, log lines and confirmations. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as fleet from "../support/streamFleet.ts"

const count = (consumer: fleet.Consumer) => Effect.map(consumer.client.owned, ({ length }) => length)

const pair = Effect.gen(function*() {
  const made = yield* fleet.make
  return {
    ...made,
    a: yield* made.open("a", { rebalance: true }),
    b: yield* made.open("b", { rebalance: true })
  }
})

const yields = (lease: fleet.Lease) => Effect.andThen(lease.revoked, lease.yield)

describe("a member's registration", () => {
  it.effect("a registration lasts for four heartbeats", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* pair
      yield* a.serve(1)
      yield* TestClock.adjust("10 millis")
      assert.strictEqual(backend.members.get("simba-consumer-a")!.until - backend.now(), 3990)
    })))

  it.effect("a data stream is no longer registered once its handler finishes on revocation", () =>
    fleet.test(Effect.gen(function*() {
      const { a, b, backend } = yield* pair
      yield* a.serve(3, (lease) => lease.revoked)
      yield* TestClock.adjust("20 seconds")
      yield* b.start(b.client.run(Effect.never))
      while (backend.done.length < 2) yield* TestClock.adjust("100 millis")
      yield* TestClock.adjust("1100 millis")
      assert.deepStrictEqual([backend.members.get("simba-consumer-a")!.owned, yield* count(a)], [1, 1])
    })))
})

describe("choosing data streams", () => {
  it.effect("data streams are not revoked for other members if they were claimed by name", () =>
    fleet.test(Effect.gen(function*() {
      const { a, b, backend, lines } = yield* pair
      yield* a.client.announceAll(fleet.names(4))
      for (const row of backend.rows) row.owner = "redis-consumer-gone"
      yield* TestClock.adjust("3 seconds")
      for (const { stream } of fleet.names(4)) yield* a.acquire(stream)
      const leases = yield* a.client.owned
      assert.lengthOf(leases, 4)
      yield* a.start(a.client.run(Effect.never))
      yield* b.start(b.client.run(Effect.never))
      yield* TestClock.adjust("1 minute")
      for (const lease of leases) assert.isFalse(yield* lease.isRevoked)
      assert.notInclude(lines.join(), "revoked for")
    })))
})

describe("a revocation that the handler ignores", () => {
  it.effect("a revocation is not withdrawn while all other handlers are also processing messages", () =>
    fleet.test(Effect.gen(function*() {
      const { lines, open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true, gracePeriod: "3 seconds" })
      const b = yield* open("b", { rebalance: true })
      yield* a.serve(2, (lease) =>
        Effect.timeoutOption(lease.messagesAfter("0-0" as never, 1), "10 millis").pipe(
          Effect.andThen(Effect.sleep("1 hour"))
        ))
      yield* TestClock.adjust("20 seconds")
      yield* b.start(b.client.run(Effect.never))
      yield* TestClock.adjust("20 seconds")
      assert.lengthOf(lines.filter((line) => line.includes("revoked for")), 1)
      const isRevoked = yield* Effect.forEach(yield* a.client.owned, (lease) => lease.isRevoked)
      assert.deepStrictEqual(isRevoked.sort(), [false, true])
    })))

  it.effect("a data stream can be revoked for a new member after an earlier revocation was withdrawn", () =>
    fleet.test(Effect.gen(function*() {
      const { lines, open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true, gracePeriod: "3 seconds" })
      const wait = (lease: fleet.Lease) => lease.messagesAfter("0-0" as never, 1)
      // All handlers are processing messages, and after 40 seconds the handler for s1 waits for more
      yield* a.serve(3, (lease): Effect.Effect<unknown, unknown> =>
        Effect.andThen(
          Effect.timeoutOption(wait(lease), "10 millis"),
          lease.stream === "s1" ? Effect.andThen(Effect.sleep("40 seconds"), wait(lease)) : Effect.sleep("1 hour")
        ))
      yield* TestClock.adjust("20 seconds")
      const b = yield* open("b", { rebalance: true })
      yield* b.start(b.client.run(wait))
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual((yield* b.client.owned).map(({ stream }) => stream), ["s1"])
      const areRevoked = yield* Effect.forEach(yield* a.client.owned, (lease) => lease.isRevoked)
      assert.deepStrictEqual(areRevoked, [false, false])
      const c = yield* open("c", { rebalance: true })
      yield* c.start(c.client.run(wait))
      yield* TestClock.adjust("20 seconds")
      assert.lengthOf(lines.filter((line) => line.includes("revoked for simba-consumer-c")), 1)
    })))
})

describe("the hand-over log", () => {
  it.effect("a log line names the receiver, and its annotations name the data stream if there is only one", () =>
    fleet.test(Effect.gen(function*() {
      const { a, annotations, b, lines } = yield* pair
      yield* a.serve(16, yields)
      yield* TestClock.adjust("20 seconds")
      yield* b.start(b.client.run(yields))
      yield* TestClock.adjust("1 minute")
      const revoked = lines.flatMap((line, i) => line.includes("revoked for") ? [{ line, about: annotations[i]! }] : [])
      assert.deepStrictEqual(revoked[0], {
        line: "Info: 2 data streams are revoked for simba-consumer-b, which owns less than its share",
        about: {}
      })
      const last = revoked.at(-1)!
      assert.strictEqual(
        last.line,
        "Info: A data stream is revoked for simba-consumer-b, which owns less than its share"
      )
      assert.deepStrictEqual(Object.keys(last.about), ["stream", "entry", "token"])
    })))
})

describe("confirming a hand-over", () => {
  it.effect("a hand-over starts only one handler and loses nothing, even if sweeps and signals find it during its confirmation", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, lines, open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true })
      const b = yield* open("b", { rebalance: true, sweepInterval: "100 millis" })
      yield* a.serve(2, yields)
      yield* TestClock.adjust("20 seconds")
      b.link.delays.renew = 300
      let started = 0
      yield* b.start(b.client.run(Effect.suspend(() => {
        started++
        return Effect.never
      })))
      while (!b.link.calls.includes("renew")) yield* TestClock.adjust("50 millis")
      const { session } = backend.members.get("simba-consumer-b")!
      for (let i = 0; i < 3; i++) backend.hint({ _tag: "HandedOver", session })
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual([started, yield* count(b)], [1, 1])
      assert.deepStrictEqual(lines.filter((line) => line.startsWith("Warn")), [])
    })))
})
