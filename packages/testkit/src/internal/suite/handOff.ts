/** Contract: how a release affects waiters. */
import { release } from "@effect-simba/core/MutexStore"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Cases, ownerOf, type Party, refused, shortConfirm, timeLeftOf } from "./bench.ts"

export const handingOver = ({ bench, countsSubscribers, it }: Cases): void => {
  it.effect("S1, B7: waiters are served in order of arrival, even at the same instant", () =>
    Effect.gen(function*() {
      const { owner, party, parties } = yield* bench("fifo")
      let last = party()
      yield* last.own
      const waiters = parties(40)
      for (const [index, waiter] of waiters.entries()) assert.strictEqual((yield* waiter.queue).position, index)
      const tickets = waiters.map((waiter) => Number(waiter.ticket))
      assert.deepStrictEqual(tickets, [...new Set(tickets)].sort((x, y) => x - y))
      for (const waiter of waiters) {
        assert.strictEqual(ownerOf(yield* last.release), waiter.id)
        assert.strictEqual(ownerOf(yield* owner), waiter.id)
        yield* waiter.confirm
        last = waiter
      }
      assert.deepStrictEqual(yield* last.release, { _tag: "Free" })
    }))

  it.effect("H1: each waiter in a layer receives only its own messages", () =>
    Effect.gen(function*() {
      const { confirm, party, siblings } = yield* bench("siblings", shortConfirm)
      const a = party()
      const [b, c, d] = siblings(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.queue
      yield* d.queue
      yield* d.growStale
      assert.strictEqual(ownerOf(yield* a.release), b.id)
      yield* b.expectTurn
      assert.strictEqual(yield* c.expectPoll, Duration.toMillis(confirm))
      yield* b.confirm
      yield* b.unsubscribe
      assert.strictEqual(ownerOf(yield* b.release), c.id)
      yield* c.expectTurn
      yield* c.noWakeUp
      yield* c.confirm
      assert.strictEqual(ownerOf(yield* c.release), d.id)
    }))

  it.effect("H1: a release grants the mutex to the oldest waiter, for the confirm period if it is not fresh", () =>
    Effect.gen(function*() {
      const { confirm, owner, parties } = yield* bench("hand-off", shortConfirm)
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.queue
      yield* c.growStale
      assert.strictEqual(ownerOf(yield* a.release), b.id)
      yield* b.expectTurn
      const ownership = yield* owner
      assert.strictEqual(ownerOf(ownership), b.id)
      assert.isAtMost(timeLeftOf(ownership), Duration.toMillis(confirm))
      assert.isAbove(timeLeftOf(ownership), 0)
    }))

  it.effect("a waiter in a listening layer is notified of its turn until it leaves", () =>
    Effect.gen(function*() {
      const { party, siblings } = yield* bench("listener")
      const a = party()
      const [b, c] = siblings(2) as [Party, Party]
      yield* a.own
      for (const waiter of [b, c]) {
        yield* waiter.listen
        refused(yield* waiter.ask("wait"))
      }
      assert.strictEqual(ownerOf(yield* a.release), b.id)
      yield* b.expectTurn
      if (!countsSubscribers) yield* c.expectPoll
      yield* b.confirm
      yield* c.unsubscribe
      yield* b.release
      yield* c.noWakeUp
      yield* b.noWakeUp
    }))

  it.effect("S3, B3: nobody can acquire the mutex between a release and the next waiter's grant", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("barging")
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.queue
      yield* a.release
      for (const result of [yield* c.ask("wait"), yield* d.tryIt, yield* d.ask("wait"), yield* a.tryIt]) {
        assert.strictEqual(ownerOf(refused(result).ownership), b.id)
      }
      yield* b.confirm
    }))

  it.effect("S2: an owner's own release does not grant it the mutex again if it acquired the mutex by polling", () =>
    Effect.gen(function*() {
      const { owner, parties } = yield* bench("self hand-off")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* a.lapse
      yield* b.confirm
      assert.strictEqual((yield* c.queue).position, 0, "the new owner is no longer waiting")
      yield* c.release
      assert.deepStrictEqual(yield* b.release, { _tag: "Free" })
      assert.deepStrictEqual(yield* owner, { _tag: "Free" })
      yield* b.noWakeUp
    }))

  it.effect("H3: on a grant for the confirm period, the next waiter gets a new poll time", () =>
    Effect.gen(function*() {
      const { confirm, parties } = yield* bench("poll after a grant", shortConfirm)
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      for (const party of [b, c, d]) yield* party.queue
      yield* d.growStale
      yield* a.release
      yield* b.expectTurn
      assert.strictEqual(yield* c.expectPoll, Duration.toMillis(confirm))
      // A store that cannot detect dead waiters notifies several waiters, including d
      if (countsSubscribers) yield* d.noWakeUp
      else assert.strictEqual(yield* d.expectPoll, Duration.toMillis(confirm))
    }))

  it.effect("H3: only when the first waiter leaves does its successor get a new poll time", () =>
    Effect.gen(function*() {
      const { lease, parties } = yield* bench("poll after leaving")
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      for (const party of [b, c, d]) yield* party.queue
      assert.strictEqual(ownerOf(yield* c.release), a.id)
      yield* b.noWakeUp
      yield* d.noWakeUp
      assert.strictEqual(ownerOf(yield* b.release), a.id)
      const delay = yield* d.expectPoll
      assert.isAtMost(delay, Duration.toMillis(lease))
      assert.isAbove(delay, Duration.toMillis(lease) / 2)
      yield* d.noWakeUp
    }))

  it.effect("H3: an unresponsive waiter delays the next one by at most the confirm period", () =>
    Effect.gen(function*() {
      const { confirm, owner, parties, pass } = yield* bench("silent waiter", shortConfirm)
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.queue
      yield* c.growStale
      yield* a.release
      assert.isAtMost(timeLeftOf(yield* owner), Duration.toMillis(confirm))
      assert.isAtMost(yield* c.expectPoll, Duration.toMillis(confirm))
      yield* pass(confirm)
      yield* c.confirm
      assert.strictEqual(ownerOf(yield* owner), c.id)
      assert.strictEqual(ownerOf(refused(yield* b.ask("wait")).ownership), c.id)
    }))

  it.effect("a waiter's release gives up its place and may be repeated", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("leaving")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.queue
      for (let i = 0; i < 3; i++) assert.strictEqual(ownerOf(yield* b.release), a.id)
      assert.strictEqual(refused(yield* c.ask("wait")).position, 0)
      assert.strictEqual(ownerOf(yield* a.release), c.id)
      yield* b.noWakeUp
    }))

  it.effect("H7: a release ends an unconfirmed grant", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("undoing a grant")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.queue
      yield* a.release
      assert.strictEqual(ownerOf(yield* b.release), c.id)
      if (!countsSubscribers) yield* c.expectPoll
      yield* c.expectTurn
    }))

  it.effect("H5: a fresh waiter is granted the releasing layer's full lease, and nobody is asked to poll", () =>
    Effect.gen(function*() {
      const { confirm, lease, mutex, owner, parties, pass, store } = yield* bench("fresh waiter")
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      for (const party of [b, c, d]) yield* party.queue
      yield* pass(Duration.millis(1))
      const other = Duration.times(lease, 3)
      yield* release(store, { mutex, id: a.id, confirm, lease: other })
      yield* b.expectTurn
      const granted = yield* owner
      assert.strictEqual(ownerOf(granted), b.id)
      assert.isAtMost(timeLeftOf(granted), Duration.toMillis(countsSubscribers ? other : confirm))
      if (!countsSubscribers) return
      assert.isAbove(timeLeftOf(granted), Duration.toMillis(other) - Duration.toMillis(lease))
      for (const party of [c, d]) yield* party.noWakeUp
      // The grant is for a full lease, so `b` does not have to confirm it
      assert.deepStrictEqual(yield* b.guard, { _tag: "Renewed" })
      assert.strictEqual(ownerOf(yield* b.release), c.id)
    }))

  if (countsSubscribers) {
    it.effect("H5: a waiter's age is measured from its ticket, however often it polls", () =>
      Effect.gen(function*() {
        const { confirm, owner, parties } = yield* bench("stale waiter", shortConfirm)
        const [a, b, c] = parties(3) as [Party, Party, Party]
        yield* a.own
        yield* b.queue
        yield* b.growStale
        refused(yield* b.ask("wait"))
        yield* c.queue
        assert.strictEqual(ownerOf(yield* a.release), b.id)
        assert.isAtMost(timeLeftOf(yield* owner), Duration.toMillis(confirm))
        assert.strictEqual(yield* c.expectPoll, Duration.toMillis(confirm))
      }))

    it.effect("H5: after an expiry, another contender's request grants a fresh waiter a full lease", () =>
      Effect.gen(function*() {
        const { lease, owner, parties } = yield* bench("fresh after expiry")
        const [a, b, c] = parties(3) as [Party, Party, Party]
        yield* a.own
        yield* b.queue
        yield* a.lapse
        assert.strictEqual(ownerOf(refused(yield* c.tryIt).ownership), b.id)
        yield* b.expectTurn
        assert.isAbove(timeLeftOf(yield* owner), Duration.toMillis(lease) / 2)
      }))
  }
}
