/** The channel on which a layer's waiters receive messages, and places that the layer could not release. */
import { FencingToken } from "@effect-simba/core/FencingToken"
import * as Mutex from "@effect-simba/core/Mutex"
import type { LeaseId, MutexName } from "@effect-simba/core/MutexName"
import { acquire, inboxOf, MutexStore, release, type WakeUp, wakeUps } from "@effect-simba/core/MutexStore"
import { BackendError } from "@effect-simba/core/SimbaError"
import type { Notice, Subscriber } from "@effect-simba/core/Subscriber"
import { RedisMutex } from "@effect-simba/redis"
import { FakeRedis, TestMutex } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import {
  Context,
  Deferred,
  Duration,
  Effect,
  Exit,
  Fiber,
  Layer,
  Logger,
  Option,
  Queue,
  References,
  Scope
} from "effect"
import { Redis, RedisError } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import * as RedisKeys from "../../src/internal/mutex/keys.ts"
import * as mailboxes from "../../src/internal/mutex/waiterInbox.ts"
import { contender, counterOf, freshId, freshName, ownerOf } from "../support/harness.ts"

const lost = new BackendError({ operation: "subscribe", isRetryable: true, cause: new Error("the connection is down") })

/** A fake subscriber on which the test publishes messages and gaps and controls the outcome of subscriptions. */
const channels = () => {
  const open = new Map<string, Set<Queue.Queue<Notice>>>()
  const asked: Array<string> = []
  let reply: Effect.Effect<void, BackendError> = Effect.void
  const subscribe: Subscriber["Service"]["subscribe"] = Effect.fnUntraced(function*(channel) {
    asked.push(channel)
    yield* reply
    const queue = yield* Queue.unbounded<Notice>()
    const queues = open.get(channel) ?? new Set()
    open.set(channel, queues.add(queue))
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        queues.delete(queue)
        if (queues.size === 0) open.delete(channel)
      })
    )
    return queue
  })
  const offer = (channel: string, notice: Notice) =>
    Effect.sync(() => open.get(channel)?.forEach((queue) => Queue.offerUnsafe(queue, notice)))
  return {
    subscriber: { subscribe, countable: true, bound: undefined } as Subscriber["Service"],
    open,
    asked,
    responsive: (effect: Effect.Effect<void, BackendError>) => {
      reply = effect
    },
    publish: (channel: string, text: string) => offer(channel, { _tag: "Message", channel, text }),
    gap: (channel: string) => offer(channel, { _tag: "Gap" })
  }
}

/** Returns the messages received by a waiter so far. */
const heard = Effect.fnUntraced(function*({ next }: { readonly next: Effect.Effect<WakeUp> }) {
  const all: Array<WakeUp> = []
  for (;;) {
    const fiber = yield* Effect.forkChild(next, { startImmediately: true })
    for (let i = 0; i < 20 && fiber.pollUnsafe() === undefined; i++) yield* Effect.yieldNow
    if (fiber.pollUnsafe() === undefined) {
      yield* Fiber.interrupt(fiber)
      return all
    }
    all.push(yield* Fiber.join(fiber))
  }
})

const settle = Effect.repeat(Effect.yieldNow, { times: 20 })

const poll = (millis: number): WakeUp => ({ _tag: "PollAfter", delay: Duration.millis(millis) })
const gap: WakeUp = { _tag: "Gap" }

const inboxes = (subscriber: Subscriber["Service"]) =>
  Effect.map(mailboxes.make(subscriber, () => undefined), (inboxes) => ({
    ...inboxes,
    wakeUps: (mutex: MutexName, id: LeaseId) => wakeUps({ inbox: inboxes.open } as MutexStore["Service"], mutex, id)
  }))

