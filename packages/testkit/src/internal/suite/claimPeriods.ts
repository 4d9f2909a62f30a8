/** How a fleet agrees on who runs a job in a period. */
import { MutexName } from "@effect-simba/core/MutexName"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Bench, Cases, Party } from "./bench.ts"

const hour = Duration.hours(1)

/** An instant by the backend's clock that is not far ahead, and that no period of an hour begins with. */
const soon = Effect.fnUntraced(function*({ parties }: Bench) {
  const [a, b] = parties(2) as [Party, Party]
  yield* a.own
  yield* b.queue
  const now = Math.floor(Number(b.ticket) * 1000)
  yield* b.release
  yield* a.release
  return now + 2000 + (now % 3_600_000 === 3_598_000 ? 1 : 0)
})

const ticker = ({ mutex, store }: Bench, job = "job", name = mutex) => (period: Duration.Duration, at?: number) =>
  store.claimPeriod({ mutex: name, job, period, at })

export const ticking = ({ bench, it }: Cases): void => {
  it.effect("B33: of many that ask in one period, one is the first", () =>
    Effect.gen(function*() {
      const tick = ticker(yield* bench("tick"))
      const results = yield* Effect.forEach(Array.from({ length: 30 }), () => tick(hour), { concurrency: "unbounded" })
      assert.strictEqual(results.filter(({ first }) => first).length, 1)
      for (const { next } of results) {
        assert.isAtMost(Duration.toMillis(next), Duration.toMillis(hour))
        assert.isAbove(Duration.toMillis(next), 0)
      }
      assert.isFalse((yield* tick(hour)).first)
    }))

  it.effect("B33: `next` is when the next period begins", () =>
    Effect.gen(function*() {
      const one = yield* bench("tick next")
      const tick = ticker(one)
      const every = Duration.millis(400)
      assert.isTrue((yield* tick(every)).first)
      for (let i = 0; i < 3; i++) {
        const { next } = yield* tick(every)
        assert.isAtMost(Duration.toMillis(next), 400)
        yield* one.pass(next)
        assert.isTrue((yield* tick(every)).first)
      }
      const before = yield* tick(hour)
      yield* one.pass(Duration.millis(150))
      assert.isAtLeast(Duration.toMillis(before.next) - Duration.toMillis((yield* tick(hour)).next), 150)
    }))

  it.effect("B33: a scheduled instant has one first, and a later instant has another", () =>
    Effect.gen(function*() {
      const one = yield* bench("tick at")
      const tick = ticker(one)
      const noon = yield* soon(one)
      for (const at of [noon, noon + 1, noon + 3000]) {
        assert.deepStrictEqual(yield* tick(hour, at), { first: true, next: Duration.zero })
        for (let i = 0; i < 2; i++) {
          assert.deepStrictEqual(yield* tick(hour, at), { first: false, next: Duration.zero })
        }
      }
      // However much later somebody asks
      yield* one.pass(Duration.millis(300))
      assert.isFalse((yield* tick(hour, noon + 3000)).first)
    }))

  it.effect("B33: an instant that is far ahead is refused, and uses up none before it", () =>
    Effect.gen(function*() {
      const one = yield* bench("tick far ahead")
      const tick = ticker(one)
      const noon = yield* soon(one)
      for (const ahead of [20_000, 3_600_000, 365 * 86_400_000]) {
        const { first, next } = yield* tick(hour, noon + ahead)
        const passed = (yield* soon(one)) - noon
        assert.isFalse(first)
        // Until it is no more than 10 seconds ahead, to a millisecond of each clock
        assert.isAtMost(Duration.toMillis(next), ahead - 8000 + 2)
        assert.isAtLeast(Duration.toMillis(next), ahead - 8000 - passed - 2)
      }
      assert.isTrue((yield* tick(hour, noon)).first)
      assert.isTrue((yield* tick(hour, noon + 1)).first)
    }))

  it.effect("B33: an instant before one that has run is refused, and does not come back", () =>
    Effect.gen(function*() {
      const one = yield* bench("tick earlier")
      const tick = ticker(one)
      const noon = yield* soon(one)
      assert.isTrue((yield* tick(hour, noon)).first)
      for (const earlier of [noon - 1, noon - 3_600_000, -3_600_000]) assert.isFalse((yield* tick(hour, earlier)).first)
      assert.isFalse((yield* tick(hour, noon)).first)
      assert.isTrue((yield* tick(hour, noon + 1)).first)
    }))

  it.effect("B33: an instant for known jobs only is refused to a new job, which is known from then on", () =>
    Effect.gen(function*() {
      const one = yield* bench("tick known")
      const { mutex, store } = one
      const noon = yield* soon(one)
      const ask = (at: number, onlyIfKnown: boolean) =>
        Effect.map(store.claimPeriod({ mutex, job: "job", period: hour, at, onlyIfKnown }), ({ first }) => first)
      assert.isFalse(yield* ask(noon, true))
      assert.isFalse(yield* ask(noon, false), "it is over, as if it had run")
      assert.isTrue(yield* ask(noon + 1, true))
      assert.isFalse(yield* ask(noon + 1, true))
      assert.isTrue(yield* ask(noon + 2, false))
    }))

  it.effect("B33: jobs are independent of each other, whatever their names, and so are mutexes", () =>
    Effect.gen(function*() {
      const one = yield* bench("tick of one")
      const other = yield* bench("tick of another")
      const jobs = ["a", "b", "", " ", "a:b", "{a}", "ünïcödé ✓", "a\nb", "x".repeat(500)]
      for (const { mutex } of [one, other]) {
        for (const job of jobs) {
          const tick = ticker(one, job, mutex)
          assert.isTrue((yield* tick(hour)).first, job)
          assert.isFalse((yield* tick(hour)).first, job)
        }
      }
      const noon = yield* soon(one)
      for (const job of jobs) {
        assert.isTrue((yield* ticker(one, job)(hour, noon)).first, job)
        assert.isFalse((yield* ticker(one, job)(hour, noon)).first, job)
      }
    }))

  it.effect("B33: a job whose period changes goes on, within one new period", () =>
    Effect.gen(function*() {
      const one = yield* bench("tick changed")
      const tick = ticker(one)
      const [short, long] = [Duration.millis(200), Duration.seconds(3)]
      // Early in a long period, so that it does not end between the next two
      const { next } = yield* ticker(one, "clock")(long)
      if (Duration.toMillis(next) < 2000) yield* one.pass(next)
      assert.isTrue((yield* tick(short)).first)
      const changed = yield* tick(long)
      assert.isFalse(changed.first, "the long period began before what has run")
      assert.isAtMost(Duration.toMillis(changed.next), 3000)
      yield* one.pass(changed.next)
      assert.isTrue((yield* tick(long)).first)
      yield* one.pass((yield* tick(short)).next)
      assert.isTrue((yield* tick(short)).first)
    }))

  it.effect("B33: a tick neither owns the mutex nor waits for it, and is not in its way", () =>
    Effect.gen(function*() {
      const one = yield* bench("tick aside")
      const tick = ticker(one)
      assert.isTrue((yield* tick(hour)).first)
      assert.deepStrictEqual(yield* one.store.inspect(one.mutex, 10), {
        ownership: { _tag: "Free" },
        token: undefined,
        waiting: 0,
        waiters: []
      })
      const a = one.party()
      yield* a.own
      assert.isFalse((yield* tick(hour)).first)
      yield* a.release
      assert.isFalse((yield* tick(hour)).first, "what has run is remembered beyond the lease")
      const unrelated = MutexName.make(`${one.mutex} unrelated`)
      assert.isTrue((yield* ticker(one, "job", unrelated)(hour)).first)
    }))
}
