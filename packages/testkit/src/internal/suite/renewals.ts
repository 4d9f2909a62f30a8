/** Contract: what a renewal may and may not change. */
import { MutexName } from "@effect-simba/core/MutexName"
import { guard } from "@effect-simba/core/MutexStore"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Cases, ownerOf, type Party, tagOf, timeLeftOf } from "./bench.ts"

export const guarding = ({ bench, it }: Cases): void => {
  it.effect("a renewal sets the lease to its new duration, shorter or longer than before", () =>
    Effect.gen(function*() {
      const { lease, owner, party, pass } = yield* bench("renewal")
      const a = party()
      yield* a.own
      yield* pass(Duration.millis(300))
      assert.isAtMost(timeLeftOf(yield* owner), Duration.toMillis(lease) - 300)
      for (const shorter of [10_000, 60_000]) {
        assert.deepStrictEqual(yield* a.renew(Duration.millis(shorter)), { _tag: "Renewed" })
        assert.isAtMost(timeLeftOf(yield* owner), shorter)
        assert.deepStrictEqual(yield* a.guard, { _tag: "Renewed" })
        assert.isAbove(timeLeftOf(yield* owner), shorter)
      }
    }))

  it.effect("a late renewal reports the new owner", () =>
    Effect.gen(function*() {
      const { owner, parties } = yield* bench("taken over")
      const [a, b] = parties(2) as [Party, Party]
      yield* a.own
      yield* a.lapse
      yield* b.own
      const result = yield* a.guard
      assert.strictEqual(result._tag, "Lost")
      if (result._tag === "Lost") assert.strictEqual(ownerOf(result.ownership), b.id)
      assert.strictEqual(ownerOf(yield* owner), b.id)
    }))

  it.effect("B18: a renewal never recreates a mutex that has vanished", () =>
    Effect.gen(function*() {
      const { owner, parties } = yield* bench("vanished")
      const [a, b] = parties(2) as [Party, Party]
      yield* a.own
      yield* a.lapse
      for (let i = 0; i < 2; i++) {
        assert.deepStrictEqual(yield* a.guard, { _tag: "Lost", ownership: { _tag: "Free" } })
        assert.deepStrictEqual(yield* owner, { _tag: "Free" })
      }
      yield* b.own
    }))

  it.effect("a waiter's renewal reports a loss, but the waiter keeps its place", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("guard of a waiter")
      const [a, b] = parties(2) as [Party, Party]
      yield* a.own
      yield* b.queue
      assert.strictEqual((yield* b.guard)._tag, "Lost")
      assert.strictEqual(ownerOf(yield* a.release), b.id)
    }))

  it.effect("B34: the results of many renewals are returned in order", () =>
    Effect.gen(function*() {
      const { lease, mutex, newId, owner, party, store } = yield* bench("guard of many")
      const a = party()
      yield* a.own
      const other = newId()
      const requests = Array.from({ length: 300 }, (_, index) => ({
        mutex: index % 3 === 2 ? MutexName.make(`${mutex} missing ${index}`) : mutex,
        id: index % 3 === 0 ? a.id : other,
        lease
      }))
      const results = yield* guard(store, requests)
      assert.deepStrictEqual(
        results.map(tagOf),
        requests.map((_, index) => index % 3 === 0 ? "Renewed" : "Lost")
      )
      results.forEach((result, index) => {
        if (result._tag !== "Lost") return
        assert.strictEqual(ownerOf(result.ownership), index % 3 === 1 ? a.id : undefined)
      })
      assert.strictEqual(ownerOf(yield* owner), a.id)
      assert.deepStrictEqual(yield* guard(store, []), [])
    }))
}
