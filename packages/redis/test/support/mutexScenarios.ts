/**
 * Scenarios for mutexes on Redis. `server/single/mutex.test.ts` runs them on a real server, and `memory/mutex.test.ts`
 * on the fake one. The titles are in those files.
 */
import type * as Mutex from "@effect-simba/core/Mutex"
import type { MutexName } from "@effect-simba/core/MutexName"
import { BackendError, LeaseLost } from "@effect-simba/core/SimbaError"
import { assert } from "@effect/vitest"
import { Clock, Deferred, Duration, Effect, Exit, Fiber, Option, Scope } from "effect"
import { freshName, held, keysOf, ownerOf, patient, queued, quiet, until } from "./harness.ts"

/** `name` is the client's connection name, and `clientTimeout` its command timeout. */
export interface OpenOptions extends Mutex.Options {
  readonly name?: string
  readonly clientTimeout?: Duration.Input
}

/** What a scenario needs from its environment. */
export interface Stage {
  /** Opens a `Mutex` with its own connections, as another process would. */
  readonly open: (options?: OpenOptions) => Effect.Effect<Mutex.Mutex["Service"], unknown, Scope.Scope>
  readonly server: {
    readonly send: (...args: ReadonlyArray<string>) => Effect.Effect<unknown, unknown>
    /** Suspends the server, which stops replying but keeps its connections open. */
    readonly pause: Effect.Effect<void>
    readonly resume: Effect.Effect<void>
    readonly kill: Effect.Effect<void>
    /** Restarts the server without its data. */
    readonly restart: Effect.Effect<void, unknown>
    /** Closes the subscription connection of the client with this name. */
    readonly loseSubscription: (name: string) => Effect.Effect<void, unknown>
    /** Closes all command connections. */
    readonly loseConnections: Effect.Effect<void, unknown>
  }
}

const scenario =
  <A, E>(script: (stage: Stage) => Generator<Effect.Effect<unknown, E, Scope.Scope>, A>) =>
  (stage: Stage): Effect.Effect<A, E> => Effect.scoped(Effect.gen(() => script(stage))).pipe(Effect.provide(quiet))

const noPlace = (server: Stage["server"], mutex: MutexName) =>
  until("the queue is gone", Effect.map(server.send("EXISTS", keysOf(mutex).queue), (n) => n === 0))

const noChannel = (server: Stage["server"]) =>
  until(
    "no subscription is left",
    Effect.map(server.send("PUBSUB", "CHANNELS", "simba:{*"), (list) => String(list) === "")
  )

const keysLeft = (server: Stage["server"], mutex: MutexName) =>
  Effect.map(server.send("KEYS", `simba:{${mutex}}*`), (keys) => keys as ReadonlyArray<string>)

/** Work that runs until it is interrupted, and records the time of the interruption. */
const interruptible = () => {
  let interruptedAt: number | undefined
  return {
    body: Effect.onInterrupt(Effect.never, () =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        interruptedAt = now
      })),
    get interruptedAt() {
      return interruptedAt
    }
  }
}

const lossOf = <A, E>(exit: Exit.Exit<A, E>): LeaseLost => {
  const error = Option.getOrUndefined(Exit.findErrorOption(exit))
  assert.instanceOf(error, LeaseLost, JSON.stringify(exit))
  return error as unknown as LeaseLost
}

export const exclusion = scenario(function*({ open, server }) {
  const m = freshName("exclusion")
  let inside = 0
  const tokens: Array<number> = []
  const worker = (mutex: Mutex.Mutex["Service"]) =>
    Effect.repeat(
      mutex.withLock(m)((lease) =>
        Effect.gen(function*() {
          assert.strictEqual(++inside, 1)
          tokens.push(lease.token)
          yield* Effect.sleep("1 millis")
          yield* lease.ensure
          assert.strictEqual(inside--, 1)
        })
      ),
      { times: 9 }
    )
  const places = yield* Effect.all([open(), open(), open()])
  yield* Effect.all(
    places.flatMap((place) => Array.from({ length: 5 }, () => worker(place))),
    { concurrency: "unbounded" }
  )
  assert.strictEqual(tokens.length, 150)
  assert.deepStrictEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b))
  assert.strictEqual(yield* server.send("EXISTS", keysOf(m).owner, keysOf(m).queue), 0)
})

