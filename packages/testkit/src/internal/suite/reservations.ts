/** How one grant takes several fencing tokens. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type Cases, granted, ownerOf, type Party } from "./bench.ts"

export const reserving = ({ bench, it }: Cases): void => {
  it.effect("the next grant's token lies past those that were reserved", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("reserve")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      // Far more than the clock moves on
      const reserve = 1_000_000_000_000
      const first = granted(yield* a.ask("try", undefined, false, reserve)).token
      yield* a.release
      const second = (yield* b.own).token
      assert.strictEqual(second, first + reserve + 1)
      yield* b.release
      assert.strictEqual((yield* c.own).token, second + 1)
    }))

  it.effect("an owner that asks again keeps its token, and what it has reserved grows and never shrinks", () =>
    Effect.gen(function*() {
      const { parties } = yield* bench("reserve again")
      const [a, b] = parties(2) as [Party, Party]
      const big = 1_000_000_000_000
      const { token } = yield* a.own
      for (const reserve of [0, big, 7, 2 * big, 0]) {
        for (const mode of ["try", "wait"] as const) {
          assert.strictEqual(granted(yield* a.ask(mode, undefined, false, reserve)).token, token)
        }
      }
      yield* a.release
      assert.strictEqual((yield* b.own).token, token + 2 * big + 1)
    }))

  it.effect("a waiter reserves when it confirms", () =>
    Effect.gen(function*() {
      const { mutex, parties, store } = yield* bench("reserve by confirming")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      const reserve = 1_000_000_000_000
      yield* a.own
      yield* b.queue
      yield* c.queue
      yield* a.release
      yield* b.expectTurn
      const { token } = granted(yield* b.ask("wait", b.ticket, false, reserve))
      assert.strictEqual((yield* store.inspect(mutex, 0)).token, token)
      assert.strictEqual(ownerOf(yield* b.release), c.id)
      assert.strictEqual((yield* c.confirm).token, token + reserve + 1)
    }))

  it.effect("an owner that names the last token that it used gives back those after it", () =>
    Effect.gen(function*() {
      const { mutex, parties, store } = yield* bench("give back")
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      const reserve = 1_000_000_000_000
      const first = granted(yield* a.ask("try", undefined, false, reserve)).token
      // Not the owner's to give
      yield* b.leave(false, first)
      const used = 500_000_000_000
      yield* a.leave(false, first + used)
      const second = granted(yield* b.ask("try", undefined, false, reserve)).token
      assert.strictEqual(second, first + used + 1)
      // Handed over, with the tokens that come next
      yield* c.queue
      assert.strictEqual(ownerOf(yield* b.leave(true, second + 3)), undefined)
      yield* c.expectTurn
      const third = granted(yield* c.ask("wait", c.ticket, false, reserve)).token
      assert.strictEqual(third, second + 4)
      // Tokens that it never had
      for (const wrong of [third - 1, third + reserve + 1]) {
        yield* d.leave(false, wrong)
        assert.strictEqual((yield* store.inspect(mutex, 0)).token, third)
      }
      yield* c.leave(false, third + reserve + 1)
      assert.strictEqual((yield* d.own).token, third + reserve + 1)
    }))

  it.effect("a forced release, and the end of a lease, leave reserved tokens behind too", () =>
    Effect.gen(function*() {
      const { confirm, mutex, parties, store } = yield* bench("reserve, forced")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      const reserve = 1_000_000_000_000
      const first = granted(yield* a.ask("try", undefined, false, reserve)).token
      yield* store.forceRelease(mutex, confirm)
      const second = granted(yield* b.ask("try", undefined, false, reserve)).token
      assert.strictEqual(second, first + reserve + 2, "one for the release, one for the grant")
      yield* b.lapse
      assert.strictEqual((yield* c.own).token, second + reserve + 1)
    }))
}
