/** Contract: the effects of a forced release on the old owner, the next owner and the waiters. */
import { acquire, inboxOf, type MutexStore, wakeUps } from "@effect-simba/core/MutexStore"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import { type Cases, ownerOf, type Party, refused, timeLeftOf } from "./bench.ts"

/** Collects the forced releases that the layer with this inbox is notified of. */
const forcedFrom = Effect.fnUntraced(function*(store: MutexStore["Service"], key: string) {
  const forced = yield* Queue.unbounded<string>()
  yield* store.inbox(key, (id) => Queue.offerUnsafe(forced, id))
  return { next: Queue.take(forced) }
})

export const forcing = ({ bench, it }: Cases): void => {
  it.effect("B59: without waiters, a forced release frees the mutex and returns the old owner", () =>
    Effect.gen(function*() {
      const { confirm, lease, mutex, owner, party, store } = yield* bench("force")
      const a = party()
      yield* a.own
      const before = yield* store.forceRelease(mutex, confirm)
      assert.strictEqual(ownerOf(before), a.id)
      assert.isAtMost(timeLeftOf(before), Duration.toMillis(lease))
      assert.isAbove(timeLeftOf(before), Duration.toMillis(lease) / 2)
      assert.deepStrictEqual(yield* owner, { _tag: "Free" })
    }))

  it.effect("B59, B32: a forced release grants the mutex to the first waiter for the confirm period, with a larger token", () =>
    Effect.gen(function*() {
      const { confirm, mutex, owner, parties, store } = yield* bench("force to the next")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      const { token } = yield* a.own
      yield* b.queue
      yield* c.queue
      assert.strictEqual(ownerOf(yield* store.forceRelease(mutex, confirm)), a.id)
      const ownership = yield* owner
      assert.strictEqual(ownerOf(ownership), b.id)
      assert.isAtMost(timeLeftOf(ownership), Duration.toMillis(confirm))
      yield* b.expectTurn
      assert.strictEqual(yield* c.expectPoll, Duration.toMillis(confirm))
      assert.isAbove((yield* b.confirm).token, token)
      assert.strictEqual(ownerOf(yield* b.release), c.id)
    }))

  it.effect("B59: the old owner's next renewal reports the loss, and its release has no effect", () =>
    Effect.gen(function*() {
      const { confirm, mutex, owner, parties, store } = yield* bench("force, old owner")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.queue
      yield* store.forceRelease(mutex, confirm)
      const lost = yield* a.guard
      assert.strictEqual(lost._tag, "Lost")
      if (lost._tag === "Lost") assert.strictEqual(ownerOf(lost.ownership), b.id)
      for (let i = 0; i < 2; i++) assert.strictEqual(ownerOf(yield* a.release), b.id)
      assert.strictEqual(ownerOf(yield* owner), b.id)
      yield* b.confirm
      assert.strictEqual(ownerOf(yield* a.release), b.id)
      assert.deepStrictEqual(yield* b.guard, { _tag: "Renewed" })
      assert.strictEqual(ownerOf(yield* b.release), c.id)
    }))

  it.effect("B59, B18: without waiters, the old owner's renewal does not recreate the mutex", () =>
    Effect.gen(function*() {
      const { confirm, mutex, owner, party, store } = yield* bench("force, vanished")
      const a = party()
      yield* a.own
      yield* store.forceRelease(mutex, confirm)
      assert.deepStrictEqual(yield* a.guard, { _tag: "Lost", ownership: { _tag: "Free" } })
      assert.deepStrictEqual(yield* a.release, { _tag: "Free" })
      assert.deepStrictEqual(yield* owner, { _tag: "Free" })
    }))

  it.effect("B59, B32: every forced release increases the token, even without an owner or waiters", () =>
    Effect.gen(function*() {
      const { confirm, mutex, parties, store } = yield* bench("force, tokens")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      const first = (yield* a.own).token
      yield* store.forceRelease(mutex, confirm)
      const second = (yield* b.own).token
      assert.isAbove(second, first + 1, "one stride for the release, one for the grant")
      yield* b.release
      for (let i = 0; i < 3; i++) assert.deepStrictEqual(yield* store.forceRelease(mutex, confirm), { _tag: "Free" })
      assert.isAbove((yield* c.own).token, second)
    }))

  it.effect("B59: a forced release revokes an unconfirmed grant and serves the next waiter", () =>
    Effect.gen(function*() {
      const { confirm, mutex, parties, store } = yield* bench("force, unconfirmed")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.queue
      yield* a.release
      assert.strictEqual(ownerOf(yield* store.forceRelease(mutex, confirm)), b.id)
      assert.strictEqual(ownerOf(refused(yield* b.ask("wait")).ownership), c.id)
      yield* c.confirm
    }))

  it.effect("B59: a forced release without an owner grants the mutex to the first waiter", () =>
    Effect.gen(function*() {
      const { confirm, mutex, owner, parties, store } = yield* bench("force, free but wanted")
      const [a, b] = parties(2) as [Party, Party]
      yield* a.own
      yield* b.queue
      yield* a.lapse
      assert.deepStrictEqual(yield* store.forceRelease(mutex, confirm), { _tag: "Free" })
      assert.strictEqual(ownerOf(yield* owner), b.id)
      yield* b.expectTurn
      yield* b.confirm
    }))

  it.effect("B59: a forced release does not affect the owner's other mutexes", () =>
    Effect.gen(function*() {
      const one = yield* bench("force, one")
      const other = yield* bench("force, other")
      const [a, b] = [one.party(), other.party()]
      yield* a.own
      yield* b.own
      yield* one.store.forceRelease(one.mutex, one.confirm)
      assert.deepStrictEqual(yield* b.guard, { _tag: "Renewed" })
    }))

  it.effect("B59: only the old owner's layer is notified, with the exact lease", () =>
    Effect.gen(function*() {
      const { confirm, mutex, newId, next, nothing, party, siblings, store } = yield* bench("inbox")
      const stranger = newId()
      const [a, b, c] = siblings(3) as [Party, Party, Party]
      const inbox = yield* forcedFrom(store, inboxOf(a.id))
      const others = yield* forcedFrom(store, inboxOf(stranger))
      for (const party of [a, b]) {
        yield* party.own
        yield* store.forceRelease(mutex, confirm)
        assert.strictEqual(yield* next(inbox), party.id)
      }
      yield* nothing(others)
      yield* acquire(store, { mutex, id: stranger, mode: "try", lease: confirm, confirm })
      yield* store.forceRelease(mutex, confirm)
      assert.strictEqual(yield* next(others), stranger)
      // Neither an ordinary release nor a forced release of a free mutex is reported
      yield* c.own
      yield* c.release
      yield* store.forceRelease(mutex, confirm)
      yield* party().own
      yield* store.forceRelease(mutex, confirm)
      yield* nothing(inbox)
    }))

  it.effect("B59: the old owner's layer is notified even if it has not received the grant yet", () =>
    Effect.gen(function*() {
      const { confirm, mutex, next, party, siblings, store } = yield* bench("inbox, not confirmed")
      const first = party()
      const [called, requeued] = siblings(2) as [Party, Party]
      const inbox = yield* forcedFrom(store, inboxOf(called.id))
      yield* first.own
      yield* called.queue
      yield* first.release
      yield* store.forceRelease(mutex, confirm)
      assert.strictEqual(yield* next(inbox), called.id)
      assert.strictEqual((yield* called.guard)._tag, "Lost")
      yield* first.own
      yield* requeued.subscribe
      assert.isDefined((yield* first.requeue(requeued)).token)
      yield* store.forceRelease(mutex, confirm)
      assert.strictEqual(yield* next(inbox), requeued.id)
      assert.strictEqual((yield* requeued.guard)._tag, "Lost")
    }))

  it.effect("B59: a layer that has stopped listening is not notified", () =>
    Effect.gen(function*() {
      const { confirm, mutex, newId, party, scope, store, within } = yield* bench("inbox closed")
      const a = party()
      const subscription = yield* Scope.fork(scope)
      const inbox = yield* Scope.provide(forcedFrom(store, inboxOf(a.id)), subscription)
      yield* Scope.close(subscription, Exit.void)
      yield* Effect.scoped(wakeUps(store, mutex, newId()))
      yield* a.own
      yield* store.forceRelease(mutex, confirm)
      const left = yield* Effect.exit(within(inbox.next, 100))
      assert.isTrue(Exit.isFailure(left) || Option.isNone(left.value))
    }))
}
