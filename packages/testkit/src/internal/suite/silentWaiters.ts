/**
 * Contract: if the store cannot detect dead waiters, each of them costs only one confirm period. A waiter is dead if it
 * is not subscribed: it has unsubscribed, or has queued without subscribing.
 */
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { type Cases, ownerOf, type Party, refused, shortConfirm, timeLeftOf } from "./bench.ts"

export const uncounted = ({ bench, it }: Cases): void => {
  it.effect("H3: each dead waiter delays the mutex by a confirm period", () =>
    Effect.gen(function*() {
      const { confirm, owner, parties, pass } = yield* bench("dead waiters", shortConfirm)
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      for (const dead of [b, c]) refused(yield* dead.ask("wait"))
      yield* d.queue
      yield* a.release
      for (const dead of [b, c]) {
        const { ownership } = refused(yield* d.ask("wait"))
        assert.strictEqual(ownerOf(ownership), dead.id)
        assert.isAtMost(timeLeftOf(ownership), Duration.toMillis(confirm))
        yield* pass(confirm)
      }
      yield* d.confirm
      assert.strictEqual(ownerOf(yield* owner), d.id)
      assert.deepStrictEqual(yield* d.release, { _tag: "Free" })
    }))

  it.effect("H3: the waiter behind a dead one gets a new poll time, and then the mutex", () =>
    Effect.gen(function*() {
      const { confirm, parties, pass } = yield* bench("stopped listening", shortConfirm)
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.queue
      yield* b.unsubscribe
      assert.strictEqual(ownerOf(yield* a.release), b.id)
      const delay = yield* c.expectPoll
      assert.strictEqual(delay, Duration.toMillis(confirm))
      yield* pass(Duration.millis(delay))
      yield* c.confirm
    }))

  it.effect("H3: the waiter behind several dead ones gets a new poll time", () =>
    Effect.gen(function*() {
      const { confirm, parties, pass } = yield* bench("several stopped listening", shortConfirm)
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      for (const waiter of [b, c, d]) yield* waiter.queue
      for (const dead of [b, c]) yield* dead.unsubscribe
      assert.strictEqual(ownerOf(yield* a.release), b.id)
      yield* pass(Duration.millis(yield* d.expectPoll))
      assert.strictEqual(ownerOf(refused(yield* d.ask("wait")).ownership), c.id)
      yield* pass(confirm)
      yield* d.confirm
    }))

  it.effect("H3: after an expiry, a dead waiter costs a confirm period too", () =>
    Effect.gen(function*() {
      const { confirm, parties, pass } = yield* bench("dead after expiry", shortConfirm)
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      refused(yield* b.ask("wait"))
      yield* a.lapse
      const { ownership } = refused(yield* c.queue)
      assert.strictEqual(ownerOf(ownership), b.id)
      assert.isAtMost(timeLeftOf(ownership), Duration.toMillis(confirm))
      yield* pass(confirm)
      yield* c.confirm
    }))

  it.effect("B6: a waiter that lost its place regains it with its ticket", () =>
    Effect.gen(function*() {
      const { confirm, parties, pass } = yield* bench("pruned", shortConfirm)
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      const { ticket } = yield* b.queue
      yield* c.queue
      yield* b.unsubscribe
      yield* a.release
      yield* pass(confirm)
      yield* c.confirm
      yield* d.queue
      const repeated = yield* b.queue
      assert.deepStrictEqual([repeated.ticket, repeated.position], [ticket, 0])
      assert.strictEqual(ownerOf(yield* c.release), b.id)
    }))

  it.effect("B1: a waiter that subscribes too late for its wake-up gets the mutex when it polls", () =>
    Effect.gen(function*() {
      const { confirm, owner, parties } = yield* bench("subscription")
      const [a, b] = parties(2) as [Party, Party]
      yield* a.own
      refused(yield* b.ask("wait"))
      assert.strictEqual(ownerOf(yield* a.release), b.id)
      yield* b.subscribe
      yield* b.confirm
      assert.isAbove(timeLeftOf(yield* owner), Duration.toMillis(confirm))
    }))

  it.effect("each wake-up reaches only its own waiter, and only while it listens", () =>
    Effect.gen(function*() {
      const { confirm, parties, within } = yield* bench("own wake-ups")
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      for (const party of [b, c, d]) yield* party.queue
      const before = b.wakeUps!
      yield* b.unsubscribe
      assert.strictEqual(ownerOf(yield* a.release), b.id)
      for (const behind of [c, d]) assert.strictEqual(yield* behind.expectPoll, Duration.toMillis(confirm))
      for (const behind of [c, d]) yield* behind.noWakeUp
      const left = yield* Effect.exit(within(before.next, 100))
      assert.isTrue(Exit.isFailure(left) || Option.isNone(left.value))
    }))

  it.effect("B59: a forced release grants the mutex to the first waiter, dead or alive", () =>
    Effect.gen(function*() {
      const { confirm, mutex, owner, parties, pass, store } = yield* bench("force, dead", shortConfirm)
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      refused(yield* b.ask("wait"))
      yield* c.queue
      yield* store.forceRelease(mutex, confirm)
      assert.strictEqual(ownerOf(yield* owner), b.id)
      assert.strictEqual(yield* c.expectPoll, Duration.toMillis(confirm))
      yield* pass(confirm)
      yield* c.confirm
    }))
}