export const order = scenario(function*({ open, server }) {
  const m = freshName("order")
  const places = yield* Effect.all(Array.from({ length: 13 }, () => open(patient)))
  const letGo = yield* Deferred.make<void>()
  const order: Array<number> = []
  const first = yield* Effect.forkScoped(places[12]!.withLock(m)(Deferred.await(letGo)))
  yield* held(server, m)
  const waiters: Array<Fiber.Fiber<unknown, unknown>> = []
  for (let i = 0; i < 12; i++) {
    waiters.push(yield* Effect.forkScoped(places[(i * 5) % 12]!.withLock(m)(Effect.sync(() => order.push(i)))))
    yield* queued(server, m, i + 1)
  }
  yield* Deferred.succeed(letGo, undefined)
  for (const fiber of [first, ...waiters]) yield* Fiber.join(fiber)
  assert.deepStrictEqual(order, Array.from({ length: 12 }, (_, i) => i))
})

export const lostSubscription = scenario(function*({ open, server }) {
  const m = freshName("gap")
  const holder = yield* open(patient)
  const waiter = yield* open({ ...patient, name: "waiter" })
  for (let round = 0; round < 3; round++) {
    const letGo = yield* Deferred.make<void>()
    const holding = yield* Effect.forkScoped(holder.withLock(m)(Deferred.await(letGo)))
    yield* held(server, m)
    const waiting = yield* Effect.forkScoped(waiter.withLock(m)(Effect.void))
    yield* queued(server, m, 1)
    yield* server.loseSubscription("waiter")
    yield* Deferred.succeed(letGo, undefined)
    yield* Fiber.join(holding)
    yield* Effect.timeout(Fiber.join(waiting), "10 seconds")
  }
})

export const deleted = scenario(function*({ open, server }) {
  const mutex = yield* open({ ttl: "300 millis", transition: "3 seconds" })
  const m = freshName("deleted")
  const work = interruptible()
  const working = yield* Effect.forkScoped(mutex.withLock(m)(work.body))
  yield* held(server, m)
  yield* server.send("DEL", keysOf(m).owner)
  const loss = lossOf(yield* Fiber.await(working))
  assert.strictEqual(loss.reason._tag, "Vanished")
  assert.isDefined(work.interruptedAt)
  yield* Effect.sleep("700 millis")
  assert.strictEqual(yield* server.send("EXISTS", keysOf(m).owner), 0)
})

export const overwritten = scenario(function*({ open, server }) {
  const mutex = yield* open({ ttl: "300 millis", transition: "3 seconds" })
  const m = freshName("overwritten")
  const work = interruptible()
  const working = yield* Effect.forkScoped(mutex.withLock(m)(work.body))
  yield* held(server, m)
  yield* server.send("SET", keysOf(m).owner, "somebody else", "PX", "60000")
  const loss = lossOf(yield* Fiber.await(working))
  assert.deepStrictEqual(loss.reason, { _tag: "TakenOver", owner: "somebody else" })
  assert.isDefined(work.interruptedAt)
  assert.strictEqual(yield* server.send("GET", keysOf(m).owner), "somebody else")
})

export const renewed = scenario(function*({ open }) {
  const mutex = yield* open({
    ttl: "200 millis",
    transition: "2 seconds",
    commandTimeout: "500 millis"
  })
  const other = yield* open()
  const m = freshName("renewed")
  yield* mutex.withLock(m)((lease) =>
    Effect.gen(function*() {
      for (let i = 0; i < 15; i++) {
        yield* Effect.sleep("200 millis")
        yield* lease.ensure
        assert.strictEqual(ownerOf(yield* other.owner(m)), lease.id)
      }
    })
  )
  // `withLock` does not wait for the reply to its release, so another process may briefly still observe the lock
  yield* until("released", Effect.map(other.owner(m), ({ _tag }) => _tag === "Free"))
})

