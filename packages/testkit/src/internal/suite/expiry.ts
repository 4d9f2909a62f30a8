/** Contract: what happens after a lease expires. */
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Cases, ownerOf, type Party, refused, shortConfirm, timeLeftOf } from "./bench.ts"

export const expiring = ({ bench, it }: Cases): void => {
  it.effect("B32: tokens grow across grants, hand-offs and expiries", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("tokens")
      const tokens: Array<number> = []
      for (const party of parties(5)) {
        tokens.push((yield* party.own).token)
        yield* party.release
      }
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      tokens.push((yield* a.own).token)
      yield* b.queue
      yield* c.queue
      yield* a.release
      tokens.push((yield* b.confirm).token)
      yield* b.release
      tokens.push((yield* c.confirm).token)
      yield* c.lapse
      tokens.push((yield* d.own).token)
      assert.deepStrictEqual(tokens, [...new Set(tokens)].sort((x, y) => x - y))
    }))

  it.effect("a mutex is free after its lease expires", () =>
    Effect.gen(function*() {
      const { owner, parties } = yield* bench("expiry")
      const [a, b] = parties(2) as [Party, Party]
      yield* a.own
      refused(yield* b.tryIt)
      yield* a.lapse
      assert.deepStrictEqual(yield* owner, { _tag: "Free" })
      yield* b.own
    }))

  it.effect("after an expiry, a newcomer's try-acquire is refused, and the first waiter is granted the mutex", () =>
    Effect.gen(function*() {
      const { confirm, owner, parties } = yield* bench("try after expiry", shortConfirm)
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* b.growStale
      yield* a.lapse
      const { ownership, ticket } = refused(yield* c.tryIt)
      assert.strictEqual(ownerOf(ownership), b.id)
      assert.isAtMost(timeLeftOf(ownership), Duration.toMillis(confirm))
      assert.isUndefined(ticket)
      yield* b.expectTurn
      yield* b.confirm
      assert.isAbove(timeLeftOf(yield* owner), Duration.toMillis(confirm))
      assert.deepStrictEqual(yield* b.release, { _tag: "Free" })
    }))

  it.effect("after an expiry, waiters are served in order", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("wait after expiry")
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.queue
      yield* a.lapse
      assert.strictEqual(ownerOf((yield* d.queue).ownership), b.id)
      yield* b.expectTurn
      assert.strictEqual(ownerOf(refused(yield* c.ask("wait")).ownership), b.id)
      yield* b.confirm
      assert.strictEqual(ownerOf(yield* b.release), c.id)
      yield* c.confirm
      assert.strictEqual(ownerOf(yield* c.release), d.id)
    }))

  it.effect("after an expiry, another contender's release grants the mutex to the first waiter", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("release after expiry")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* a.lapse
      assert.strictEqual(ownerOf(yield* c.release), b.id)
      yield* b.expectTurn
      yield* b.confirm
    }))

  it.effect("after an expiry, the first waiter gets a full lease when it polls", () =>
    Effect.gen(function*() {
      const { confirm, owner, parties } = yield* bench("head after expiry")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* c.queue
      yield* a.lapse
      yield* b.confirm
      assert.isAbove(timeLeftOf(yield* owner), Duration.toMillis(confirm))
      assert.strictEqual(ownerOf(refused(yield* c.ask("wait")).ownership), b.id)
    }))
}
