/** Contract: mutexes with different names are independent. */
import { MutexName } from "@effect-simba/core/MutexName"
import { acquire, guard, release } from "@effect-simba/core/MutexStore"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type Cases, granted, ownerOf, type Party, tagOf } from "./bench.ts"

export const oddNames = [
  "with spaces  inside",
  " leading and trailing ",
  "ünïcödé ✓ 🦁",
  "{braces}",
  "{",
  "a}b{c",
  "a{b}c}",
  "a:contender",
  "line\nbreak\ttab\u0000nul",
  "at@@signs@",
  "*?[glob]",
  "\"quotes\" 'and' \\back",
  "%d %s %%",
  "x".repeat(900)
]

export const naming = ({ bench, it }: Cases): void => {
  it.effect("S19: a mutex with an unusual name works like any other", () =>
    Effect.gen(function*() {
      for (const odd of oddNames) {
        const { owner, parties } = yield* bench(odd)
        const [a, b, c] = parties(3) as [Party, Party, Party]
        const first = yield* a.own
        yield* b.queue
        yield* c.queue
        assert.strictEqual(ownerOf(yield* a.release), b.id)
        yield* b.expectTurn
        assert.isAbove((yield* b.confirm).token, first.token)
        assert.deepStrictEqual(yield* b.guard, { _tag: "Renewed" })
        assert.strictEqual(ownerOf(yield* b.release), c.id)
        assert.deepStrictEqual(yield* c.release, { _tag: "Free" })
        assert.deepStrictEqual(yield* owner, { _tag: "Free" })
      }
    }))

  it.effect("two hundred mutexes do not affect each other", () =>
    Effect.gen(function*() {
      const { confirm, lease, mutex, newId, store } = yield* bench("independent")
      const all = Array.from({ length: 200 }, (_, index) => ({
        mutex: MutexName.make(`${mutex} ${index}`),
        id: newId(),
        lease,
        confirm
      }))
      const results = yield* Effect.forEach(all, (one) => acquire(store, { ...one, mode: "try" }), { concurrency: 50 })
      results.forEach(granted)
      const half = all.filter((_, index) => index % 2 === 0)
      yield* Effect.forEach(half, (one) => release(store, one), { concurrency: 50 })
      const renewed = yield* guard(store, all)
      assert.deepStrictEqual(renewed.map(tagOf), all.map((_, index) => index % 2 === 0 ? "Lost" : "Renewed"))
      const owners = yield* Effect.forEach(all, (one) => store.owner(one.mutex), { concurrency: 50 })
      assert.deepStrictEqual(owners.map(ownerOf), all.map(({ id }, index) => index % 2 === 0 ? undefined : id))
    }))
}