export const interrupted = scenario(function*({ open, server }) {
  const [holder, waiter] = yield* Effect.all([open(patient), open(patient)])
  const m = freshName("interrupted")
  yield* Effect.scoped(Effect.gen(function*() {
    const lease = yield* holder.acquire(m)
    const waiting = yield* Effect.forkScoped(Effect.scoped(waiter.acquire(m)))
    yield* queued(server, m, 1)
    yield* Fiber.interrupt(waiting)
    yield* noPlace(server, m)
    yield* noChannel(server)
    assert.strictEqual(yield* server.send("GET", keysOf(m).owner), lease.id)
  }))
  assert.deepStrictEqual(yield* keysLeft(server, m), [keysOf(m).fence])
})

export const interruptedAnywhere = scenario(function*({ open, server }) {
  const mutex = yield* open(patient)
  const m = freshName("interrupted anywhere")
  for (let i = 0; i < 60; i++) {
    const holding = i % 2 === 0
    const attempts = Effect.forEach(
      [1, 2, 3],
      () => Effect.scoped(Effect.andThen(mutex.acquire(m), Effect.never)),
      {
        concurrency: "unbounded"
      }
    )
    const fiber = yield* Effect.forkScoped(holding ? attempts : Effect.scoped(mutex.acquire(m)))
    for (let yields = 0; yields < i % 10; yields++) yield* Effect.yieldNow
    if (i % 3 === 0) yield* Effect.sleep(Duration.millis((i % 7) / 2))
    yield* Fiber.interrupt(fiber)
  }
  yield* until(
    "nothing is left",
    Effect.map(keysLeft(server, m), (keys) => keys.every((key) => key === keysOf(m).fence))
  )
  yield* noChannel(server)
  yield* Effect.timeout(Effect.scoped(mutex.acquire(m)), "5 seconds")
})

export const timedOut = scenario(function*({ open, server }) {
  const [holder, waiter] = yield* Effect.all([open(patient), open(patient)])
  const m = freshName("timed out")
  yield* Effect.scoped(Effect.gen(function*() {
    const lease = yield* holder.acquire(m)
    const begun = yield* Clock.currentTimeMillis
    const error = yield* Effect.flip(waiter.withLock(m, { timeout: "2 seconds" })(Effect.void))
    assert.isAtLeast((yield* Clock.currentTimeMillis) - begun, 1999)
    assert.strictEqual(error._tag, "AcquireTimeout")
    if (error._tag === "AcquireTimeout") assert.strictEqual(error.owner, lease.id)
    yield* noPlace(server, m)
    yield* noChannel(server)
    assert.strictEqual(yield* server.send("GET", keysOf(m).owner), lease.id)
  }))
  assert.deepStrictEqual(yield* keysLeft(server, m), [keysOf(m).fence])
})

export const leaving = scenario(function*({ open, server }) {
  const [holder, waiter, other] = yield* Effect.all([open(patient), open(patient), open(patient)])
  const m = freshName("leaving")
  const letGo = yield* Deferred.make<void>()
  const holding = yield* Effect.forkScoped(holder.withLock(m)(Deferred.await(letGo)))
  yield* held(server, m)
  const leaving = yield* Effect.forkScoped(Effect.scoped(waiter.acquire(m)))
  yield* queued(server, m, 1)
  const staying = yield* Effect.forkScoped(Effect.scoped(other.acquire(m)))
  yield* queued(server, m, 2)
  yield* Effect.all([Fiber.interrupt(leaving), Deferred.succeed(letGo, undefined)], { concurrency: 2 })
  yield* Fiber.join(holding)
  yield* Effect.timeout(Fiber.join(staying), "10 seconds")
})

