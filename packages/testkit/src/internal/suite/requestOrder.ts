/**
 * Contract: requests that are sent without waiting for an earlier reply, such as confirmations and requests after a
 * release, and requests that are abandoned.
 */
import type { FencingToken } from "@effect-simba/core/FencingToken"
import type { AcquireResult, Released } from "@effect-simba/core/MutexStore"
import type { StoreError } from "@effect-simba/core/SimbaError"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Bench, type Cases, granted, ownerOf, type Party, refused, timeLeftOf } from "./bench.ts"

/** Confirms the grant with this token. */
const confirm = (
  { mutex, store }: Bench,
  { id }: Party,
  token: FencingToken,
  lease: Duration.Duration
): Effect.Effect<AcquireResult, StoreError> =>
  Effect.callback((resume) => store.confirm({ mutex, id, token, lease }, resume))

export const ordering = ({ bench, it }: Cases): void => {
  it.effect("a confirmation extends its grant and keeps the token", () =>
    Effect.gen(function*() {
      const here = yield* bench("confirm")
      const a = here.party()
      const { token } = yield* a.own
      const longer = Duration.times(here.lease, 2)
      assert.strictEqual(granted(yield* confirm(here, a, token, longer)).token, token)
      const ownership = yield* here.owner
      assert.strictEqual(ownerOf(ownership), a.id)
      assert.isAbove(timeLeftOf(ownership), Duration.toMillis(here.lease))
    }))

  it.effect("a confirmation for another grant or from another contender is refused", () =>
    Effect.gen(function*() {
      const here = yield* bench("confirm another")
      const [a, b] = here.parties(2) as [Party, Party]
      const { token } = yield* a.own
      const longer = Duration.times(here.lease, 2)
      for (const other of [token - 1, token + 1]) {
        refused(yield* confirm(here, a, other as FencingToken, longer))
      }
      const { ownership } = refused(yield* confirm(here, b, token, longer))
      assert.strictEqual(ownerOf(ownership), a.id)
      assert.isAtMost(timeLeftOf(yield* here.owner), Duration.toMillis(here.lease))
    }))

  it.effect("a confirmation never grants the mutex", () =>
    Effect.gen(function*() {
      const here = yield* bench("confirm nothing")
      const a = here.party()
      const { token } = yield* a.own
      yield* a.release
      assert.deepStrictEqual(refused(yield* confirm(here, a, token, here.lease)).ownership, { _tag: "Free" })
      assert.deepStrictEqual(yield* here.owner, { _tag: "Free" })
    }))

  it.effect("a request runs after an earlier release that is still in flight", () =>
    Effect.gen(function*() {
      const { confirm, lease, mutex, parties, store } = yield* bench("behind")
      if (!store.isReady()) return
      const all = parties(20)
      let replies = 0
      for (const [i, party] of all.entries()) {
        if (i > 0) store.release({ mutex, id: all[i - 1]!.id, confirm, lease }, () => replies++)
        yield* party.own
      }
      assert.strictEqual(replies, all.length - 1)
    }))

  it.effect.each(["try", "wait"] as const)(
    "an abandoned acquire that is released leaves neither an owner nor a waiter behind (%s)",
    (mode) =>
      Effect.gen(function*() {
        const { confirm, lease, mutex, owner, parties, store } = yield* bench(`abandon ${mode}`)
        const [a, b, c] = parties(3) as [Party, Party, Party]
        let replies = 0
        const abandon = ({ id }: Party) =>
          Effect.callback<Released, StoreError>((resume) => {
            store.acquire({ mutex, id, mode, lease, confirm }, () => replies++)()
            store.release({ mutex, id, lease, confirm }, resume)
          })
        yield* abandon(a)
        assert.deepStrictEqual(yield* owner, { _tag: "Free" })
        yield* b.own
        yield* c.subscribe
        yield* abandon(c)
        assert.deepStrictEqual((yield* store.inspect(mutex, 9)).waiters, [])
        assert.deepStrictEqual(yield* b.release, { _tag: "Free" })
        yield* c.noWakeUp
        assert.isAtMost(replies, 2)
      })
  )

  it.effect("an acquire gets one reply, and to abandon it during the reply or later has no effect", () =>
    Effect.gen(function*() {
      const { confirm, lease, mutex, parties, store } = yield* bench("abandon late")
      const [a, b] = parties(2) as [Party, Party]
      let replies = 0
      let abandon = () => {}
      const ask = ({ id }: Party) =>
        Effect.map(
          Effect.callback<AcquireResult, StoreError>((resume) => {
            abandon = store.acquire({ mutex, id, mode: "wait", lease, confirm }, (exit) => {
              replies++
              abandon()
              resume(exit)
            })
          }),
          (result) => {
            abandon()
            return result
          }
        )
      const { token } = granted(yield* ask(a))
      yield* b.subscribe
      refused(yield* ask(b))
      assert.deepStrictEqual(yield* a.guard, { _tag: "Renewed" })
      assert.strictEqual(granted(yield* a.ask("try")).token, token)
      assert.strictEqual(ownerOf(yield* a.release), b.id)
      yield* b.expectTurn
      assert.strictEqual(replies, 2)
    }))
}
