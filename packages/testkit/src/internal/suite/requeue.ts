/** Contract: a release that queues the caller's next attempt. */
import { spareTokens } from "@effect-simba/core/MutexStore"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Cases, granted, ownerOf, type Party, refused, shortConfirm, timeLeftOf } from "./bench.ts"

export const requeueing = ({ bench, countsSubscribers, it }: Cases): void => {
  it.effect("without waiters, the next attempt is granted immediately, for a full lease and with a larger token", () =>
    Effect.gen(function*() {
      const { lease, mutex, next: nextOf, owner, parties, store } = yield* bench("requeue alone")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      const changes = yield* store.changes(mutex)
      const first = (yield* a.own).token
      yield* nextOf(changes)
      yield* b.subscribe
      const { ownership, token } = yield* a.requeue(b)
      assert.isAbove(token!, first)
      for (const now of [ownership, yield* owner]) {
        assert.strictEqual(ownerOf(now), b.id)
        assert.isAtMost(timeLeftOf(now), Duration.toMillis(lease))
        assert.isAbove(timeLeftOf(now), Duration.toMillis(lease) / 2)
      }
      assert.deepStrictEqual(yield* nextOf(changes), { _tag: "Acquired", owner: b.id })
      assert.deepStrictEqual(yield* b.guard, { _tag: "Renewed" })
      assert.strictEqual(granted(yield* b.ask("try")).token, token)
      assert.deepStrictEqual(yield* b.release, { _tag: "Free" })
      assert.isAbove((yield* c.own).token, token! + spareTokens(token!))
      yield* b.noWakeUp
    }))

  it.effect("without waiters, the next attempt is granted immediately even if it is not subscribed", () =>
    Effect.gen(function*() {
      const { owner, parties } = yield* bench("requeue alone, deaf")
      const [a, b] = parties(2) as [Party, Party]
      yield* a.own
      assert.isDefined((yield* a.requeue(b)).token)
      assert.strictEqual(ownerOf(yield* owner), b.id)
    }))

  it.effect("the next attempt queues behind all waiters and is served like any other", () =>
    Effect.gen(function*() {
      const { confirm, mutex, owner, parties, store } = yield* bench("requeue behind", shortConfirm)
      const [a, b, c, d, e] = parties(5) as [Party, Party, Party, Party, Party]
      const { token } = yield* a.own
      for (const party of [b, c]) yield* party.queue
      yield* c.growStale
      yield* d.subscribe
      const requeued = yield* a.requeue(d)
      assert.isUndefined(requeued.token)
      assert.strictEqual(requeued.position, 1)
      assert.strictEqual(ownerOf(requeued.ownership), b.id)
      assert.isAtMost(timeLeftOf(yield* owner), Duration.toMillis(confirm))
      assert.isAbove(Number(d.ticket), Number(c.ticket))
      assert.deepStrictEqual((yield* store.inspect(mutex, 9)).waiters.map(({ id }) => id), [c.id, d.id])
      yield* e.queue
      assert.isAbove(Number(e.ticket), Number(d.ticket))
      yield* b.expectTurn
      assert.strictEqual(yield* c.expectPoll, Duration.toMillis(confirm))
      assert.isAbove((yield* b.confirm).token, token)
      assert.strictEqual(refused(yield* d.ask("wait")).position, 1, "it keeps its place however often it polls")
      for (const [from, to] of [[b, c], [c, d], [d, e]] as const) {
        assert.strictEqual(ownerOf(yield* from.release), to.id)
        yield* to.confirm
      }
    }))

  it.effect("H3: if the next attempt is first behind the new owner, it gets a new poll time", () =>
    Effect.gen(function*() {
      const { confirm, parties } = yield* bench("requeue, poll", shortConfirm)
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* b.growStale
      yield* c.subscribe
      const { ownership, position } = yield* a.requeue(c)
      assert.deepStrictEqual([ownerOf(ownership), position], [b.id, 0])
      assert.strictEqual(yield* c.expectPoll, Duration.toMillis(confirm))
    }))

  it.effect("a caller that has lost the mutex still queues behind the owner and all waiters", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("requeue, lost")
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      yield* a.lapse
      yield* b.own
      yield* c.queue
      yield* d.subscribe
      const { ownership, token } = yield* a.requeue(d)
      assert.strictEqual(ownerOf(ownership), b.id)
      assert.isUndefined(token)
      assert.strictEqual(ownerOf(yield* b.release), c.id)
      assert.strictEqual(ownerOf(yield* c.release), d.id)
      if (!countsSubscribers) yield* d.expectPoll
      yield* d.expectTurn
    }))

  it.effect("a caller that has lost the mutex is granted it again if it has no owner and no waiters", () =>
    Effect.gen(function*() {
      const { lease, owner, parties } = yield* bench("requeue, expired")
      const [a, b] = parties(2) as [Party, Party]
      const first = (yield* a.own).token
      yield* a.lapse
      const { token } = yield* a.requeue(b)
      assert.isAbove(token!, first)
      assert.strictEqual(ownerOf(yield* owner), b.id)
      assert.isAbove(timeLeftOf(yield* owner), Duration.toMillis(lease) / 2)
    }))

  it.effect("if the caller's lease has expired, a waiter is granted the mutex before the caller", () =>
    Effect.gen(function*() {
      const { owner, parties } = yield* bench("requeue, expired and wanted")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* a.lapse
      yield* c.subscribe
      assert.isUndefined((yield* a.requeue(c)).token)
      assert.strictEqual(ownerOf(yield* owner), b.id)
      yield* b.expectTurn
      yield* b.confirm
      assert.strictEqual(ownerOf(yield* b.release), c.id)
    }))

  it.effect("a waiter that queues again under a different id goes to the end", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("requeue, waiting")
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.queue
      yield* d.subscribe
      assert.strictEqual(ownerOf((yield* b.requeue(d)).ownership), a.id)
      yield* c.expectPoll
      assert.strictEqual(ownerOf(yield* a.release), c.id)
      assert.strictEqual(ownerOf(yield* c.release), d.id)
    }))

  it.effect("repeating a release after a lost reply keeps the next attempt's place, grant and token", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("requeue repeated")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.subscribe
      yield* a.requeue(c)
      const { ticket } = c
      for (let i = 0; i < 2; i++) {
        const repeated = yield* a.requeue(c)
        assert.deepStrictEqual([ownerOf(repeated.ownership), repeated.token, c.ticket], [b.id, undefined, ticket])
      }
      assert.strictEqual(ownerOf(yield* b.release), c.id)
      const { ownership, token } = yield* a.requeue(c)
      assert.strictEqual(ownerOf(ownership), c.id)
      assert.strictEqual(granted(yield* c.ask("try")).token, token)
      assert.strictEqual((yield* a.requeue(c)).token, token)
    }))

  if (countsSubscribers) {
    it.effect("H3: the next attempt is granted immediately if all other waiters are dead", () =>
      Effect.gen(function*() {
        const { owner, parties } = yield* bench("requeue behind the dead")
        const [a, b, c] = parties(3) as [Party, Party, Party]
        yield* a.own
        yield* b.queue
        yield* b.unsubscribe
        yield* c.subscribe
        assert.isDefined((yield* a.requeue(c)).token)
        assert.strictEqual(ownerOf(yield* owner), c.id)
        assert.deepStrictEqual(yield* c.release, { _tag: "Free" })
      }))

    it.effect("H3: a next attempt that counts as dead is refused, and keeps its ticket", () =>
      Effect.gen(function*() {
        const { parties } = yield* bench("requeue, deaf", shortConfirm)
        const [a, b, c] = parties(3) as [Party, Party, Party]
        yield* a.own
        yield* b.queue
        yield* b.growStale
        const { ownership, ticket, token } = yield* a.requeue(c)
        assert.deepStrictEqual([ownerOf(ownership), token], [b.id, undefined])
        assert.strictEqual(refused(yield* c.queue).ticket, ticket)
        yield* b.confirm
        assert.strictEqual(ownerOf(yield* b.release), c.id)
      }))
  }
}