export const restarted = scenario(function*({ open, server }) {
  const options = {
    ttl: "400 millis",
    transition: "20 seconds",
    confirmTimeout: "1 minute"
  } satisfies Mutex.Options
  const [holder, waiter] = yield* Effect.all([open(options), open(patient)])
  const m = freshName("restart")
  const work = interruptible()
  const holding = yield* Effect.forkScoped(holder.withLock(m)(work.body))
  yield* held(server, m)
  const waiting = yield* Effect.forkScoped(waiter.acquire(m))
  yield* queued(server, m, 1)
  yield* server.restart
  const lease = yield* Effect.timeout(Fiber.join(waiting), "15 seconds")
  yield* lease.ensure
  const loss = lossOf(yield* Effect.timeout(Fiber.await(holding), "15 seconds"))
  assert.include(["Vanished", "TakenOver"], loss.reason._tag)
  assert.isAbove(lease.token, loss.token)
  assert.isDefined(work.interruptedAt)
  yield* lease.ensure
})

export const hanging = scenario(function*({ open, server }) {
  const mutex = yield* open({
    ttl: "400 millis",
    transition: "1500 millis",
    commandTimeout: "500 millis",
    clientTimeout: "500 millis"
  })
  const m = freshName("hangs")
  const work = interruptible()
  const deadline = yield* Deferred.make<number>()
  const working = yield* Effect.forkScoped(
    mutex.withLock(m)((lease) =>
      Effect.gen(function*() {
        yield* Effect.sleep("1 second")
        yield* server.pause
        // Let the reply to an in-flight renewal arrive. No later renewal can succeed.
        yield* Effect.sleep("100 millis")
        yield* Deferred.succeed(deadline, (yield* Clock.currentTimeMillis) + Duration.toMillis(yield* lease.timeLeft))
        return yield* work.body
      })
    )
  )
  const loss = lossOf(yield* Fiber.await(working))
  assert.strictEqual(loss.reason._tag, "BackendGone")
  const due = yield* Deferred.await(deadline)
  assert.isDefined(work.interruptedAt)
  assert.isAtLeast(work.interruptedAt! - due, -5, "not interrupted before the deadline")
  assert.isBelow(work.interruptedAt! - due, 1000, "interrupted soon after the deadline")
  yield* server.resume
  yield* until(
    "the mutex is free again",
    Effect.map(Effect.exit(mutex.owner(m)), (exit) => Exit.isSuccess(exit) && exit.value._tag === "Free")
  )
  yield* Effect.retry(mutex.withLock(m)(Effect.void), { times: 10 })
})

export const shortOutage = scenario(function*({ open, server }) {
  const mutex = yield* open({
    ttl: "300 millis",
    transition: "10 seconds",
    commandTimeout: "500 millis",
    clientTimeout: "500 millis"
  })
  const m = freshName("short outage")
  yield* mutex.withLock(m)((lease) =>
    Effect.gen(function*() {
      yield* server.pause
      yield* Effect.sleep("2 seconds")
      yield* server.resume
      yield* until("renewed", Effect.map(lease.timeLeft, (left) => Duration.toMillis(left) > 9500))
      assert.strictEqual(yield* server.send("GET", keysOf(m).owner), lease.id)
      // Nor does a lost connection end the lease
      yield* server.loseConnections
      yield* Effect.sleep("500 millis")
      yield* until("renewed", Effect.map(lease.timeLeft, (left) => Duration.toMillis(left) > 9500))
      yield* lease.ensure
    })
  )
})