describe("messages to a layer's waiters", () => {
  it.effect(
    "10,000 waiters share one subscription, and each receives only its own messages",
    () =>
      Effect.gen(function*() {
        const { asked, open, publish, subscriber } = channels()
        const { wakeUps } = yield* inboxes(subscriber)
        const first = freshId()
        const inbox = RedisKeys.inboxChannel(inboxOf(first))
        const ids = [first, ...Array.from({ length: 9999 }, () => freshId(first))]
        const scope = yield* Scope.make()
        const waiting = yield* Effect.forEach(ids, (id) => Scope.provide(wakeUps(freshName("many"), id), scope))
        assert.deepStrictEqual(asked, [inbox])
        assert.strictEqual(open.get(inbox)?.size, 1)
        for (const [index, id] of ids.entries()) yield* publish(inbox, `${counterOf(id)}@@look@@${index}`)
        for (const [index, wait] of waiting.entries()) assert.deepStrictEqual(yield* wait.next, poll(index))
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual(open.size, 0)
      }),
    { tags: ["B40"] }
  )

  it.effect("a gap reaches every waiter in its layer", () =>
    Effect.gen(function*() {
      const { gap: lose, subscriber } = channels()
      const { wakeUps } = yield* inboxes(subscriber)
      const [a, b] = [freshId(), freshId()]
      const of = (id: typeof a) => Effect.forEach([id, freshId(id), freshId(id)], (id) => wakeUps(freshName("gap"), id))
      const [as, bs] = [yield* of(a), yield* of(b)]
      yield* lose(RedisKeys.inboxChannel(inboxOf(a)))
      for (const wait of as) assert.deepStrictEqual(yield* heard(wait), [gap])
      for (const wait of bs) assert.deepStrictEqual(yield* heard(wait), [])
    }), { tags: ["B43"] })

  it.effect(
    "a failed subscription fails all waiters that need it, and is retried for the next waiter",
    () =>
      Effect.gen(function*() {
        const { responsive, asked, publish, subscriber } = channels()
        const { open: inbox, wakeUps } = yield* inboxes(subscriber)
        const id = freshId()
        const failing = Deferred.makeUnsafe<void, BackendError>()
        responsive(Deferred.await(failing))
        const attempt = (id: Parameters<typeof wakeUps>[1]) => Effect.exit(wakeUps(freshName("failing"), id))
        // The scope of the attempts stays open, as during a wait with several attempts
        const first = yield* Effect.forkChild(Effect.all([attempt(id), attempt(freshId(id))], { concurrency: 2 }))
        const layer = yield* Effect.forkChild(Effect.exit(inbox(inboxOf(id), () => undefined)))
        yield* settle
        assert.strictEqual(asked.length, 1)
        yield* Deferred.fail(failing, lost)
        for (const exit of [...yield* Fiber.join(first), yield* Fiber.join(layer)]) {
          assert.deepStrictEqual(Exit.findErrorOption(exit as Exit.Exit<unknown, BackendError>), Option.some(lost))
        }
        responsive(Effect.void)
        const wait = yield* wakeUps(freshName("failing"), id)
        assert.strictEqual(asked.length, 2)
        yield* publish(RedisKeys.inboxChannel(inboxOf(id)), `${counterOf(id)}@@granted@@7@@1@@1500`)
        assert.deepStrictEqual(yield* wait.next, {
          _tag: "YourTurn",
          grant: { token: FencingToken.make(7), micros: 6, millis: 1500 }
        })
      }),
    { tags: ["B43"] }
  )

  it.effect("no subscription remains if a waiter leaves before its subscription is confirmed", () =>
    Effect.gen(function*() {
      const { responsive, open, subscriber } = channels()
      const { wakeUps } = yield* inboxes(subscriber)
      const acknowledged = Deferred.makeUnsafe<void>()
      responsive(Deferred.await(acknowledged))
      const going = yield* Effect.forkChild(Effect.scoped(wakeUps(freshName("going"), freshId())))
      yield* settle
      yield* Fiber.interrupt(going)
      yield* Deferred.succeed(acknowledged, undefined)
      yield* settle
      assert.strictEqual(open.size, 0)
    }))

  it.effect("each of many simultaneous forced releases is reported", () =>
    Effect.gen(function*() {
      const { publish, subscriber } = channels()
      const { open } = yield* mailboxes.make(subscriber, () => undefined)
      const first = freshId()
      const forced: Array<string> = []
      yield* open(inboxOf(first), (id) => forced.push(id))
      const ids = [first, ...Array.from({ length: 200 }, () => freshId(first))]
      for (const id of ids) yield* publish(RedisKeys.inboxChannel(inboxOf(id)), `forced@@${id}`)
      yield* settle
      assert.deepStrictEqual(forced, ids)
    }), { tags: ["B59"] })

  it.effect("a waiter that detects a Simba contender subscribes to its own channel once, then polls", () =>
    Effect.gen(function*() {
      const { asked, open, publish, subscriber } = channels()
      const { noteForeign, wakeUps } = yield* inboxes(subscriber)
      const [m, id] = [freshName("foreign"), freshId()]
      const own = RedisKeys.contenderChannel(m, id)
      const scope = yield* Scope.make()
      const wait = yield* Scope.provide(wakeUps(m, id), scope)
      yield* settle
      assert.isFalse(open.has(own))
      for (let i = 0; i < 3; i++) noteForeign(m, id)
      assert.deepStrictEqual(yield* heard(wait), [gap])
      noteForeign(m, id)
      yield* settle
      assert.deepStrictEqual(asked, [RedisKeys.inboxChannel(inboxOf(id)), own])
      yield* publish(own, "released@@7:4711@stock-host")
      assert.deepStrictEqual(yield* heard(wait), [{ _tag: "YourTurn", grant: undefined }])
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(open.size, 0)
      noteForeign(m, id)
      yield* settle
      assert.strictEqual(asked.length, 2)
    }))

  it.effect("a failed subscription to a waiter's own channel is retried after the next refusal", () =>
    Effect.gen(function*() {
      const { responsive, asked, open, subscriber } = channels()
      const { noteForeign, wakeUps } = yield* inboxes(subscriber)
      const [m, id] = [freshName("foreign, failing"), freshId()]
      const wait = yield* wakeUps(m, id)
      responsive(Effect.fail(lost))
      noteForeign(m, id)
      assert.deepStrictEqual(yield* heard(wait), [])
      responsive(Effect.void)
      noteForeign(m, id)
      assert.deepStrictEqual(yield* heard(wait), [gap])
      assert.strictEqual(asked.length, 3)
      assert.isTrue(open.has(RedisKeys.contenderChannel(m, id)))
    }))

  it.effect("a listener receives messages until it leaves", () =>
    Effect.gen(function*() {
      const { gap: lose, open, publish, subscriber } = channels()
      const inboxes = yield* mailboxes.make(subscriber, () => undefined)
      const { noteForeign } = inboxes
      const [m, id] = [freshName("listener"), freshId()]
      const notified: Array<WakeUp> = []
      const { listen } = yield* inboxes.open(inboxOf(id), () => undefined)
      const leave = listen(m, id, (wakeUp) => notified.push(wakeUp))
      const inbox = RedisKeys.inboxChannel(inboxOf(id))
      yield* publish(inbox, `${counterOf(id)}@@look@@7`)
      yield* settle
      assert.deepStrictEqual(notified, [poll(7)])
      yield* lose(inbox)
      yield* settle
      noteForeign(m, id)
      yield* settle
      assert.deepStrictEqual(notified.splice(1), [gap, gap], "gaps in the inbox and in its own channel")
      assert.isTrue(open.has(RedisKeys.contenderChannel(m, id)))
      leave()
      yield* publish(inbox, `${counterOf(id)}@@look@@8`)
      yield* settle
      assert.deepStrictEqual(notified, [poll(7)])
      assert.isFalse(open.has(RedisKeys.contenderChannel(m, id)))
    }))

  it.effect("a gap delivered in slices does not reach waiters that leave meanwhile", () =>
    Effect.gen(function*() {
      const { gap: lose, subscriber } = channels()
      const { open } = yield* mailboxes.make(subscriber, () => undefined)
      const m = freshName("sliced")
      const first = freshId()
      const { listen } = yield* open(inboxOf(first), () => undefined)
      const heard: Array<number> = []
      const leave: Array<() => void> = []
      for (let i = 0; i < 100; i++) {
        leave[i] = listen(m, i === 0 ? first : freshId(first), () => {
          heard.push(i)
          // The first waiter makes half of the others leave
          if (i === 0) leave.slice(50).forEach((leave) => leave())
        })
      }
      yield* lose(RedisKeys.inboxChannel(inboxOf(first)))
      yield* settle
      assert.deepStrictEqual(heard, Array.from({ length: 50 }, (_, i) => i))
    }))

  it.effect("no subscription remains, no matter when a layer is interrupted while it subscribes", () =>
    Effect.gen(function*() {
      const { open, subscriber } = channels()
      const inboxes = yield* mailboxes.make(subscriber, () => undefined)
      let begun = 0
      for (let before = 0; before < 60; before++) {
        const id = freshId()
        // The fiber yields after sixty operations. `before` of them precede the subscription.
        const layer = yield* Effect.forEach(Array.from({ length: before }), () => Effect.void).pipe(
          Effect.andThen(Effect.scoped(Effect.andThen(inboxes.open(inboxOf(id), () => undefined), Effect.never))),
          Effect.provideService(References.MaxOpsBeforeYield, 60),
          Effect.forkChild({ startImmediately: true })
        )
        if (open.size > 0) begun++
        yield* Fiber.interrupt(layer)
        assert.strictEqual(open.size, 0, `after ${before} operations`)
      }
      assert.isAbove(begun, 0)
      assert.isBelow(begun, 60)
    }))

  it.effect("no subscription remains if a waiter leaves because of a gap in its own channel", () =>
    Effect.gen(function*() {
      const { open, subscriber } = channels()
      const inboxes = yield* mailboxes.make(subscriber, () => undefined)
      const [m, id] = [freshName("foreign, gone"), freshId()]
      const { listen } = yield* inboxes.open(inboxOf(id), () => undefined)
      const leave = listen(m, id, () => leave())
      inboxes.noteForeign(m, id)
      yield* settle
      assert.isFalse(open.has(RedisKeys.contenderChannel(m, id)))
    }))

  it.effect("no subscription remains if a waiter leaves while it subscribes to its own channel", () =>
    Effect.gen(function*() {
      const { responsive, open, subscriber } = channels()
      const { noteForeign, wakeUps } = yield* inboxes(subscriber)
      const [m, id] = [freshName("foreign, going"), freshId()]
      const scope = yield* Scope.make()
      yield* Scope.provide(wakeUps(m, id), scope)
      const acknowledged = Deferred.makeUnsafe<void>()
      responsive(Deferred.await(acknowledged))
      noteForeign(m, id)
      yield* settle
      yield* Scope.close(scope, Exit.void)
      yield* Deferred.succeed(acknowledged, undefined)
      yield* settle
      assert.strictEqual(open.size, 0)
    }))
})

