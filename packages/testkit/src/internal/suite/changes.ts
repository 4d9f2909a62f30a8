/** Contract: what a store reports to observers. */
import { MutexName } from "@effect-simba/core/MutexName"
import { acquire, guard, release, wakeUps } from "@effect-simba/core/MutexStore"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Bench, type Cases, granted, ownerOf, type Party, refused, timeLeftOf } from "./bench.ts"
import { oddNames } from "./names.ts"

/** This bench's mutexes in the list, sorted. A shared backend may list others too. */
const listed = ({ mutex, store }: Bench) =>
  Effect.map(
    Stream.runCollect(Stream.filter(store.list, (name) => name.includes(mutex))),
    (names) => [...names].sort()
  )

export const observing = ({ bench, it }: Cases): void => {
  it.effect("S16: observers receive each acquisition and confirmation in order, with the owner's id", () =>
    Effect.gen(function*() {
      const { mutex, next, nothing, parties, store } = yield* bench("changes")
      const [a, b, c] = parties(3) as [Party, Party, Party]
      const observers = yield* Effect.all([store.changes(mutex), store.changes(mutex)])
      yield* a.own
      yield* b.queue
      yield* a.guard
      yield* a.release
      yield* b.confirm
      yield* c.tryIt
      yield* b.release
      yield* c.own
      for (const changes of observers) {
        for (const { id } of [a, b, c]) assert.deepStrictEqual(yield* next(changes), { _tag: "Acquired", owner: id })
        yield* nothing(changes)
      }
    }))

  it.effect("S16: observers are notified only of their own mutex", () =>
    Effect.gen(function*() {
      const one = yield* bench("changes of one")
      const other = yield* bench("changes of another")
      const changes = yield* one.store.changes(one.mutex)
      yield* other.party().own
      yield* one.nothing(changes)
      const a = one.party()
      yield* a.own
      assert.deepStrictEqual(yield* one.next(changes), { _tag: "Acquired", owner: a.id })
    }))

  it.effect("S16: an observer that stops listening is no longer notified, while others still are", () =>
    Effect.gen(function*() {
      const { mutex, newId, next, party, scope, store, within } = yield* bench("changes closed")
      const subscription = yield* Scope.fork(scope)
      const closed = yield* Scope.provide(store.changes(mutex), subscription)
      const open = yield* store.changes(mutex)
      yield* Scope.close(subscription, Exit.void)
      yield* Effect.scoped(wakeUps(store, mutex, newId()))
      const a = party()
      yield* a.own
      assert.deepStrictEqual(yield* next(open), { _tag: "Acquired", owner: a.id })
      const left = yield* Effect.exit(within(closed.next, 100))
      assert.isTrue(Exit.isFailure(left) || Option.isNone(left.value))
    }))

  it.effect("B59: an inspection shows the owner, the remaining time and the token", () =>
    Effect.gen(function*() {
      const { lease, mutex, parties, store } = yield* bench("inspect")
      const nobody = { ownership: { _tag: "Free" }, token: undefined, waiting: 0, waiters: [] } as const
      assert.deepStrictEqual(yield* store.inspect(mutex, 10), nobody)
      const [a, b] = parties(2) as [Party, Party]
      const { token } = yield* a.own
      const held = yield* store.inspect(mutex, 10)
      assert.deepStrictEqual([ownerOf(held.ownership), held.token], [a.id, token])
      assert.deepStrictEqual([held.waiting, held.waiters], [0, []])
      assert.isAtMost(timeLeftOf(held.ownership), Duration.toMillis(lease))
      assert.isAbove(timeLeftOf(held.ownership), Duration.toMillis(lease) / 2)
      yield* b.queue
      yield* a.release
      const handed = yield* store.inspect(mutex, 10)
      assert.strictEqual(ownerOf(handed.ownership), b.id)
      assert.isAtMost(timeLeftOf(handed.ownership), Duration.toMillis(lease))
      assert.isAbove(handed.token!, token)
      assert.strictEqual((yield* b.confirm).token, handed.token)
      yield* b.release
      assert.deepStrictEqual(yield* store.inspect(mutex, 10), nobody, "there is no token without an owner")
    }))

  it.effect("B59: an inspection counts all waiters, and lists the first ones in order with their waiting times", () =>
    Effect.gen(function*() {
      const { mutex, parties, pass, store } = yield* bench("inspect queue")
      const [a, b, c, d] = parties(4) as [Party, Party, Party, Party]
      yield* a.own
      yield* b.queue
      yield* pass(Duration.millis(300))
      yield* c.queue
      refused(yield* d.ask("wait"))
      yield* pass(Duration.millis(200))
      const all = yield* store.inspect(mutex, 3)
      assert.strictEqual(all.waiting, 3)
      assert.deepStrictEqual(all.waiters.map(({ id }) => id), [b.id, c.id, d.id])
      const [first, second] = all.waiters.map(({ waited }) => Duration.toMillis(waited)) as [number, number, number]
      assert.isAtLeast(second, 200)
      assert.isAtLeast(first - second, 300 - 1)
      assert.isBelow(first, 60_000)
      for (const limit of [0, 1, 2]) {
        const some = yield* store.inspect(mutex, limit)
        assert.strictEqual(some.waiting, 3)
        assert.deepStrictEqual(some.waiters.map(({ id }) => id), [b.id, c.id, d.id].slice(0, limit))
      }
    }))

  it.effect("B59: an inspection changes neither the owner nor who is next", () =>
    Effect.gen(function*() {
      const { mutex, owner, parties, store } = yield* bench("inspect only")
      const [a, b] = parties(2) as [Party, Party]
      yield* a.own
      yield* b.queue
      yield* a.lapse
      for (let i = 0; i < 2; i++) {
        const { ownership, token, waiting } = yield* store.inspect(mutex, 10)
        assert.deepStrictEqual([ownership, token, waiting], [{ _tag: "Free" }, undefined, 1])
      }
      assert.deepStrictEqual(yield* owner, { _tag: "Free" })
      yield* b.noWakeUp
      yield* b.confirm
    }))

  it.effect("B59: the list shows only mutexes with an owner or waiters", () =>
    Effect.gen(function*() {
      const one = yield* bench("list")
      const { confirm, lease, mutex, newId, pass, store } = one
      const ask = (name: string, mode: "try" | "wait", id = newId(), lasting = lease) =>
        acquire(store, { mutex: MutexName.make(`${mutex} ${name}`), id, mode, lease: lasting, confirm })
      assert.deepStrictEqual(yield* listed(one), [])
      const instant = Duration.millis(50)
      yield* ask("ran out", "try", newId(), instant)
      const owner = newId()
      yield* ask("waited for", "try", owner)
      refused(yield* ask("waited for", "wait"))
      yield* guard(store, [{ mutex: MutexName.make(`${mutex} waited for`), id: owner, lease: instant }])
      yield* pass(instant)
      yield* ask("owned", "try")
      yield* ask("owned and waited for", "try")
      refused(yield* ask("owned and waited for", "wait"))
      const freed = MutexName.make(`${mutex} freed`)
      const id = newId()
      granted(yield* acquire(store, { mutex: freed, id, mode: "try", lease, confirm }))
      yield* release(store, { mutex: freed, id, confirm, lease })
      for (const job of ["job", "{job}", "}:contender"]) {
        const named = [{ name: job, schedule: "every 1000", keep: lease }]
        yield* store.jobs.read({ mutex: MutexName.make(`${mutex} with jobs`), jobs: named })
      }
      assert.deepStrictEqual(
        yield* listed(one),
        ["owned", "owned and waited for", "waited for"].map((name) => `${mutex} ${name}`)
      )
    }))

  it.effect("S19, B59: the list shows unusual names unchanged", () =>
    Effect.gen(function*() {
      const one = yield* bench("list odd")
      const { confirm, lease, mutex, newId, store } = one
      const names = oddNames.flatMap((odd) => [`${odd} ${mutex}`, `${mutex} ${odd}`]).map((name) =>
        MutexName.make(name)
      )
      for (const name of names) {
        granted(yield* acquire(store, { mutex: name, id: newId(), mode: "try", lease, confirm }))
        refused(yield* acquire(store, { mutex: name, id: newId(), mode: "wait", lease, confirm }))
      }
      assert.deepStrictEqual(yield* listed(one), [...names].sort())
    }))

  it.effect("B59: the list shows each of many names once", () =>
    Effect.gen(function*() {
      const one = yield* bench("list many")
      const { confirm, lease, mutex, newId, store } = one
      const names = Array.from({ length: 300 }, (_, index) => MutexName.make(`${mutex} ${index}`))
      yield* Effect.forEach(
        names,
        (name) => acquire(store, { mutex: name, id: newId(), mode: "try", lease, confirm }),
        { concurrency: 50 }
      )
      assert.deepStrictEqual(yield* listed(one), [...names].sort())
      assert.strictEqual((yield* Stream.runCollect(Stream.take(store.list, 3))).length, 3)
    }))
}