/** With a timeout of zero, each way to wait makes a single attempt. */
export const longest = scenario(function*({ open }) {
  const longest = "365000 days"
  const options = { ttl: longest, transition: longest, confirmTimeout: longest } as const
  const us = yield* open(options)
  const them = yield* open(options)
  const m = freshName("longest")
  const lease = yield* us.acquire(m)
  const { ownership } = yield* them.inspect(m)
  assert.strictEqual(ownership._tag === "Held" ? Duration.toDays(ownership.timeLeft!) > 729_999 : ownership, true)
  const waiting = yield* Effect.forkScoped(Effect.flip(Effect.scoped(them.acquire(m, { timeout: "300 millis" }))))
  yield* Effect.sleep("400 millis")
  assert.strictEqual((yield* Fiber.join(waiting))._tag, "AcquireTimeout")
  yield* lease.ensure
})

export const oneTry = scenario(function*({ open, server }) {
  const us = yield* open()
  const them = yield* open()
  const [m, n] = [freshName("one try"), freshName("one try for two")]
  const refusal = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E, Scope.Scope>) =>
    Effect.map(Effect.flip(Effect.scoped(effect)), ({ _tag }) => _tag)
  const timeout = { timeout: 0 }
  for (let round = 0; round < 20; round++) {
    const lease = yield* Effect.scoped(us.acquire(m, timeout))
    yield* us.withLock(m, timeout)(({ token }) => Effect.sync(() => assert.isAbove(token, lease.token)))
    const group = yield* Effect.scoped(us.acquireAll([m, n], timeout))
    assert.strictEqual(group.leases.length, 2)
  }
  yield* server.pause
  const slow = yield* Effect.forkScoped(us.withLock(m, timeout)(Effect.succeed("done")))
  yield* Effect.sleep("200 millis")
  assert.isUndefined(slow.pollUnsafe(), "does not return before the reply")
  yield* server.resume
  assert.strictEqual(yield* Fiber.join(slow), "done")
  yield* Effect.scoped(Effect.gen(function*() {
    yield* them.acquire(n)
    assert.strictEqual(yield* refusal(us.acquire(n, timeout)), "AcquireTimeout")
    assert.strictEqual(yield* refusal(us.withLock(n, timeout)(Effect.void)), "AcquireTimeout")
    assert.strictEqual(yield* refusal(us.acquireAll([m, n], timeout)), "AcquireTimeout")
    assert.strictEqual(yield* server.send("EXISTS", keysOf(n).queue), 0, "nobody queued")
  }))
  yield* until("the first mutex is free", Effect.map(us.owner(m), ({ _tag }) => _tag === "Free"))
})

export const outage = scenario(function*({ open, server }) {
  const mutex = yield* open({
    ttl: "300 millis",
    transition: "4700 millis",
    commandTimeout: "300 millis"
  })
  const m = freshName("outage")
  yield* server.kill
  const waiting = yield* Effect.forkScoped(Effect.scoped(mutex.acquire(m)))
  yield* Effect.sleep("300 millis")
  assert.isUndefined(waiting.pollUnsafe())
  yield* server.restart
  yield* Effect.timeout(Fiber.join(waiting), "10 seconds")
  yield* server.kill
  const error = yield* Effect.flip(Effect.timeout(Effect.scoped(mutex.acquire(m)), "15 seconds"))
  assert.instanceOf(error, BackendError)
})

export const closed = scenario(function*({ open, server }) {
  const m = freshName("closed")
  for (const cleanUp of [0, 300]) {
    const scope = yield* Scope.make()
    const mutex = yield* Scope.provide(open(patient), scope)
    const begun = yield* Deferred.make<void>()
    const work = Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
    const working = yield* Effect.forkScoped(
      Effect.exit(mutex.withLock(m)(Effect.onInterrupt(work, () => Effect.sleep(cleanUp))))
    )
    yield* Deferred.await(begun)
    yield* Scope.close(scope, Exit.void)
    assert.strictEqual(yield* server.send("PTTL", keysOf(m).owner), -2)
    assert.strictEqual(lossOf(yield* Fiber.join(working)).reason._tag, "BackendGone")
  }
})
