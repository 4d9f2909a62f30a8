import type { MutexName } from "@effect-simba/core/MutexName"
import { inboxOf, type MutexStore, release } from "@effect-simba/core/MutexStore"
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Queue, Stream } from "effect"
import * as RedisKeys from "../../../src/internal/mutex/keys.ts"
import {
  commandStats,
  contender,
  failsWithWrongType,
  freshMutex,
  freshName,
  granted,
  keysOf,
  messagesOn,
  openStore,
  ownerOf,
  RedisServer,
  refused,
  simbaId,
  until
} from "../../support/harness.ts"
import type { Server } from "../../support/redisServer.ts"

const confirm = Duration.seconds(30)
const hour = Duration.hours(1)

/** A job in the form that a process registers. */
const named = (name: string) => ({ name, schedule: "every 1000", keep: hour })
const dayMillis = 24 * 60 * 60 * 1000

const spoil = (server: Server, key: string) =>
  Effect.andThen(server.send("DEL", key), server.send("LPUSH", key, "not what it should be"))

/** Acquires the mutex like Simba, by setting the owner key. Returns whether the mutex was free. */
const simbaTakes = (server: Server, mutex: MutexName, id: string) =>
  Effect.map(server.send("SET", keysOf(mutex).owner, id, "NX", "PX", "60000"), (reply) => reply === "OK")

/** Subscribes a Simba contender to its channel and queues it. `heard` collects the messages it receives. */
const simbaWaits = Effect.fnUntraced(function*(server: Server, mutex: MutexName) {
  const id = simbaId()
  const heard = yield* messagesOn(server, RedisKeys.contenderChannel(mutex, id))
  yield* server.send("ZADD", keysOf(mutex).queue, "1700000000", id)
  return { id, heard }
})

const listOf = (store: MutexStore["Service"]) => Effect.map(Stream.runCollect(store.list), (names) => [...names].sort())