const FakeLive = Layer.merge(FakeRedis.layer(), Logger.layer([]))

describe("a place that a live layer could not release", () => {
  /** Three stores with their own connections. Requests from store `a` fail while `failing.now` is set. */
  const stores = Effect.gen(function*() {
    const failing = { now: false }
    const open = Effect.fnUntraced(function*(name: string) {
      const context = yield* Layer.build(FakeRedis.layerClient({ name }))
      const redis = Context.get(context, Redis)
      const send: Redis["Service"]["send"] = (command, ...args) =>
        failing.now && name === "a" && command === "EVALSHA"
          ? Effect.fail(new RedisError({ cause: new Error("the connection is down") }))
          : redis.send(command, ...args)
      const store = Layer.fresh(RedisMutex.layerStore).pipe(
        Layer.provide(Layer.succeedContext(Context.add(context, Redis, { ...redis, send })))
      )
      return Context.get(yield* Layer.build(store), MutexStore)
    })
    return { failing, a: yield* open("a"), b: yield* open("b"), late: yield* open("late") }
  })

  const settled = Effect.repeat(TestClock.adjust(0), { times: 5 })

  /** Waits until no waiter is fresh: longer than the confirm period, but shorter than the lease. */
  const stale = TestClock.adjust("31 seconds")

  it.effect("is released as soon as it is granted the mutex", () =>
    Effect.gen(function*() {
      const { a, b, failing } = yield* stores
      const m = freshName("owed")
      const [holder, gone, next] = [contender(b, m), contender(a, m), contender(b, m)]
      // Open the inbox like a layer
      yield* a.inbox(inboxOf(gone.id), () => undefined)
      yield* holder.own
      yield* Effect.scoped(Effect.andThen(gone.subscribe, gone.wait))
      const wakeUps = yield* next.subscribe
      yield* next.wait
      yield* stale
      failing.now = true
      assert.strictEqual((yield* Effect.flip(gone.release))._tag, "BackendError")
      failing.now = false
      const changes = yield* b.changes(m)
      yield* holder.release
      yield* settled
      assert.deepStrictEqual(yield* changes.next, { _tag: "Acquired", owner: gone.id })
      assert.deepStrictEqual(yield* changes.next, { _tag: "Acquired", owner: next.id })
      assert.strictEqual(ownerOf(yield* b.owner(m)), next.id)
      assert.strictEqual((yield* wakeUps.next)._tag, "PollAfter")
      assert.include(yield* wakeUps.next, { _tag: "YourTurn" })
      // A late, repeated message causes another release of the place
      const server = yield* FakeRedis.FakeRedis
      const late = Context.get(yield* Layer.build(FakeRedis.layerClient({ name: "late" })), Redis)
      yield* server.clearTrace
      yield* late.send("PUBLISH", RedisKeys.inboxChannel(inboxOf(gone.id)), `${counterOf(gone.id)}@@look@@0`)
      yield* settled
      assert.deepStrictEqual((yield* server.trace).map(({ args }) => args[0]), ["PUBLISH", "EVALSHA"])
    }).pipe(Effect.provide(FakeLive)))

  it.effect("is released when granted the mutex, even if a late request requeued it after its release", () =>
    Effect.gen(function*() {
      const { a, b, late } = yield* stores
      const m = freshName("queued late")
      const [holder, gone, next] = [contender(b, m), contender(a, m), contender(b, m)]
      yield* a.inbox(inboxOf(gone.id), () => undefined)
      yield* holder.own
      yield* Effect.scoped(Effect.andThen(gone.subscribe, gone.wait))
      yield* gone.release
      // A late request arrives. To store `a`, it looks like one on another connection.
      yield* acquire(late, {
        mutex: m,
        id: gone.id,
        mode: "wait",
        lease: Duration.minutes(1),
        confirm: Duration.seconds(30)
      })
      yield* next.subscribe
      yield* next.wait
      const changes = yield* b.changes(m)
      yield* holder.release
      yield* settled
      assert.deepStrictEqual(yield* changes.next, { _tag: "Acquired", owner: gone.id })
      assert.strictEqual(ownerOf(yield* b.owner(m)), next.id)
    }).pipe(Effect.provide(FakeLive)))

  it.effect("is released when granted the mutex, even if it was requeued by a release and then by a late request", () =>
    Effect.gen(function*() {
      const { a, b, late } = yield* stores
      const m = freshName("queued by a release")
      const [holder, gone, next] = [contender(a, m), contender(a, m), contender(b, m)]
      const periods = { lease: Duration.minutes(1), confirm: Duration.seconds(30) }
      yield* a.inbox(inboxOf(gone.id), () => undefined)
      yield* holder.own
      yield* next.subscribe
      yield* next.wait
      const requeue = { id: gone.id, lease: periods.lease }
      const { requeued } = yield* release(a, { mutex: m, id: holder.id, ...periods, requeue })
      assert.strictEqual(ownerOf(requeued!.ownership), next.id)
      yield* gone.release
      // A late request arrives. To store `a`, it looks like one on another connection.
      yield* acquire(late, { mutex: m, id: gone.id, mode: "wait", ...periods })
      const changes = yield* b.changes(m)
      yield* next.release
      yield* settled
      assert.deepStrictEqual(yield* changes.next, { _tag: "Acquired", owner: gone.id })
      assert.strictEqual((yield* b.owner(m))._tag, "Free")
    }).pipe(Effect.provide(FakeLive)))

  it.effect("leaves the queue when asked to poll, and the next waiter is asked instead", () =>
    Effect.gen(function*() {
      const { a, b, failing } = yield* stores
      const m = freshName("owed, asked to poll")
      const [holder, first, gone, next] = [contender(b, m), contender(b, m), contender(a, m), contender(b, m)]
      yield* a.inbox(inboxOf(gone.id), () => undefined)
      yield* holder.own
      yield* first.subscribe
      yield* first.wait
      yield* Effect.scoped(Effect.andThen(gone.subscribe, gone.wait))
      const wakeUps = yield* next.subscribe
      yield* next.wait
      yield* stale
      failing.now = true
      yield* Effect.flip(gone.release)
      failing.now = false
      assert.strictEqual(ownerOf(yield* holder.release), first.id)
      yield* settled
      assert.strictEqual((yield* wakeUps.next)._tag, "PollAfter")
      assert.deepStrictEqual((yield* b.inspect(m, 10)).waiters.map(({ id }) => id), [next.id])
    }).pipe(Effect.provide(FakeLive)))

  it.effect("is not released because of a late message if its lease is live and its release was never requested", () =>
    Effect.gen(function*() {
      const { a, b } = yield* stores
      const m = freshName("kept")
      const [holder, owner] = [contender(b, m), contender(a, m)]
      yield* a.inbox(inboxOf(owner.id), () => undefined)
      yield* holder.own
      yield* Effect.scoped(Effect.gen(function*() {
        yield* owner.subscribe
        yield* owner.wait
        yield* holder.release
        yield* owner.confirm
      }))
      const redis = Context.get(yield* Layer.build(FakeRedis.layerClient({ name: "late" })), Redis)
      const late = `${counterOf(owner.id)}@@look@@0`
      assert.strictEqual(yield* redis.send("PUBLISH", RedisKeys.inboxChannel(inboxOf(owner.id)), late), 1)
      yield* settled
      assert.strictEqual(ownerOf(yield* b.owner(m)), owner.id)
    }).pipe(Effect.provide(FakeLive)))
})

