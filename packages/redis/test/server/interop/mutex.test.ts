import * as Mutex from "@effect-simba/core/Mutex"
import type { LeaseId, MutexName } from "@effect-simba/core/MutexName"
import { inboxOf } from "@effect-simba/core/MutexStore"
import { BackendError } from "@effect-simba/core/SimbaError"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import type { Redis as Client } from "ioredis"
import * as RedisKeys from "../../../src/internal/mutex/keys.ts"
import {
  capturingLogs,
  channelsOpen,
  client,
  commandStats,
  contender,
  freshId,
  freshMutex,
  freshName,
  granted,
  held,
  inboxChannelOf,
  keysOf,
  messagesOn,
  type MutexOptions,
  openMutex,
  ownerOf,
  patient,
  queued,
  RedisServer,
  refused,
  simbaId,
  until
} from "../../support/harness.ts"

/** A Simba release is a single script, which deletes the owner key, removes one waiter and notifies it. */
const simbaRelease = `
redis.call('DEL', KEYS[1])
local next = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
if next then
  redis.call('ZREM', KEYS[2], next)
  redis.call('PUBLISH', KEYS[1] .. ':' .. next, 'released@@' .. ARGV[1])
end
return next
`

/** The scripts that a Simba contender runs. */
const simbaContender = (redis: Client, mutex: MutexName, id = simbaId()) => {
  const { owner, queue } = keysOf(mutex)
  const call = (command: string, ...args: ReadonlyArray<string | number>) =>
    Effect.promise(() => redis.call(command, ...args))
  return {
    id,
    acquire: Effect.fnUntraced(function*(millis: number) {
      if ((yield* call("SET", owner, id, "NX", "PX", millis)) === "OK") {
        yield* call("PUBLISH", owner, `acquired@@${id}`)
        return true
      }
      const [seconds] = (yield* call("TIME")) as [string, string]
      yield* call("ZADD", queue, "NX", seconds, id)
      return false
    }),
    guard: (millis: number) => call("PEXPIRE", owner, millis),
    /** Releases the mutex and returns the id of the notified waiter. */
    release: Effect.map(call("EVAL", simbaRelease, 2, owner, queue, id), (next) => next ?? undefined)
  }
}

