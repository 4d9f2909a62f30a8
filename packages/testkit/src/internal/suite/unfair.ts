/** What `unfair` changes: the first request after a release gets the mutex, and waiters keep their places. */
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Cases, granted, ownerOf, type Party, refused, shortConfirm, timeLeftOf } from "./bench.ts"

export const unfairness = ({ bench, countsSubscribers, it }: Cases): void => {
  it.effect("an unfair release frees the mutex; the first waiter is notified and keeps its place, the next is notified when to poll", () =>
    Effect.gen(function*() {
      const { confirm, mutex, owner, parties, store } = yield* bench("unfair release")
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      for (const party of [b, c, d]) yield* party.queue
      assert.deepStrictEqual(yield* a.leave(true), { _tag: "Free" })
      assert.deepStrictEqual(yield* owner, { _tag: "Free" })
      assert.strictEqual(yield* b.expectTurn, a.id)
      assert.strictEqual(yield* c.expectPoll, Duration.toMillis(confirm))
      if (countsSubscribers) yield* d.noWakeUp
      else assert.strictEqual(yield* d.expectPoll, Duration.toMillis(confirm))
      const { waiters } = yield* store.inspect(mutex, 10)
      assert.deepStrictEqual(waiters.map(({ id }) => id), [b.id, c.id, d.id])
    }))

  it.effect("the notified waiter gets the mutex if it is the first to poll, with a larger token", () =>
    Effect.gen(function*() {
      const { lease, owner, parties } = yield* bench("unfair, called")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      const { token } = yield* a.own
      yield* b.queue
      yield* c.queue
      yield* a.leave(true)
      assert.isAbove((yield* b.confirm).token, token)
      assert.isAbove(timeLeftOf(yield* owner), Duration.toMillis(lease) / 2)
      assert.strictEqual(ownerOf(yield* b.release), c.id)
    }))

  it.effect("H3: a waiter that leaves a free mutex hands it on, because the notified one may be unresponsive", () =>
    Effect.gen(function*() {
      const { confirm, owner, parties } = yield* bench("unfair, left", shortConfirm)
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      for (const party of [b, c, d]) yield* party.queue
      yield* d.growStale
      yield* a.leave(true)
      yield* c.expectPoll
      if (!countsSubscribers) yield* d.expectPoll
      assert.strictEqual(ownerOf(yield* c.release), b.id)
      assert.isAtMost(timeLeftOf(yield* owner), Duration.toMillis(confirm))
      assert.strictEqual(yield* d.expectPoll, Duration.toMillis(confirm))
    }))

  it.effect("an unfair newcomer that is first gets the mutex, and the notified waiter keeps ticket and place", () =>
    Effect.gen(function*() {
      const { lease, owner, parties } = yield* bench("unfair newcomer")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      const { token } = yield* a.own
      const { ticket } = yield* b.queue
      yield* a.leave(true)
      assert.isAbove(granted(yield* c.ask("try", undefined, true)).token, token)
      assert.isAbove(timeLeftOf(yield* owner), Duration.toMillis(lease) / 2)
      const repeated = refused(yield* b.ask("wait"))
      assert.deepStrictEqual([ownerOf(repeated.ownership), repeated.ticket, repeated.position], [c.id, ticket, 0])
      // The newcomer is fair now
      assert.strictEqual(ownerOf(yield* c.release), b.id)
      assert.strictEqual(yield* b.expectTurn, a.id)
      assert.strictEqual(yield* b.expectTurn, c.id)
    }))

  it.effect("in each round the waiters are notified again", () =>
    Effect.gen(function*() {
      const { party, parties } = yield* bench("unfair rounds")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      let last = a
      yield* a.own
      yield* b.queue
      yield* c.queue
      for (let round = 0; round < 5; round++) {
        yield* last.leave(true)
        assert.strictEqual(yield* b.expectTurn, last.id)
        yield* c.expectPoll
        last = party()
        granted(yield* last.ask("try", undefined, true))
        assert.strictEqual(refused(yield* b.ask("wait")).position, 0)
      }
      assert.strictEqual(ownerOf(yield* last.release), b.id)
    }))

  it.effect("a fair newcomer does not barge in after an unfair release: the first waiter is granted", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("fair newcomer")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* a.leave(true)
      assert.strictEqual(ownerOf(refused(yield* c.tryIt).ownership), b.id)
      yield* b.confirm
    }))

  it.effect("unfair takes nothing from an owner: a try is refused, a wait queues behind the others", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("unfair behind an owner")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      const tried = refused(yield* c.ask("try", undefined, true))
      assert.deepStrictEqual([ownerOf(tried.ownership), tried.ticket], [a.id, undefined])
      yield* c.subscribe
      assert.strictEqual(refused(yield* c.ask("wait", undefined, true)).position, 1)
      // A waiter that was handed the mutex owns it, confirmed or not
      assert.strictEqual(ownerOf(yield* a.release), b.id)
      assert.strictEqual(ownerOf(refused(yield* c.ask("try", undefined, true)).ownership), b.id)
      yield* b.confirm
      assert.strictEqual(ownerOf(yield* b.release), c.id)
    }))

  it.effect("an unfair waiter that takes a free mutex before others leaves only its own place", () =>
    Effect.gen(function*() {
      const { mutex, parties, store } = yield* bench("unfair waiter")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.queue
      yield* a.leave(true)
      const { token } = granted(yield* c.ask("wait", c.ticket, true))
      assert.strictEqual(granted(yield* c.ask("wait", c.ticket, true)).token, token)
      assert.deepStrictEqual((yield* store.inspect(mutex, 10)).waiters.map(({ id }) => id), [b.id])
      assert.strictEqual(ownerOf(yield* c.release), b.id)
      assert.deepStrictEqual(yield* b.release, { _tag: "Free" })
    }))

  it.effect("after an expiry, too, unfair takes what is free, regardless of waiters", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("unfair after expiry")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      const { ticket } = yield* b.queue
      yield* a.lapse
      granted(yield* c.ask("try", undefined, true))
      const repeated = refused(yield* b.ask("wait"))
      assert.deepStrictEqual([ownerOf(repeated.ownership), repeated.ticket], [c.id, ticket])
    }))

  it.effect("an unfair release frees the mutex if nobody waits; by a contender that does not own it, it takes nothing", () =>
    Effect.gen(function*() {
      const { owner, parties } = yield* bench("unfair idle release")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      const { token } = yield* a.own
      yield* b.queue
      assert.strictEqual(ownerOf(yield* c.leave(true)), a.id)
      assert.strictEqual(ownerOf(yield* b.leave(true)), a.id, "a waiter gives up its place")
      assert.deepStrictEqual(yield* a.guard, { _tag: "Renewed" })
      assert.deepStrictEqual(yield* a.leave(true), { _tag: "Free" })
      assert.deepStrictEqual(yield* a.leave(true), { _tag: "Free" })
      yield* b.noWakeUp
      assert.deepStrictEqual(yield* owner, { _tag: "Free" })
      assert.isAbove((yield* c.own).token, token)
    }))
}
