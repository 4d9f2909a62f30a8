/** Commands on a Cluster with failed nodes or connections, and the slots of a mutex's keys. */
import type { MutexName } from "@effect-simba/core/MutexName"
import { MutexStore } from "@effect-simba/core/MutexStore"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Redis, RedisError, script } from "effect/persistence/Redis"
import * as RedisKeys from "../../../src/internal/mutex/keys.ts"
import { contender, freshName, keysOf, RedisServer, until } from "../../support/harness.ts"
import { relayTo } from "../../support/relay.ts"

const nodeAt = (port: number) => ({ host: "127.0.0.1", port })

it.live(
  "a command fails and is not resent if its connection breaks before the reply",
  () =>
    Effect.gen(function*() {
      const { nodes } = yield* RedisServer.cluster()
      const relays = yield* Effect.forEach(nodes, ({ port }) => relayTo(port))
      const natMap = Object.fromEntries(nodes.map((node, i) => [`127.0.0.1:${node.port}`, nodeAt(relays[i]!.port)]))
      const context = yield* Layer.build(IoRedis.layerCluster({
        nodes: [nodeAt(relays[0]!.port)],
        cluster: { natMap },
        commandTimeout: "5 seconds"
      }))
      const redis = Context.get(context, Redis)
      for (const key of ["a", "b", "c"]) {
        assert.strictEqual(yield* redis.send("INCR", key), 1)
        for (const relay of relays) relay.cut = "INCR"
        const error = yield* Effect.flip(redis.send("INCR", key))
        for (const relay of relays) relay.cut = undefined
        assert.instanceOf(error, RedisError)
        // ioredis would resend the command within this time
        yield* Effect.sleep("300 millis")
        assert.strictEqual(yield* redis.send("GET", key), "2")
      }
      // Many concurrent callers need every node, so all connections must be restored. Commands that have not been sent
      // may wait for their connection.
      const keys = Array.from({ length: 30 }, (_, i) => `many ${i}`)
      yield* Effect.forEach(keys, (key) => redis.send("INCR", key), { concurrency: "unbounded" })
    }).pipe(Effect.scoped)
)

it.live(
  "a primary that is down does not affect the others",
  () =>
    Effect.gen(function*() {
      const { nodes } = yield* RedisServer.cluster({ args: ["--cluster-require-full-coverage no"] })
      const [first, , last] = nodes
      yield* last!.kill()
      yield* until(
        "the other nodes know about the failure",
        Effect.map(first!.send("CLUSTER", "NODES"), (text) => / master,fail /.test(String(text)))
      )
      // Enough attempts that the commands and the subscriber each try every node first at least once
      const connect = Layer.build(Layer.fresh(IoRedis.layerCluster({ nodes: [nodeAt(first!.port)] })))
      for (let i = 0; i < 15; i++) {
        yield* Effect.scoped(Effect.gen(function*() {
          const context = yield* connect
          yield* Context.get(context, Subscriber).subscribe("channel")
          yield* Context.get(context, Redis).reserve
        }))
      }
      const context = yield* Layer.build(RedisMutex.layerStore.pipe(
        Layer.provideMerge(IoRedis.layerCluster({ nodes: [nodeAt(first!.port)] }))
      ))
      const redis = Context.get(context, Redis)
      const store = Context.get(context, MutexStore)
      const sum = script((key: string, a: number, b: number) => [key, a, b], {
        numberOfKeys: 1,
        lua: "return tostring(ARGV[1] + ARGV[2])"
      }).withReturnType<string>()
      let served = 0
      for (let i = 0; i < 30; i++) {
        const mutex = freshName("away")
        const slot = Number(yield* first!.send("CLUSTER", "KEYSLOT", mutex))
        if (slot >= 16_384 * 2 / 3 - 1) continue
        served++
        yield* contender(store, mutex).own
        assert.deepInclude(yield* store.owner(mutex), { _tag: "Held" })
        assert.strictEqual(yield* redis.eval(sum)(`{${mutex}}`, 1, 2), "3")
      }
      assert.isAbove(served, 0)
    }).pipe(Effect.scoped)
)

it.live("all keys of a mutex and its jobs share one slot, regardless of its name", () =>
  Effect.gen(function*() {
    const server = yield* RedisServer.start({ args: ["--cluster-enabled", "yes"] })
    for (
      const name of ["m", "with spaces", "a}b{c", "{braces}", "{", "{}x", "a{b}c}", "ünïcödé ✓", "x".repeat(300)]
    ) {
      const m = `${name}` as MutexName
      const keys = [...Object.values(keysOf(m)), RedisKeys.jobs(m)]
      const slots = yield* Effect.forEach(keys, (key) => server.send("CLUSTER", "KEYSLOT", key))
      assert.strictEqual(new Set(slots).size, 1, name)
    }
    const different = yield* Effect.forEach(
      ["a", "b"],
      (m) => server.send("CLUSTER", "KEYSLOT", RedisKeys.owner(m as MutexName))
    )
    assert.notStrictEqual(different[0], different[1])
  }), { tags: ["B46"] })