layer(RedisServer.layer, { excludeTestServices: true })("a fleet shared with Simba contenders", (it) => {
  /**
   * Once they have detected a Simba contender, effect-simba waiters listen on their own channels, as Simba contenders
   * do.
   */
  const listening = Effect.fnUntraced(function*(mutex: MutexName, count: number) {
    const channels = channelsOpen(yield* RedisServer, `simba:{${mutex}}:*`)
    yield* until(`${count} listen`, Effect.map(channels, (open) => open.length === count))
  })

  /** An effect-simba waiter behind a Simba owner, listening on its own channel. */
  const behindSimba = Effect.fnUntraced(function*(label: string) {
    const server = yield* RedisServer
    const mutex = yield* openMutex(server, patient)
    const m = freshName(label)
    const simba = simbaContender(yield* client(server), m)
    assert.isTrue(yield* simba.acquire(60_000))
    const waiting = yield* Effect.forkScoped(mutex.acquire(m))
    yield* queued(server, m, 1)
    yield* listening(m, 1)
    const [id] = (yield* server.send("ZRANGE", keysOf(m).queue, "0", "-1")) as [LeaseId]
    return { server, m, simba, waiting, id }
  })

  it.effect("a waiter behind a Simba owner acquires the mutex when the owner's key expires", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const mutex = yield* openMutex(server)
      const m = freshName("foreign owner")
      const begun = performance.now()
      yield* server.send("SET", keysOf(m).owner, "3:4711@stock-host", "PX", "1200")
      const ownership = yield* mutex.owner(m)
      assert.strictEqual(ownerOf(ownership), "3:4711@stock-host")
      assert.isTrue((yield* Effect.scoped(mutex.acquireIfAvailable(m)))._tag === "None")
      yield* Effect.scoped(Effect.gen(function*() {
        const lease = yield* mutex.acquire(m)
        assert.isAtLeast(performance.now() - begun, 1200)
        assert.strictEqual(yield* server.send("GET", keysOf(m).owner), lease.id)
      }))
    }))

  it.effect("a waiter keeps waiting while a Simba owner renews", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const mutex = yield* openMutex(server, { confirmTimeout: "200 millis" })
      const m = freshName("renewing stock")
      const owner = simbaContender(yield* client(server), m)
      assert.isTrue(yield* owner.acquire(3000))
      const waiting = yield* Effect.forkScoped(Effect.scoped(mutex.acquire(m)))
      const begun = performance.now()
      for (let i = 0; i < 5; i++) {
        yield* owner.guard(3000)
        yield* Effect.sleep("300 millis")
        assert.strictEqual(yield* server.send("GET", keysOf(m).owner), owner.id)
        assert.isUndefined(waiting.pollUnsafe())
      }
      yield* Fiber.join(waiting)
      assert.isAtLeast(performance.now() - begun, 1200 + 3000)
    }))

  it.effect("a Simba release wakes an effect-simba waiter immediately", () =>
    Effect.gen(function*() {
      const { m, server, simba, waiting } = yield* behindSimba("foreign release")
      const notified = yield* simba.release
      const lease = yield* Fiber.join(waiting)
      assert.strictEqual(notified, lease.id)
      assert.strictEqual(yield* server.send("EXISTS", keysOf(m).queue), 0)
    }))

  /** A process whose subscriptions to contenders' channels are delayed until `ready`. */
  const openLate = (ready: Effect.Effect<void, BackendError>, options: MutexOptions) =>
    Effect.flatMap(RedisServer, ({ url }) =>
      Effect.map(
        Layer.build(Layer.fresh(
          RedisMutex.layerRedis(options).pipe(
            Layer.provide(Layer.effect(
              Subscriber,
              Effect.map(Subscriber, (subscriber) => ({
                ...subscriber,
                subscribe: (channel: string) =>
                  Effect.andThen(channel.startsWith("simba:{") ? ready : Effect.void, subscriber.subscribe(channel))
              }))
            )),
            Layer.provide(IoRedis.layer({ url }))
          )
        )),
        Context.get(Mutex.Mutex)
      ))

  it.effect("a waiter notices a Simba release that preceded its subscription", () =>
    Effect.gen(function*() {
      const ready = Deferred.makeUnsafe<void>()
      const mutex = yield* openLate(Deferred.await(ready), patient)
      const m = freshName("release before listening")
      const server = yield* RedisServer
      const simba = simbaContender(yield* client(server), m)
      assert.isTrue(yield* simba.acquire(60_000))
      const waiting = yield* Effect.forkScoped(mutex.acquire(m))
      yield* queued(server, m, 1)
      // The release removes the waiter from the queue, but its message is lost because the waiter is not listening yet
      const notified = yield* simba.release
      yield* Effect.sleep("50 millis")
      assert.isUndefined(waiting.pollUnsafe())
      yield* Deferred.succeed(ready, undefined)
      assert.strictEqual((yield* Effect.timeout(Fiber.join(waiting), "10 seconds")).id, notified)
    }))

  it.effect(
    "a waiter that cannot subscribe still gets the mutex within a confirm period of a Simba release",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer
        const down = new BackendError({ operation: "subscribe", isRetryable: true, cause: new Error("down") })
        const tried: Array<number> = []
        const refusing = Effect.andThen(Effect.sync(() => tried.push(performance.now())), Effect.fail(down))
        const mutex = yield* openLate(refusing, { ...patient, confirmTimeout: "400 millis" })
        const m = freshName("cannot listen")
        const simba = simbaContender(yield* client(server), m)
        assert.isTrue(yield* simba.acquire(3_600_000))
        const waiting = yield* Effect.forkScoped(mutex.acquire(m))
        // The waiter retries its subscription after each refused poll
        yield* until("the waiter has tried to subscribe three times", Effect.sync(() => tried.length >= 3))
        assert.isAtLeast(tried[2]! - tried[0]!, 700)
        const notified = yield* simba.release
        assert.strictEqual((yield* Effect.timeout(Fiber.join(waiting), "10 seconds")).id, notified)
      }),
    { tags: ["H4"] }
  )

  it.effect(
    "a waiter starts polling when the mutex is reserved for a Simba contender that it did not know about",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer
        const confirm = "3 seconds"
        const [holder, mutex] = yield* Effect.all([
          openMutex(server, { ...patient, confirmTimeout: confirm }),
          openMutex(server, { ...patient, confirmTimeout: confirm })
        ])
        const m = freshName("passed unseen")
        const simba = simbaContender(yield* client(server), m)
        const letGo = yield* Deferred.make<void>()
        const holding = yield* Effect.forkScoped(holder.withLock(m)(Deferred.await(letGo)))
        yield* held(server, m)
        const waiting = yield* Effect.forkScoped(mutex.acquire(m))
        yield* queued(server, m, 1)
        // The Simba waiter queues after the effect-simba waiter, but with an earlier ticket
        const heard = yield* messagesOn(server, RedisKeys.contenderChannel(m, simba.id))
        yield* server.send("ZADD", keysOf(m).queue, "1700000000", simba.id)
        yield* Deferred.succeed(letGo, undefined)
        yield* Fiber.join(holding)
        yield* until("the Simba waiter is notified", Effect.sync(() => heard.length > 0))
        assert.isTrue(yield* simba.acquire(3_600_000))
        // The Simba release may remove the waiter from the queue before it listens. Even then, the waiter must acquire
        // the mutex.
        const notified = yield* simba.release
        assert.strictEqual((yield* Effect.timeout(Fiber.join(waiting), "10 seconds")).id, notified)
      }),
    { tags: ["H4"] }
  )

  it.effect("after a Simba release, effect-simba waiters get the mutex one after another, in order", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const stats = commandStats(server)
      const m = freshName("foreign release of three")
      const simba = simbaContender(yield* client(server), m)
      assert.isTrue(yield* simba.acquire(60_000))
      const order: Array<number> = []
      const waiters = []
      for (let i = 0; i < 3; i++) {
        const mutex = yield* openMutex(server, patient)
        yield* stats.reset
        waiters.push(yield* Effect.forkScoped(mutex.withLock(m)(Effect.sync(() => order.push(i)))))
        yield* queued(server, m, i + 1)
        // A waiter tries, queues, and polls once more after subscribing, when the mutex may already be free
        yield* until(
          "the waiter has polled",
          Effect.map(stats.calls, (calls) => (calls.get("evalsha") ?? 0) >= 3)
        )
      }
      yield* listening(m, 3)
      yield* simba.release
      for (const waiter of waiters) yield* Fiber.join(waiter)
      assert.deepStrictEqual(order, [0, 1, 2])
    }))

  it.effect("a release only notifies a Simba waiter, and effect-simba waiters hold back for it", () =>
    Effect.gen(function*() {
      const { a, b, c, m, server } = yield* freshMutex("Simba waiter")
      const { owner, queue, reserved } = keysOf(m)
      const simba = simbaContender(yield* client(server), m)
      yield* a.own
      const messages = yield* messagesOn(server, RedisKeys.contenderChannel(m, simba.id))
      assert.isFalse(yield* simba.acquire(16_000))
      const wakeUps = yield* b.subscribe
      assert.isTrue((yield* b.wait).foreign)
      assert.strictEqual((yield* wakeUps.next)._tag, "Gap")
      assert.deepStrictEqual(yield* a.release, { _tag: "Free" })
      yield* until("the Simba waiter is notified", Effect.sync(() => messages.length > 0))
      assert.deepStrictEqual(messages, [[`simba:{${m}}:${simba.id}`, `released@@${a.id}`]])
      assert.strictEqual(yield* server.send("EXISTS", owner), 0)
      assert.deepStrictEqual(yield* server.send("ZRANGE", queue, "0", "-1"), [b.id])
      assert.strictEqual((yield* wakeUps.next)._tag, "PollAfter")
      for (const ask of [b.ask("wait"), c.ask("try"), c.ask("wait")]) {
        assert.deepStrictEqual(refused(yield* ask).ownership, { _tag: "Free" })
      }
      const { foreign, ticket } = yield* b.wait
      assert.isTrue(foreign)
      assert.isTrue(yield* simba.acquire(16_000), "the Simba waiter's own SET NX succeeds")
      assert.strictEqual(ownerOf(refused(yield* b.ask("wait")).ownership), simba.id)
      assert.strictEqual(yield* simba.release, b.id)
      granted(yield* b.ask("wait", ticket))
      assert.strictEqual(yield* server.send("EXISTS", reserved), 0)
    }))

  it.effect(
    "waiters that queued before any Simba contender subscribe once a Simba contender is notified",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer
        const m = freshName("late stock")
        const simba = simbaContender(yield* client(server), m)
        const letGo = yield* Deferred.make<void>()
        const owner = yield* openMutex(server, patient)
        const owning = yield* Effect.forkScoped(owner.withLock(m)(Deferred.await(letGo)))
        yield* held(server, m)
        const waiters: Array<Fiber.Fiber<void, unknown>> = []
        for (let index = 1; index <= 3; index++) {
          const mutex = yield* openMutex(server, patient)
          waiters.push(yield* Effect.forkScoped(mutex.withLock(m)(Effect.void)))
          yield* queued(server, m, index)
        }
        yield* messagesOn(server, RedisKeys.contenderChannel(m, simba.id))
        yield* server.send("ZADD", keysOf(m).queue, "1", simba.id)
        yield* Deferred.succeed(letGo, undefined)
        yield* Fiber.join(owning)
        yield* listening(m, 1 + waiters.length)
        // The Simba release removes the first waiter from the queue
        assert.isTrue(yield* simba.acquire(60_000))
        assert.isDefined(yield* simba.release)
        for (const waiter of waiters) yield* Fiber.join(waiter)
      }),
    { tags: ["H3"] }
  )

  it.effect("an unresponsive Simba waiter delays the others by the confirm period", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const options = { confirmTimeout: "400 millis" } as const
      const [holder, mutex] = yield* Effect.all([openMutex(server, options), openMutex(server, options)])
      const m = freshName("silent Simba waiter")
      const simba = simbaContender(yield* client(server), m)
      yield* messagesOn(server, RedisKeys.contenderChannel(m, simba.id))
      const letGo = yield* Deferred.make<void>()
      const holding = yield* Effect.forkScoped(holder.withLock(m)(Deferred.await(letGo)))
      yield* held(server, m)
      assert.isFalse(yield* simba.acquire(16_000))
      const waiting = yield* Effect.forkScoped(Effect.scoped(mutex.acquire(m)))
      yield* queued(server, m, 2)
      const released = performance.now()
      yield* Deferred.succeed(letGo, undefined)
      yield* Fiber.join(holding)
      yield* Fiber.join(waiting)
      assert.isAtLeast(performance.now() - released, 400)
    }))

  it.effect("dead Simba waiters are skipped", () =>
    Effect.gen(function*() {
      const { a, b, m, server } = yield* freshMutex("dead Simba waiters")
      const redis = yield* client(server)
      yield* a.own
      for (let i = 0; i < 20; i++) assert.isFalse(yield* simbaContender(redis, m).acquire(16_000))
      yield* b.subscribe
      yield* b.wait
      // A Simba ticket is the current time, rounded down to a whole second, or one second earlier, so the dead waiters
      // are ahead of `b`
      assert.strictEqual(ownerOf(yield* a.release), b.id)
      yield* b.confirm
      assert.deepStrictEqual(yield* b.release, { _tag: "Free" })
      assert.strictEqual(yield* server.send("EXISTS", keysOf(m).reserved), 0)
    }))

  it.effect("effect-simba waiters are served after an older Simba ticket and before a younger one", () =>
    Effect.gen(function*() {
      const { a, b, m, server } = yield* freshMutex("order")
      const { queue } = keysOf(m)
      const [older, younger] = [simbaId(), simbaId()]
      const messages = yield* messagesOn(
        server,
        RedisKeys.contenderChannel(m, older),
        RedisKeys.contenderChannel(m, younger)
      )
      yield* a.own
      yield* b.subscribe
      const { ticket } = yield* b.wait
      const second = Math.floor(Number(ticket))
      yield* server.send("ZADD", queue, String(second - 5), older, String(second + 5), younger)
      assert.deepStrictEqual(yield* server.send("ZRANGE", queue, "0", "-1"), [older, b.id, younger])
      yield* a.release
      yield* until("the older waiter is notified", Effect.sync(() => messages.length === 1))
      assert.deepStrictEqual(messages, [[RedisKeys.contenderChannel(m, older), `released@@${a.id}`]])
      // The older waiter acquires and releases the mutex, so the effect-simba waiter is next
      const simba = simbaContender(yield* client(server), m, older)
      assert.isTrue(yield* simba.acquire(16_000))
      assert.strictEqual(yield* simba.release, b.id)
      granted(yield* b.ask("wait", ticket))
      assert.deepStrictEqual(yield* b.release, { _tag: "Free" })
      yield* until("the younger waiter is notified", Effect.sync(() => messages.length === 2))
      assert.deepStrictEqual(messages[1], [RedisKeys.contenderChannel(m, younger), `released@@${b.id}`])
    }))

  it.effect(
    "behind a Simba owner, the first effect-simba waiter polls every confirm period even if it is never notified",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer
        const mutex = yield* openMutex(server, { confirmTimeout: "300 millis" })
        const m = freshName("silent Simba release")
        yield* server.send("SET", keysOf(m).owner, simbaId(), "PX", "3600000")
        const waiting = yield* Effect.forkScoped(Effect.scoped(mutex.acquire(m)))
        yield* queued(server, m, 1)
        // The Simba release notifies a different waiter, which is dead
        yield* server.send("DEL", keysOf(m).owner)
        yield* Effect.timeout(Fiber.join(waiting), "10 seconds")
      }),
    { tags: ["H4"] }
  )

  it.effect("malformed messages do not end a wait; they are truncated and logged", () => {
    const lines: Array<string> = []
    return Effect.gen(function*() {
      const { id, m, server, simba, waiting } = yield* behindSimba("malformed")
      const garbage = [
        "",
        "@@",
        "released",
        "released@@",
        "look@@soon",
        "acquired@@x",
        "{\"json\":1}",
        "x".repeat(5000)
      ]
      for (const text of garbage) {
        assert.strictEqual(yield* server.send("PUBLISH", `simba:{${m}}:${id}`, text), 1)
        assert.strictEqual(yield* server.send("PUBLISH", inboxChannelOf(id), text), 1)
        yield* server.send("PUBLISH", `simba:{${m}}`, text)
      }
      yield* until("all malformed messages are logged", Effect.sync(() => lines.length >= 2 * garbage.length))
      for (const text of garbage) {
        assert.strictEqual(
          lines.filter((line) => line.includes(`Read: ${JSON.stringify(text.slice(0, 200))}.`)).length,
          2,
          text
        )
      }
      assert.isUndefined(waiting.pollUnsafe())
      assert.strictEqual(yield* simba.release, id)
      yield* Fiber.join(waiting)
    }).pipe(Effect.provide(capturingLogs(lines)))
  })

  it.effect("a forged message only makes a waiter poll", () =>
    Effect.gen(function*() {
      const { id, m, server, simba, waiting } = yield* behindSimba("lies")
      for (const text of [`released@@${simba.id}`, "look@@0", `released@@${id}`]) {
        assert.strictEqual(yield* server.send("PUBLISH", `simba:{${m}}:${id}`, text), 1)
      }
      for (const text of ["released", "look@@0", "granted@@1@@0@@16000"]) {
        const counter = id.split("-")[0]
        assert.strictEqual(yield* server.send("PUBLISH", inboxChannelOf(id), `${counter}@@${text}`), 1)
      }
      yield* server.send("PUBLISH", `simba:{${m}}`, `acquired@@${id}`)
      yield* Effect.sleep("200 millis")
      assert.isUndefined(waiting.pollUnsafe())
      assert.strictEqual(yield* server.send("GET", keysOf(m).owner), simba.id)
      yield* simba.release
      yield* Fiber.join(waiting)
    }), { tags: ["H5"] })

  it.effect("effect-simba messages match the table in the protocol byte for byte", () =>
    Effect.gen(function*() {
      const { m, server, store } = yield* freshMutex("bytes")
      const [a, b, c] = [contender(store, m), contender(store, m), contender(store, m, { confirm: "1500 millis" })]
      const channel = `simba:{${m}}`
      const [ofB, ofC] = [b, c].map(({ id }) => `simba:inbox:${inboxOf(id)}`) as [string, string]
      const messages = yield* messagesOn(server, channel, ofB, ofC, `${channel}:${b.id}`, `${channel}:${c.id}`)
      yield* a.own
      yield* b.wait
      yield* c.wait
      // Makes it look as if `b` has waited longer than a confirm period
      yield* server.send("ZADD", keysOf(m).queue, "XX", "1000000000.000001", b.id)
      yield* a.release
      const { token: second } = yield* b.confirm
      yield* b.release
      const { token: third } = yield* c.confirm
      yield* until("all messages", Effect.sync(() => messages.length >= 6))
      // Tokens count tenths of a millisecond. A message contains its token's lead over the grant's time.
      const [aheadOfB, aheadOfC] = [messages[2]!, messages[5]!].map(([, message]) => Number(message.split("@@")[3]))
      for (const ahead of [aheadOfB!, aheadOfC!]) assert.isTrue(ahead >= 1 && ahead <= 100, String(ahead))
      const counterOf = ({ id }: { readonly id: string }) => id.split("-")[0]
      assert.deepStrictEqual(messages, [
        [channel, `acquired@@${a.id}`],
        [channel, `acquired@@${b.id}`],
        [ofB, `${counterOf(b)}@@granted@@${second}@@${aheadOfB}@@30000`],
        [ofC, `${counterOf(c)}@@look@@30000`],
        [channel, `acquired@@${c.id}`],
        [ofC, `${counterOf(c)}@@granted@@${third}@@${aheadOfC}@@60000`]
      ])
      assert.strictEqual(yield* server.send("GET", keysOf(m).owner), c.id)
    }), { tags: ["B60"] })

  it.effect("effect-simba never uses a whole second as a ticket, nor an id that looks like Simba's", () =>
    Effect.gen(function*() {
      const { m, server, store } = yield* freshMutex("tickets")
      yield* contender(store, m).own
      for (let i = 0; i < 50; i++) {
        const { foreign, ticket } = yield* contender(store, m).wait
        assert.match(ticket!, /^\d+\.\d{6}$/)
        assert.isFalse(ticket!.endsWith(".000000"))
        assert.isFalse(foreign)
      }
      // Queues a ticket after which the next one would be a whole second
      yield* server.send("ZADD", keysOf(m).queue, "4102444799.999999", freshId())
      const { foreign, ticket } = yield* contender(store, m).wait
      assert.strictEqual(ticket as string, "4102444800.000001")
      assert.isFalse(foreign)
    }))
})
