/** Contract: who is granted a mutex, who is refused, and where a waiter queues. */
import { Ticket } from "@effect-simba/core/MutexStore"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Cases, granted, ownerOf, type Party, refused, shortConfirm, timeLeftOf } from "./bench.ts"

export const granting = ({ bench, it }: Cases): void => {
  it.effect("a free mutex is granted for a full lease, with a token", () =>
    Effect.gen(function*() {
      const { owner, party, lease } = yield* bench("free")
      assert.deepStrictEqual(yield* owner, { _tag: "Free" })
      const a = party()
      const { token } = yield* a.own
      assert.isTrue(Number.isSafeInteger(token) && token > 0)
      const ownership = yield* owner
      assert.strictEqual(ownerOf(ownership), a.id)
      assert.isAtMost(timeLeftOf(ownership), Duration.toMillis(lease))
      assert.isAbove(timeLeftOf(ownership), Duration.toMillis(lease) / 2)
    }))

  it.effect("an attempt in wait mode is granted a free mutex without leaving a place in the queue", () =>
    Effect.gen(function*() {
      const { owner, party } = yield* bench("free to wait")
      const a = party()
      yield* a.subscribe
      yield* a.confirm
      yield* a.release
      assert.deepStrictEqual(yield* owner, { _tag: "Free" })
    }))

  it.effect("exactly one of many concurrent requests is granted", () =>
    Effect.gen(function*() {
      const { owner, parties } = yield* bench("at once")
      const all = parties(50)
      const results = yield* Effect.forEach(all, (party) => party.tryIt, { concurrency: "unbounded" })
      const winners = all.filter((_, index) => results[index]!._tag === "Granted")
      assert.strictEqual(winners.length, 1)
      assert.strictEqual(ownerOf(yield* owner), winners[0]!.id)
    }))

  it.effect("a refusal names the owner and its remaining lease time", () =>
    Effect.gen(function*() {
      const { lease, party } = yield* bench("refusal")
      const a = party()
      yield* a.own
      for (const mode of ["try", "wait"] as const) {
        const { foreign, ownership } = refused(yield* party().ask(mode))
        assert.strictEqual(ownerOf(ownership), a.id)
        assert.isAtMost(timeLeftOf(ownership), Duration.toMillis(lease))
        assert.isAbove(timeLeftOf(ownership), Duration.toMillis(lease) / 2)
        assert.isFalse(foreign)
      }
    }))

  it.effect("a try-acquire never queues", () =>
    Effect.gen(function*() {
      const { owner, parties } = yield* bench("try")
      const [a, b] = parties(2) as [Party, Party]
      yield* a.own
      yield* b.subscribe
      assert.isUndefined(refused(yield* b.tryIt).ticket)
      assert.deepStrictEqual(yield* a.release, { _tag: "Free" })
      assert.deepStrictEqual(yield* owner, { _tag: "Free" })
      yield* b.noWakeUp
    }))

  it.effect("a waiter keeps its ticket and place however often it polls", () =>
    Effect.gen(function*() {
      const { parties, party } = yield* bench("ticket")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      const first = yield* b.queue
      const second = yield* c.queue
      assert.deepStrictEqual([first.position, second.position], [0, 1])
      assert.isBelow(Number(first.ticket), Number(second.ticket))
      assert.isTrue(Schema.is(Ticket)(first.ticket))
      for (const ticket of [first.ticket, undefined, first.ticket]) {
        const repeated = refused(yield* b.ask("wait", ticket))
        assert.deepStrictEqual([repeated.ticket, repeated.position], [first.ticket, 0])
      }
      assert.strictEqual(refused(yield* c.ask("wait")).position, 1)
      assert.strictEqual(refused(yield* party().tryIt).position, 0, "a try-acquire has no place")
    }))

  it.effect("S7, S2: an owner that repeats its request gets a full lease and the same token", () =>
    Effect.gen(function*() {
      const { confirm, lease, owner, parties } = yield* bench("confirm")
      const [a, b] = parties(2) as [Party, Party]
      const first = yield* a.own
      yield* b.queue
      yield* a.release
      yield* b.expectTurn
      const second = yield* b.confirm
      assert.isAbove(second.token, first.token)
      assert.isAbove(timeLeftOf(yield* owner), Duration.toMillis(confirm))
      assert.isAtMost(timeLeftOf(yield* owner), Duration.toMillis(lease))
      for (const mode of ["wait", "try", "wait"] as const) {
        assert.strictEqual(granted(yield* b.ask(mode)).token, second.token)
      }
      assert.deepStrictEqual(yield* b.release, { _tag: "Free" })
      yield* b.noWakeUp
    }))

  it.effect("a release has no effect if the mutex is free or has another owner", () =>
    Effect.gen(function*() {
      const { owner, parties } = yield* bench("idle release")
      const [a, b] = parties(2) as [Party, Party]
      assert.deepStrictEqual(yield* a.release, { _tag: "Free" })
      yield* a.own
      yield* a.release
      yield* b.own
      for (let i = 0; i < 3; i++) assert.strictEqual(ownerOf(yield* a.release), b.id)
      assert.strictEqual(ownerOf(yield* owner), b.id)
      assert.deepStrictEqual(yield* b.guard, { _tag: "Renewed" })
    }))

  it.effect("B6: a waiter that missed its turn regains its place with its ticket", () =>
    Effect.gen(function*() {
      const { confirm, parties, pass } = yield* bench("missed turn", shortConfirm)
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      const { ticket } = yield* b.queue
      yield* b.growStale
      yield* a.release
      yield* pass(confirm)
      yield* c.own
      yield* d.queue
      const repeated = refused(yield* b.ask("wait"))
      assert.deepStrictEqual([repeated.ticket, repeated.position], [ticket, 0])
      assert.strictEqual(ownerOf(yield* c.release), b.id)
    }))

  it.effect("B6: if the mutex is free, a waiter that missed its turn goes before later arrivals", () =>
    Effect.gen(function*() {
      const { confirm, parties, pass } = yield* bench("missed turn, free", shortConfirm)
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.queue
      yield* c.growStale
      yield* a.release
      yield* pass(confirm)
      yield* b.confirm
      assert.strictEqual(ownerOf(yield* b.release), c.id)
    }))

  it.effect("a ticket from the future is replaced by a current one", () =>
    Effect.gen(function*() {
      const { parties, pass } = yield* bench("future ticket")
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      const future = "99999999999.000001" as Ticket
      yield* a.own
      yield* b.queue
      yield* pass(Duration.millis(1))
      yield* c.subscribe
      const { ticket } = refused(yield* c.ask("wait", future))
      assert.isBelow(Number(ticket), Number(future))
      yield* pass(Duration.millis(1))
      yield* d.queue
      for (const [from, to] of [[a, b], [b, c], [c, d]] as const) {
        assert.strictEqual(ownerOf(yield* from.release), to.id)
        yield* to.confirm
      }
    }))
}
