/** Which waiters the scripts ask to poll, and when waiters hold back for a Simba contender. */
import { MutexStore, release as releaseIn, type WakeUp, wakeUps } from "@effect-simba/core/MutexStore"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { RedisMutex } from "@effect-simba/redis"
import { FakeRedis } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, Layer, Queue } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import * as RedisKeys from "../../src/internal/mutex/keys.ts"
import { contender, freshName } from "../support/harness.ts"

const simba = "1:4711@stock"

/** A mutex, its store, and a Redis client that lets a test act like a Simba contender. */
const stage = Effect.fnUntraced(function*({ countable = true }: { readonly countable?: boolean } = {}) {
  const client = yield* Layer.build(FakeRedis.layerClient({ name: "a" }))
  const services = Context.add(client, Subscriber, { ...Context.get(client, Subscriber), countable })
  const store = Context.get(
    yield* Layer.build(Layer.fresh(RedisMutex.layerStore).pipe(Layer.provide(Layer.succeedContext(services)))),
    MutexStore
  )
  const mutex = freshName("wake up")
  const heard: Array<readonly [waiter: number, WakeUp["_tag"]]> = []
  let count = 0
  /** Queues a waiter from a new layer and records its messages in `heard`. */
  const queue = Effect.gen(function*() {
    const waiter = contender(store, mutex)
    const index = count++
    const { next } = yield* wakeUps(store, mutex, waiter.id)
    yield* Effect.forkScoped(Effect.forever(Effect.map(next, ({ _tag }) => heard.push([index, _tag]))))
    yield* waiter.wait
    return waiter
  })
  const owner = contender(store, mutex)
  const release = (id: typeof owner.id, requeue?: typeof owner.id) =>
    releaseIn(store, {
      mutex,
      id,
      confirm: Duration.millis(1500),
      lease: Duration.seconds(16),
      ...(requeue === undefined ? {} : { requeue: { id: requeue, lease: Duration.seconds(16) } })
    })
  return {
    ...{ heard, mutex, owner, queue, release, store },
    redis: Context.get(client, Redis),
    subscribe: (channel: string) => Context.get(client, Subscriber).subscribe(channel)
  }
})

const FakeLive = FakeRedis.layer()

describe("a waiter that leaves the head of the queue", () => {
  const polling = (countable: boolean) =>
    Effect.gen(function*() {
      const { heard, owner, queue, release } = yield* stage({ countable })
      yield* owner.own
      const waiters = yield* Effect.forEach(Array.from({ length: 11 }), () => queue)
      yield* release(waiters[0]!.id)
      yield* TestClock.adjust(1)
      return heard
    }).pipe(Effect.scoped, Effect.provide(FakeLive))

  it.effect("makes only the next waiter poll", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* polling(true), [[1, "PollAfter"]])
    }))

  it.effect("makes the next eight poll if dead waiters cannot be detected", () =>
    Effect.gen(function*() {
      const notified = [1, 2, 3, 4, 5, 6, 7, 8].map((index) => [index, "PollAfter"] as const)
      assert.deepStrictEqual(yield* polling(false), notified)
    }))
})

describe("while the mutex is reserved for a Simba contender", () => {
  const called = Effect.gen(function*() {
    const all = yield* stage()
    const { mutex, owner, queue, redis } = all
    yield* owner.own
    const [first, second] = [yield* queue, yield* queue]
    yield* redis.send("DEL", RedisKeys.owner(mutex))
    yield* redis.send("SET", RedisKeys.reserved(mutex), simba, "PX", "1500")
    return { ...all, first, second }
  })

  it.effect("a waiter that leaves does not hand over the mutex", () =>
    Effect.gen(function*() {
      const { heard, mutex, release, second, store } = yield* called
      yield* release(second.id)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* store.owner(mutex), { _tag: "Free" })
      assert.deepStrictEqual(heard, [])
    }).pipe(Effect.scoped, Effect.provide(FakeLive)))

  it.effect("a late release that requeues a waiter does not hand over the mutex", () =>
    Effect.gen(function*() {
      const { heard, mutex, owner, release, store } = yield* called
      yield* release(owner.id, contender(store, mutex).id)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* store.owner(mutex), { _tag: "Free" })
      assert.deepStrictEqual(heard, [])
    }).pipe(Effect.scoped, Effect.provide(FakeLive)))

  it.effect("a forced release ends the reservation", () =>
    Effect.gen(function*() {
      const { mutex, owner, redis, store } = yield* stage()
      yield* owner.own
      yield* redis.send("SET", RedisKeys.reserved(mutex), simba, "PX", "1500")
      yield* store.forceRelease(mutex, Duration.millis(1500))
      yield* contender(store, mutex).own
    }).pipe(Effect.scoped, Effect.provide(FakeLive)))
})

it.effect("a forced release notifies a Simba owner on its own channel", () =>
  Effect.gen(function*() {
    const { mutex, redis, store, subscribe } = yield* stage()
    const notices = yield* subscribe(RedisKeys.contenderChannel(mutex, simba))
    yield* redis.send("SET", RedisKeys.owner(mutex), simba, "PX", "16000")
    yield* store.forceRelease(mutex, Duration.millis(1500))
    yield* TestClock.adjust(1)
    const texts = (yield* Queue.clear(notices)).map((notice) => notice._tag === "Message" ? notice.text : notice._tag)
    assert.deepStrictEqual(texts, [`released@@${simba}`])
  }).pipe(Effect.scoped, Effect.provide(FakeLive)))
