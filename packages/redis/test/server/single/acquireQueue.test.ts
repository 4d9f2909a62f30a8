/** One process's waiters share a place in the queue. Tests their cost, turns and recovery on a real server. */
import { tokenStride } from "@effect-simba/core/MutexStore"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import {
  commandStats,
  freshName,
  held,
  keysOf,
  openMutex,
  patient,
  queued,
  RedisServer,
  until
} from "../../support/harness.ts"

layer(RedisServer.layer, { excludeTestServices: true })("places on a real server", (it) => {
  it.effect("a thousand waiters in one process cost two requests and one entry, then one release each, and no subscriptions", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const stats = commandStats(server)
      const strict = { ...patient, localTurn: 0 }
      const [holder, mutex] = yield* Effect.all([openMutex(server, patient), openMutex(server, strict)])
      const m = freshName("a thousand")
      const letGo = yield* Deferred.make<void>()
      const holding = yield* Effect.forkScoped(holder.withLock(m)(Deferred.await(letGo)))
      yield* held(server, m)
      yield* stats.reset
      const order: Array<number> = []
      const tokens: Array<number> = []
      const waiters = yield* Effect.forEach(
        Array.from({ length: 1000 }, (_, n) => n),
        (n) =>
          Effect.forkScoped(
            mutex.withLock(m)((lease) =>
              Effect.sync(() => {
                order.push(n)
                tokens.push(lease.token)
              })
            )
          )
      )
      yield* queued(server, m, 1)
      const waiting = yield* stats.calls
      assert.deepStrictEqual([waiting.get("evalsha"), waiting.get("subscribe")], [2, undefined])
      yield* stats.reset
      yield* Deferred.succeed(letGo, undefined)
      yield* Fiber.joinAll([holding, ...waiters])
      assert.deepStrictEqual(order, [...order].sort((a, b) => a - b))
      assert.deepStrictEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b))
      yield* until("free", Effect.map(server.send("EXISTS", keysOf(m).owner, keysOf(m).queue), (n) => n === 0))
      const handing = yield* stats.calls
      // The holder's release, the first waiter's confirmation if it has waited long enough to need one, and one release
      // per waiter
      assert.isAtMost(handing.get("evalsha")!, 1 + 1 + 1000)
      assert.deepStrictEqual([handing.has("subscribe"), handing.has("unsubscribe")], [false, false])
    }))

  it.effect("between the shared turns of one process's waiters, another process gets a turn", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const stats = commandStats(server)
      const [us, them] = yield* Effect.all([
        openMutex(server, { ...patient, localTurn: "1 minute" }),
        openMutex(server, { ...patient, localTurn: 0 })
      ])
      const m = freshName("turns")
      const letGo = yield* Deferred.make<void>()
      const served: Array<string> = []
      const tokens: Array<number> = []
      const work = (name: string) => (lease: { readonly token: number }) =>
        Effect.sync(() => {
          served.push(name)
          tokens.push(lease.token)
        })
      const holding = yield* Effect.forkScoped(us.withLock(m)(Deferred.await(letGo)))
      yield* held(server, m)
      const waiters = yield* Effect.forEach(
        Array.from({ length: 320 }),
        () => Effect.forkScoped(us.withLock(m)(work("us")))
      )
      // Four waiters stand in line, so each release queues the next waiter too, and the line never empties
      const others = yield* Effect.forEach(
        Array.from({ length: 4 }),
        () => Effect.forkScoped(them.withLock(m)(work("them")))
      )
      yield* queued(server, m, 1)
      yield* stats.reset
      yield* Deferred.succeed(letGo, undefined)
      yield* Fiber.joinAll([holding, ...waiters, ...others])
      assert.deepStrictEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b))
      const runs = served.join(" ").split(/ ?them ?/).map((run) => run === "" ? 0 : run.split(" ").length)
      assert.strictEqual(runs[0], tokenStride - 1, "the waiters that share a turn with the first holder")
      for (const run of runs.slice(0, -1)) assert.isAtMost(run, tokenStride)
      assert.isAtMost((yield* stats.calls).get("evalsha")!, 40)
    }))

  it.effect("waiters get the mutex even after the server is flushed", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const mutex = yield* openMutex(server, { ttl: "300 millis", transition: "2 seconds", localTurn: "200 millis" })
      const m = freshName("flushed")
      let served = 0
      let lost = 0
      const work = mutex.withLock(m)(
        Effect.andThen(Effect.sleep("40 millis"), Effect.sync(() => served++))
      ).pipe(Effect.catchTag("LeaseLost", () => Effect.sync(() => lost++)))
      const waiters = yield* Effect.forEach(Array.from({ length: 30 }), () => Effect.forkScoped(work))
      for (let i = 0; i < 3; i++) {
        yield* Effect.sleep("300 millis")
        yield* server.send("DEL", keysOf(m).owner, keysOf(m).queue)
      }
      yield* Effect.timeout(Fiber.joinAll(waiters), "40 seconds")
      assert.strictEqual(served + lost, 30)
      assert.isAtMost(lost, 3)
    }))
})
