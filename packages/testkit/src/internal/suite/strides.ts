/** Contract: a grant reserves several fencing tokens for successive owners in the same process. */
import { spareTokens, tokenStride } from "@effect-simba/core/MutexStore"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Bench, type Cases, granted, type Party } from "./bench.ts"

const lastOf = (token: number) => token + spareTokens(token)

/** Waits long enough after the last grant to get a whole stride of tokens, and acquires the mutex. */
const withStride = Effect.fnUntraced(function*({ pass }: Bench, party: Party) {
  yield* pass(Duration.millis(1))
  const { token } = yield* party.own
  assert.strictEqual(token % tokenStride, 0)
  return token
})

export const striding = ({ bench, it }: Cases): void => {
  it.effect("each grant's token is beyond the last grant's stride, however soon it follows", () =>
    Effect.gen(function*() {
      const own = yield* bench("stride")
      const [a, b, c, d] = own.parties(4) as [Party, Party, Party, Party]
      let last = yield* withStride(own, a)
      yield* a.release
      for (const party of [b, c, d]) {
        const { token } = yield* party.own
        assert.isAbove(token, lastOf(last))
        last = token
        yield* party.release
      }
    }))

  it.effect("an owner keeps its token when it confirms or repeats its request", () =>
    Effect.gen(function*() {
      const own = yield* bench("stride again")
      const { mutex, parties, store } = own
      const [a, b] = parties(2) as [Party, Party]
      const token = yield* withStride(own, a)
      for (const mode of ["try", "wait", "try"] as const) {
        assert.strictEqual(granted(yield* a.ask(mode)).token, token)
      }
      yield* b.queue
      yield* a.release
      yield* b.expectTurn
      const second = granted(yield* b.ask("wait")).token
      assert.isAbove(second, lastOf(token))
      assert.strictEqual((yield* store.inspect(mutex, 0)).token, second)
    }))

  it.effect("a forced release or an expiry skips the stride's remaining tokens", () =>
    Effect.gen(function*() {
      const own = yield* bench("stride, forced")
      const { confirm, mutex, parties, store } = own
      const [a, b, c] = parties(3) as [Party, Party, Party]
      const first = yield* withStride(own, a)
      yield* store.forceRelease(mutex, confirm)
      const second = (yield* b.own).token
      assert.isAbove(second, lastOf(first))
      yield* b.lapse
      assert.isAbove((yield* c.own).token, lastOf(second))
    }))

  it.effect("grants in quick succession do not push tokens ahead of the clock", () =>
    Effect.gen(function*() {
      const own = yield* bench("stride, in quick succession")
      const count = 60
      const [first, ...others] = own.parties(count + 1) as [Party, ...Array<Party>]
      const began = yield* own.micros
      const token = yield* withStride(own, first)
      yield* first.release
      let last = token
      for (const party of others) {
        last = (yield* party.own).token
        yield* party.release
      }
      // At most two strides for the same instant, plus one token per grant
      const elapsed = (yield* own.micros) - began
      assert.isAtMost(last - token, elapsed + 2 * tokenStride + count)
    }))
}
