/** Renewals on a Cluster go to many nodes, of which one may hang. */
import { type Lease, Mutex, MutexName } from "@effect-simba/core"
import { RedisMutexStore, RedisTopology } from "@effect-simba/redis"
import { TestRedis } from "@effect-simba/testkit"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import * as RedisKeys from "../../../src/internal/mutex/keys.ts"

it.effect("S14: a node that hangs costs the leases there, and no others that are renewed with them", () => {
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
  const cluster = Mutex.layer().pipe(
    Layer.provide(RedisMutexStore.layer),
    Layer.provide(Layer.succeed(RedisTopology.RedisTopology, { _tag: "Cluster", primaries: Effect.succeed([]) })),
    Layer.provide(halfDeaf),
    Layer.provide(TestRedis.layer())
  )
  return Effect.gen(function*() {
    const there: Array<Lease.Lease> = []
    const elsewhere: Array<Lease.Lease> = []
    // Enough of them for each renewal to have some of both
    for (let i = 0; i < 50; i++) {
      there.push(yield* Mutex.acquire(`there ${i}`))
      elsewhere.push(yield* Mutex.acquire(`elsewhere ${i}`))
    }
    hangs = true
    yield* TestClock.adjust("1 minute")
    const held = yield* Effect.filter([...there, ...elsewhere], (lease) => lease.isHeld)
    // What is still to be given back there is, before the layer closes
    hangs = false
    yield* TestClock.adjust("10 seconds")
    assert.deepStrictEqual(held, elsewhere)
    for (const lease of there) assert.strictEqual((yield* lease.lost).reason, "BackendGone")
  }).pipe(Effect.scoped, Effect.provide(cluster))
})