layer(RedisServer.layer, { excludeTestServices: true })(
  "the scripts that inspect mutexes, force releases and share schedules",
  (it) => {
    it.effect("a forced release sends the old owner's layer exactly the message in protocol.md", () =>
      Effect.gen(function*() {
        const { a, b, c, m, server, store } = yield* freshMutex("forced")
        const inboxes = [a, b, c].map(({ id }) => `simba:inbox:${inboxOf(id)}`) as [string, string, string]
        assert.strictEqual(RedisKeys.inboxChannel(inboxOf(a.id)), inboxes[0])
        const channel = `simba:{${m}}`
        const messages = yield* messagesOn(
          server,
          ...inboxes,
          ...[a, b, c].map(({ id }) => `${channel}:${id}`),
          channel
        )
        yield* a.own
        yield* b.wait
        yield* c.wait
        const tokenNow = Effect.map(store.inspect(m, 0), ({ token }) => token!)
        assert.strictEqual(ownerOf(yield* store.forceRelease(m, confirm)), a.id)
        const first = yield* tokenNow
        yield* b.release
        const second = yield* tokenNow
        yield* c.release
        assert.deepStrictEqual(yield* store.forceRelease(m, confirm), { _tag: "Free" })
        yield* server.send("PUBLISH", channel, "the end")
        yield* until("all messages", Effect.sync(() => messages.at(-1)?.[1] === "the end"))
        // Mask the token's lead over the clock, which depends on the script's speed
        const read = messages.map(([channel, text]) => [channel, text!.replace(/(@@\d{16})@@\d{1,3}@@/, "$1@@ahead@@")])
        const counterOf = ({ id }: { readonly id: string }) => id.split("-")[0]
        assert.deepStrictEqual(read, [
          [channel, `acquired@@${a.id}`],
          [channel, `acquired@@${b.id}`],
          // A forced release grants only a confirm period, even to a waiter that has just queued
          [inboxes[1], `${counterOf(b)}@@granted@@${first}@@ahead@@30000`],
          [inboxes[2], `${counterOf(c)}@@look@@30000`],
          [inboxes[0], `forced@@${a.id}`],
          [channel, `acquired@@${c.id}`],
          [inboxes[2], `${counterOf(c)}@@granted@@${second}@@ahead@@60000`],
          [channel, "the end"]
        ])
      }))

    it.effect("a forced release of an unowned mutex grants it to the first waiter", () =>
      Effect.gen(function*() {
        const { a, b, m, server, store } = yield* freshMutex("forced from nobody")
        yield* a.own
        const wakeUps = yield* b.subscribe
        yield* b.wait
        yield* server.send("DEL", keysOf(m).owner)
        assert.deepStrictEqual(yield* store.forceRelease(m, confirm), { _tag: "Free" })
        assert.include(yield* wakeUps.next, { _tag: "YourTurn" })
        yield* b.confirm
      }))

    it.effect("a forced release notifies a Simba owner on its own channel and grants the mutex to effect-simba", () =>
      Effect.gen(function*() {
        const { b, c, m, server, store } = yield* freshMutex("forced stock")
        const simba = simbaId()
        const messages = yield* messagesOn(server, `simba:{${m}}:${simba}`, RedisKeys.inboxChannel(""))
        yield* simbaTakes(server, m, simba)
        const [first, second] = [yield* b.subscribe, yield* c.subscribe]
        yield* b.wait
        yield* c.wait
        // The waiters have detected the Simba owner, so they listen on their own channels and poll again
        for (const wakeUps of [first, second]) assert.deepStrictEqual(yield* wakeUps.next, { _tag: "Gap" })
        assert.strictEqual(ownerOf(yield* store.forceRelease(m, confirm)), simba)
        assert.include(yield* first.next, { _tag: "YourTurn" })
        assert.deepStrictEqual(yield* second.next, { _tag: "PollAfter", delay: confirm })
        yield* until("the Simba owner is notified", Effect.sync(() => messages.length > 0))
        assert.deepStrictEqual(messages, [[`simba:{${m}}:${simba}`, `released@@${simba}`]])
        assert.strictEqual(yield* server.send("GET", keysOf(m).owner), b.id)
        yield* b.confirm
      }))

    it.effect.each(["my app:1 'x' \"y\"\n@", "größe-🎉", "byte-\\255\\192"])(
      "a forced release frees a mutex owned by another program under the id %j",
      (id) =>
        Effect.gen(function*() {
          const { m, server, store } = yield* freshMutex("forced, odd id")
          const lua = `return redis.call('SET', KEYS[1], ${
            JSON.stringify(id).replaceAll("\\\\", "\\")
          } .. 'x', 'PX', 60000)`
          yield* server.send("EVAL", lua, "1", keysOf(m).owner)
          const before = yield* store.forceRelease(m, confirm)
          assert.strictEqual(before._tag, "Held")
          assert.deepStrictEqual(yield* store.owner(m), { _tag: "Free" })
        })
    )

    it.effect("like an ordinary release, a forced release reserves the mutex for a Simba waiter", () =>
      Effect.gen(function*() {
        const { a, b, m, server, store } = yield* freshMutex("forced to Simba")
        const { owner, reserved } = keysOf(m)
        const { token } = yield* a.own
        const { heard, id } = yield* simbaWaits(server, m)
        const wakeUps = yield* b.subscribe
        yield* b.wait
        assert.deepStrictEqual(yield* wakeUps.next, { _tag: "Gap" })
        yield* store.forceRelease(m, confirm)
        yield* until("the Simba waiter is notified", Effect.sync(() => heard.length > 0))
        assert.deepStrictEqual(heard, [[`simba:{${m}}:${id}`, `released@@${a.id}`]])
        assert.deepStrictEqual([yield* server.send("GET", owner), yield* server.send("GET", reserved)], [null, id])
        assert.deepStrictEqual(yield* wakeUps.next, { _tag: "PollAfter", delay: confirm })
        assert.deepStrictEqual(refused(yield* b.ask("wait")).ownership, { _tag: "Free" })
        // The second forced release removes the reservation, so effect-simba is next
        yield* store.forceRelease(m, confirm)
        assert.strictEqual(yield* server.send("EXISTS", reserved), 0)
        assert.isAbove((yield* b.confirm).token, token + 1)
      }))

    it.effect("a forced release increases a fence that is ahead of the clock", () =>
      Effect.gen(function*() {
        const { a, m, server, store } = yield* freshMutex("forced fence")
        yield* server.send("SET", keysOf(m).fence, "8000000000000000")
        assert.strictEqual((yield* a.own).token as number, 8_000_000_000_000_101)
        yield* store.forceRelease(m, confirm)
        assert.strictEqual(yield* server.send("GET", keysOf(m).fence), "8000000000000102")
        assert.isAbove(Number(yield* server.send("PTTL", keysOf(m).fence)), dayMillis)
        assert.strictEqual((yield* contender(store, m).own).token as number, 8_000_000_000_000_103)
      }), { tags: ["B32"] })

    it.effect("a reservation outlasts an unrelated Simba owner and ends when the notified waiter becomes the owner", () =>
      Effect.gen(function*() {
        const { a, b, m, server } = yield* freshMutex("reservation")
        const { owner, reserved } = keysOf(m)
        yield* a.own
        const { id } = yield* simbaWaits(server, m)
        yield* b.subscribe
        yield* b.wait
        yield* a.release
        assert.strictEqual(yield* server.send("GET", reserved), id)
        // Another Simba contender acquires the mutex before the notified waiter does
        const barger = simbaId()
        assert.isTrue(yield* simbaTakes(server, m, barger))
        assert.strictEqual(ownerOf(refused(yield* b.ask("wait")).ownership), barger)
        assert.strictEqual(yield* server.send("GET", reserved), id)
        yield* server.send("DEL", owner)
        assert.deepStrictEqual(refused(yield* b.ask("wait")).ownership, { _tag: "Free" })
        assert.isTrue(yield* simbaTakes(server, m, id))
        assert.strictEqual(ownerOf(refused(yield* b.ask("wait")).ownership), id)
        assert.strictEqual(yield* server.send("EXISTS", reserved), 0)
        // The Simba owner's key disappears within the confirm period. Without a reservation, `b` would get the mutex
        // immediately
        yield* server.send("DEL", owner)
        yield* b.confirm
      }))

    it.effect(
      "a release fails if the fence has the wrong type, so the first waiter must poll",
      () =>
        Effect.gen(function*() {
          const { a, b, m, server, store } = yield* freshMutex("spoilt fence")
          const { fence, owner, queue } = keysOf(m)
          yield* a.own
          const wakeUps = yield* b.subscribe
          const { ticket } = yield* b.wait
          yield* spoil(server, fence)
          yield* failsWithWrongType(a.release)
          assert.strictEqual(yield* server.send("EXISTS", owner), 0)
          assert.deepStrictEqual(yield* server.send("ZRANGE", queue, "0", "-1"), [b.id])
          assert.deepStrictEqual(yield* wakeUps.next, { _tag: "PollAfter", delay: Duration.zero })
          yield* failsWithWrongType(b.ask("wait", ticket))
          assert.deepStrictEqual(yield* store.owner(m), { _tag: "Free" })
          yield* server.send("DEL", fence)
          granted(yield* b.ask("wait", ticket))
        }),
      { tags: ["S21"] }
    )

    it.effect("on a full server, a release that must queue an id fails but frees the mutex", () =>
      Effect.gen(function*() {
        const { a, b, m, server, store } = yield* freshMutex("full")
        yield* a.own
        const lease = Duration.seconds(30)
        const error = yield* Effect.acquireUseRelease(
          server.send("CONFIG", "SET", "maxmemory", "1"),
          () => Effect.flip(release(store, { mutex: m, id: a.id, lease, confirm, requeue: { id: b.id, lease } })),
          () => server.send("CONFIG", "SET", "maxmemory", "0")
        )
        assert.include(error.message, "OOM")
        assert.strictEqual(yield* server.send("EXISTS", keysOf(m).owner, keysOf(m).queue), 0)
      }))

    it.effect(
      "a forced release fails and the owner keeps the mutex if the fence has the wrong type",
      () =>
        Effect.gen(function*() {
          const { a, m, server, store } = yield* freshMutex("spoilt fence, forced")
          yield* a.own
          yield* spoil(server, keysOf(m).fence)
          yield* failsWithWrongType(store.forceRelease(m, confirm))
          assert.deepStrictEqual(yield* a.guard, { _tag: "Renewed" })
        }),
      { tags: ["S21"] }
    )

    it.effect(
      "an inspection reports a key of the wrong type without changing it",
      () =>
        Effect.gen(function*() {
          const { m, server, store } = yield* freshMutex("spoilt jobs")
          for (const part of ["owner", "queue"] as const) {
            const m = freshName(`spoilt ${part}`)
            yield* spoil(server, keysOf(m)[part])
            yield* failsWithWrongType(store.inspect(m, 10))
            assert.strictEqual(yield* server.send("TYPE", keysOf(m)[part]), "list")
          }
          yield* spoil(server, RedisKeys.jobs(m))
          yield* failsWithWrongType(store.jobs.read({ mutex: m, jobs: [named("job")] }))
          assert.strictEqual(yield* server.send("TYPE", RedisKeys.jobs(m)), "list")
        }),
      { tags: ["S21"] }
    )

    it.effect(
      "an inspection shows waiters of both kinds, and Simba owners without a token",
      () =>
        Effect.gen(function*() {
          const { a, m, server, store } = yield* freshMutex("inspect stock")
          yield* a.own
          yield* a.release
          assert.strictEqual(yield* server.send("EXISTS", keysOf(m).fence), 1)
          yield* server.send("SET", keysOf(m).owner, "1:4711@stock-host")
          const { id } = yield* simbaWaits(server, m)
          const b = contender(store, m)
          yield* b.wait
          const { ownership, token, waiters, waiting } = yield* store.inspect(m, 10)
          assert.deepStrictEqual(ownership, { _tag: "Held", owner: "1:4711@stock-host" })
          assert.isUndefined(token)
          assert.strictEqual(waiting, 2)
          assert.deepStrictEqual(waiters.map((waiter) => waiter.id), [id, b.id])
          const waited = waiters.map((waiter) => Duration.toMillis(waiter.waited))
          assert.isAtLeast(waited[0]!, dayMillis)
          assert.isBelow(waited[1]!, 60_000)
        }),
      { tags: ["B59"] }
    )

    it.effect(
      "an inspection is one script call that costs the same for 3 and for 300 waiters",
      () =>
        Effect.gen(function*() {
          const server = yield* RedisServer
          const { calls, reset } = commandStats(server)
          const store = yield* openStore(server)
          const poll = Effect.fnUntraced(function*(waiters: number) {
            const m = freshName(`inspect ${waiters}`)
            yield* contender(store, m).own
            yield* Effect.forEach(Array.from({ length: waiters }), () => contender(store, m).wait, { concurrency: 50 })
            yield* store.inspect(m, 3)
            yield* reset
            assert.strictEqual((yield* store.inspect(m, 3)).waiting, waiters)
            const counted = yield* calls
            assert.strictEqual(counted.get("evalsha"), 1)
            assert.isFalse(counted.has("set") || counted.has("zrem") || counted.has("publish"))
            return ["get", "zrange", "zcard", "pttl", "time"].map((command) => counted.get(command))
          })
          assert.deepStrictEqual(yield* poll(300), yield* poll(3))
        }),
      { tags: ["B59"] }
    )

    it.effect(
      "the key for a mutex's jobs expires with the last job unless a job is paused",
      () =>
        Effect.gen(function*() {
          const { m, server, store } = yield* freshMutex("jobs")
          const key = `simba:{${m}}:jobs`
          yield* store.jobs.read({ mutex: m, jobs: [named("a"), { ...named("b"), keep: Duration.days(3) }] })
          const left = Number(yield* server.send("PTTL", key))
          assert.isAtMost(Math.abs(left - 3 * dayMillis), 60_000)
          yield* store.jobs.steer(m, { _tag: "Pause", job: "a" })
          assert.strictEqual(yield* server.send("PTTL", key), -1)
          yield* store.jobs.read({ mutex: m, jobs: [named("a")] })
          assert.strictEqual(yield* server.send("PTTL", key), -1)
          yield* store.jobs.steer(m, { _tag: "Resume", job: "a" })
          yield* store.jobs.read({ mutex: m, jobs: [named("a")] })
          assert.isAtMost(Math.abs(Number(yield* server.send("PTTL", key)) - 3 * dayMillis), 60_000)
          assert.deepStrictEqual(yield* server.send("KEYS", `simba:{${m}}*`), [key])
        }),
      { tags: ["B33"] }
    )

    it.effect(
      "1,000 mutexes among other keys are each listed once, page by page, without KEYS",
      () =>
        Effect.gen(function*() {
          const server = yield* RedisServer.start()
          const { calls, reset } = commandStats(server)
          const store = yield* openStore(server)
          const names = Array.from({ length: 1000 }, (_, index) => `listed ${index}`)
          const noise = ["", ":fence", ":reserved", ":jobs", ":tick:job", ":contender:x"]
          yield* server.send("MSET", ...names.flatMap((name) => [`simba:{${name}}`, "1-000000000000:x"]))
          yield* server.send("MSET", ...names.flatMap((name, n) => [`simba:{free ${name}}${noise[1 + n % 5]}`, "1"]))
          yield* server.send("MSET", ...names.flatMap((name) => [`other:{${name}}`, "1", `{${name}}`, "1"]))
          for (const name of [...names.slice(0, 50), "waited for"]) {
            yield* server.send("ZADD", `simba:{${name}}:contender`, "1.000001", "2-000000000000:x")
          }
          yield* reset
          assert.deepStrictEqual(yield* listOf(store), [...names, "waited for"].sort())
          const counted = yield* calls
          assert.isAbove(counted.get("scan") ?? 0, 2)
          assert.isAtMost(counted.get("scan") ?? 0, 30)
          assert.isFalse(counted.has("keys"))
        }),
      { tags: ["B59"] }
    )

    it.effect(
      "other programs' keys are not listed unless they contain a valid mutex name",
      () =>
        Effect.gen(function*() {
          const server = yield* RedisServer.start()
          const store = yield* openStore(server)
          for (const name of ["", " ", "}x"]) yield* server.send("SET", `simba:{${name}}`, "1-000000000000:x")
          yield* server.send("SET", "simba:{open", "x")
          yield* server.send("SET", "simba:{m}", "1-000000000000:x")
          assert.deepStrictEqual<ReadonlyArray<string>>(yield* listOf(store), ["m"])
        }),
      { tags: ["B59"] }
    )

    it.effect(
      "the scripts use only keys and channels that start with `simba:`, so an ACL can restrict them",
      () =>
        Effect.gen(function*() {
          const server = yield* RedisServer.start()
          const rules = ["reset", "on", ">secret", "~simba:*", "&simba:*", "+@all", "-@dangerous", "+info"]
          yield* server.send("ACL", "SETUSER", "app", ...rules)
          const store = yield* openStore(server, { url: `redis://app:secret@127.0.0.1:${server.port}` })
          const m = freshName("acl")
          const [a, b] = [contender(store, m), contender(store, m)]
          const forced = yield* Queue.unbounded<string>()
          yield* store.inbox(inboxOf(a.id), (id) => Queue.offerUnsafe(forced, id))
          const changes = yield* store.changes(m)
          yield* a.own
          assert.deepStrictEqual(yield* changes.next, { _tag: "Acquired", owner: a.id })
          yield* b.subscribe
          yield* b.wait
          assert.strictEqual((yield* store.inspect(m, 1)).waiting, 1)
          assert.deepStrictEqual(yield* listOf(store), [m])
          assert.strictEqual((yield* store.jobs.read({ mutex: m, jobs: [named("j")] })).jobs.size, 1)
          assert.strictEqual(ownerOf(yield* store.forceRelease(m, confirm)), a.id)
          assert.strictEqual(yield* Queue.take(forced), a.id)
          yield* b.confirm
        }),
      { tags: ["S18"] }
    )

    it.effect(
      "these scripts survive SCRIPT FLUSH without growing the script cache",
      () =>
        Effect.gen(function*() {
          const server = yield* RedisServer.start()
          const store = yield* openStore(server)
          for (let i = 0; i < 20; i++) {
            const m = freshName("forgotten")
            yield* contender(store, m).own
            yield* server.send("SCRIPT", "FLUSH")
            assert.strictEqual((yield* store.inspect(m, i)).ownership._tag, "Held")
            yield* server.send("SCRIPT", "FLUSH")
            assert.strictEqual((yield* store.jobs.read({ mutex: m, jobs: [named(`job ${i}`)] })).jobs.size, 1)
            yield* server.send("SCRIPT", "FLUSH")
            assert.strictEqual((yield* store.forceRelease(m, Duration.seconds(i + 1)))._tag, "Held")
          }
          yield* contender(store, freshName("last")).own
          const cached = /number_of_cached_scripts:(\d+)/.exec(String(yield* server.send("INFO", "memory")))
          assert.isAtMost(Number(cached![1]), 4)
        }),
      { tags: ["B38", "B39"] }
    )
  }
)
