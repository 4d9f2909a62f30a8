/** Contract: if the store can count subscribers, dead waiters cost nothing. `silentWaiters` covers other stores. */
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { type Cases, ownerOf, type Party, refused } from "./bench.ts"

export const counting = ({ bench, it }: Cases): void => {
  it.effect("S4, B5: any number of dead waiters are skipped", () =>
    Effect.gen(function*() {
      const { owner, parties } = yield* bench("dead waiters")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      const dead = parties(150)
      for (const party of dead.slice(0, 100)) refused(yield* party.ask("wait"))
      yield* b.queue
      for (const party of dead.slice(100)) refused(yield* party.ask("wait"))
      yield* c.queue
      assert.strictEqual(ownerOf(yield* a.release), b.id)
      yield* b.confirm
      assert.strictEqual(ownerOf(yield* b.release), c.id)
      yield* c.confirm
      for (const party of dead) refused(yield* party.ask("wait"))
      assert.deepStrictEqual(yield* c.release, { _tag: "Free" })
      assert.deepStrictEqual(yield* owner, { _tag: "Free" })
    }))

  it.effect("a waiter that stopped listening is skipped", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("stopped listening")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.queue
      yield* b.unsubscribe
      assert.strictEqual(ownerOf(yield* a.release), c.id)
    }))

  it.effect("B6: a waiter that lost its place regains it with its ticket", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("pruned")
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      const { ticket } = yield* b.queue
      yield* c.queue
      yield* b.unsubscribe
      assert.strictEqual(ownerOf(yield* a.release), c.id)
      yield* c.confirm
      yield* d.queue
      const repeated = yield* b.queue
      assert.deepStrictEqual([repeated.ticket, repeated.position], [ticket, 0])
      assert.strictEqual(ownerOf(yield* c.release), b.id)
    }))

  it.effect("after an expiry, dead waiters at the head of the queue delay nobody", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("dead after expiry")
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      for (const party of [b, c]) refused(yield* party.ask("wait"))
      yield* a.lapse
      yield* d.own
    }))

  it.effect("B1: a waiter receives only wake-ups sent after it subscribed", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("subscription")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      refused(yield* b.ask("wait"))
      assert.deepStrictEqual(yield* a.release, { _tag: "Free" })
      yield* b.subscribe
      yield* b.noWakeUp
      yield* c.own
      refused(yield* b.ask("wait"))
      yield* c.release
      yield* b.expectTurn
    }))

  it.effect("each wake-up reaches only its own waiter, and only while it listens", () =>
    Effect.gen(function*() {
      const { parties, pass, within } = yield* bench("own wake-ups")
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      for (const party of [b, c, d]) yield* party.queue
      const before = b.wakeUps!
      yield* b.unsubscribe
      yield* pass(Duration.millis(1))
      assert.strictEqual(ownerOf(yield* a.release), c.id)
      yield* c.expectTurn
      yield* d.noWakeUp
      const left = yield* Effect.exit(within(before.next, 100))
      assert.isTrue(Exit.isFailure(left) || Option.isNone(left.value))
    }))

  it.effect("B59: a forced release skips dead waiters", () =>
    Effect.gen(function*() {
      const { confirm, mutex, owner, parties, store } = yield* bench("force, dead")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      refused(yield* b.ask("wait"))
      yield* c.queue
      yield* store.forceRelease(mutex, confirm)
      assert.strictEqual(ownerOf(yield* owner), c.id)
      yield* c.confirm
      refused(yield* b.ask("wait"))
      yield* store.forceRelease(mutex, confirm)
      assert.deepStrictEqual(yield* owner, { _tag: "Free" })
    }))
}