describe("the cost of a contended mutex", () => {
  /**
   * Returns the number of commands per layer when `count` layers queue behind a holder and get the mutex one after
   * another.
   */
  const sent = Effect.fnUntraced(function*(count: number, age: Duration.Input = 0) {
    const server = yield* FakeRedis.FakeRedis
    const open = Effect.map(
      Layer.build(
        Layer.fresh(
          TestMutex.layerClient(RedisMutex.layerStore, {
            ttl: "10 minutes",
            transition: "5 minutes",
            confirmTimeout: "1 minute"
          })
        )
      ),
      Context.get(Mutex.Mutex)
    )
    const holder = yield* open
    const others = yield* Effect.all(Array.from({ length: count }, () => open))
    const scope = yield* Scope.make()
    yield* Scope.provide(holder.acquire("m"), scope)
    yield* server.clearTrace
    const served: Array<number> = []
    const waiting = []
    for (const [index, mutex] of others.entries()) {
      waiting.push(yield* Effect.forkChild(mutex.withLock("m")(Effect.sync(() => served.push(index)))))
      yield* TestClock.adjust("10 millis")
    }
    yield* TestClock.adjust(age)
    yield* Scope.close(scope, Exit.void)
    // The hand-offs must complete while virtual time stands still
    yield* Fiber.joinAll(waiting)
    // `withLock` does not wait for the last release
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(served, others.map((_, index) => index))
    const commands = (yield* server.trace).map(({ args }) => args[0]!).filter((name) => name !== "PING")
    // The last of the `count + 1` releases has no successor
    assert.deepStrictEqual([...new Set(commands)], ["EVALSHA"])
    return (commands.length - 1) / count
  }, Effect.scoped)

  it.effect(
    "a hand-off between layers takes three commands from request to release, for 2 waiters and for 100",
    () =>
      Effect.gen(function*() {
        // A try, a place in the queue, and a release. No layer subscribes or polls in between.
        assert.deepStrictEqual([yield* sent(2), yield* sent(100)], [3, 3])
        // After waiting longer than a confirm period, a waiter confirms its grant too
        assert.deepStrictEqual([yield* sent(2, "61 seconds"), yield* sent(100, "61 seconds")], [4, 4])
      }).pipe(Effect.provide(FakeLive)),
    { tags: ["H2"] }
  )
})
