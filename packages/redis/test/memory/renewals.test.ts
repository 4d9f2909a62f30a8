/** How lease renewals share calls to the server. */
import { type Lease, Mutex, MutexName } from "@effect-simba/core"
import { acquire, guard, type GuardRequest, MutexStore } from "@effect-simba/core/MutexStore"
import { RedisMutex } from "@effect-simba/redis"
import * as RedisTopology from "@effect-simba/redis/RedisTopology"
import { TestRedis } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import { type Args, type CommandSink, overRedis } from "../../src/internal/client/commandSink.ts"
import * as RedisKeys from "../../src/internal/mutex/keys.ts"
import * as renewals from "../../src/internal/mutex/renewalBatch.ts"
import { freshId, requestOf } from "../support/harness.ts"

describe("renewals through Effect's Redis service", () => {
  it.effect("are interrupted if their caller abandons them", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const send = (command: string) =>
        Effect.onInterrupt(
          Effect.andThen(Effect.sync(() => log.push(`${command} begins`)), Effect.never),
          () => Effect.sync(() => log.push(`${command} ends`))
        )
      const direct = yield* overRedis({ send } as unknown as Redis["Service"])
      const renew = renewals.make(direct, { lua: "", sha: "sha" }, { perLease: false })
      const request = { mutex: MutexName.MutexName.make("m"), id: freshId(), lease: Duration.seconds(16) }
      const abandon = renew([request], () => {})
      assert.deepStrictEqual(log, ["EVALSHA begins"])
      abandon()
      assert.deepStrictEqual(log, ["EVALSHA begins", "EVALSHA ends"])
    }))

  it.effect.each([false, true])(
    "are not resent with the script's text if their caller has abandoned them (one call per lease: %s)",
    (perLease) =>
      Effect.gen(function*() {
        const sent: Array<string> = []
        const replies: Array<Parameters<CommandSink["Service"]["send"]>[2]> = []
        const sink: CommandSink["Service"] = {
          isReady: () => true,
          afterCurrentTask: (task) => task(),
          send: (command, _args, done) => {
            sent.push(command)
            replies.push(done)
            return undefined
          }
        }
        const renew = renewals.make(sink, { lua: "", sha: "sha" }, { perLease })
        const request = { mutex: MutexName.MutexName.make("m"), id: freshId(), lease: Duration.seconds(16) }
        const abandon = renew([request, request], () => {})
        abandon()
        for (const reply of replies) reply({ cause: new Error("NOSCRIPT") }, undefined)
        assert.deepStrictEqual(sent, perLease ? ["EVALSHA", "EVALSHA"] : ["EVALSHA"])
      })
  )
})

it.effect("a long list of leases has the same arguments each time, unless the script has to be sent with them", () =>
  Effect.gen(function*() {
    const sent: Array<readonly [command: string, args: Args]> = []
    const replies: Array<Parameters<CommandSink["Service"]["send"]>[2]> = []
    const sink: CommandSink["Service"] = {
      isReady: () => true,
      afterCurrentTask: (task) => task(),
      send: (command, args, done) => {
        sent.push([command, args])
        replies.push(done)
        return undefined
      }
    }
    const renew = renewals.make(sink, { lua: "lua", sha: "sha" }, { perLease: false })
    const lease = Duration.seconds(16)
    const listOf = (length: number) => Array.from({ length }, (_, i) => ({ ...requestOf(`m${i}`), lease }))
    const argsOf = (requests: ReadonlyArray<GuardRequest>) => [
      String(requests.length),
      ...requests.map(({ mutex }) => RedisKeys.owner(mutex)),
      ...requests.map(({ id }) => id),
      "16000"
    ]
    const next = (requests: ReadonlyArray<GuardRequest>) => {
      renew(requests, () => {})
      return sent.at(-1)![1]
    }
    const [first, second, short] = [listOf(100), listOf(100), listOf(99)] as const
    const args = next(first) as () => ReadonlyArray<string>
    assert.deepStrictEqual(args(), ["sha", ...argsOf(first)])
    assert.strictEqual(next(first), args)
    assert.deepStrictEqual((next(second) as typeof args)(), ["sha", ...argsOf(second)])
    assert.deepStrictEqual(next(short), ["sha", ...argsOf(short)])
    replies[0]!({ cause: new Error("NOSCRIPT") }, undefined)
    assert.deepStrictEqual(sent.at(-1), ["EVAL", ["lua", ...argsOf(first)]])
  }))

it.effect("one call renews leases of different lengths", () =>
  Effect.gen(function*() {
    const store = yield* MutexStore
    for (const lengths of [[16, 30, 7], [16, 16, 7], [30, 16, 16], [16, 16, 16]]) {
      const requests = lengths.map((seconds) => ({ ...requestOf("length"), lease: Duration.seconds(seconds) }))
      for (const request of requests) yield* acquire(store, { ...request, lease: Duration.seconds(5) })
      const renewed = yield* guard(store, requests)
      assert.deepStrictEqual(renewed.map(({ _tag }) => _tag), ["Renewed", "Renewed", "Renewed"])
      const left = yield* Effect.forEach(requests, ({ mutex }) => store.owner(mutex))
      assert.deepStrictEqual(
        left,
        requests.map(({ id, lease }) => ({ _tag: "Held", owner: id, timeLeft: lease }) as const)
      )
    }
  }).pipe(Effect.provide(RedisMutex.layerStore.pipe(Layer.provide(TestRedis.layer())))))

it.effect("if one Cluster node hangs, only the leases on that node are lost", () => {
  let hangs = false
  const hanging = RedisKeys.owner(MutexName.MutexName.make("there")).slice(0, -1)
  const halfDeaf = Layer.effect(
    Redis,
    Effect.map(Redis, (redis) => ({
      ...redis,
      send: (command, ...args) =>
        hangs && args.some((arg) => arg.startsWith(hanging)) ? Effect.never : redis.send(command, ...args)
    }))
  )
  const cluster = RedisMutex.layerRedis().pipe(
    Layer.provide(Layer.succeed(RedisTopology.RedisTopology, { _tag: "Cluster", primaries: Effect.succeed([]) })),
    Layer.provide(halfDeaf),
    Layer.provide(TestRedis.layer())
  )
  return Effect.gen(function*() {
    const there: Array<Lease.Lease> = []
    const elsewhere: Array<Lease.Lease> = []
    // Enough leases that a batch of renewals contains some from both nodes
    for (let i = 0; i < 50; i++) {
      there.push(yield* Mutex.acquire(`there ${i}`))
      elsewhere.push(yield* Mutex.acquire(`elsewhere ${i}`))
    }
    hangs = true
    yield* TestClock.adjust("1 minute")
    const held = yield* Effect.filter([...there, ...elsewhere], (lease) => lease.isHeld)
    // Lets pending releases succeed before the layer closes
    hangs = false
    yield* TestClock.adjust("10 seconds")
    assert.deepStrictEqual(held, elsewhere)
    for (const lease of there) assert.strictEqual((yield* lease.lost).reason._tag, "BackendGone")
  }).pipe(Effect.scoped, Effect.provide(cluster))
}, { tags: ["S14"] })
