/** Listing and inspecting mutexes that are spread over several primaries. */
import { MutexName } from "@effect-simba/core/MutexName"
import { acquire, MutexStore } from "@effect-simba/core/MutexStore"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { assert, it } from "@effect/vitest"
import { Context, Duration, Effect, Layer, Stream } from "effect"
import { freshId, ownerOf, RedisServer } from "../../support/harness.ts"

const confirm = Duration.seconds(30)

const hour = Duration.hours(1)

const listOf = (store: MutexStore["Service"]) => Effect.map(Stream.runCollect(store.list), (names) => [...names].sort())

it.live(
  "lists the mutexes on all primaries of a Cluster, and inspects each of them",
  () =>
    Effect.gen(function*() {
      const { nodes } = yield* RedisServer.cluster()
      const store = yield* Effect.map(
        Layer.build(RedisMutex.layerStore.pipe(
          Layer.provide(IoRedis.layerCluster({
            nodes: nodes.slice(0, 1).map(({ port }) => ({ host: "127.0.0.1", port })),
            commandTimeout: "5 seconds"
          }))
        )),
        (context) => Context.get(context, MutexStore)
      )
      const names = Array.from({ length: 60 }, (_, index) => MutexName.make(`spread ${index}`))
      const lease = Duration.minutes(1)
      const ids = names.map(() => freshId())
      yield* Effect.forEach(
        names,
        (mutex, index) => acquire(store, { mutex, id: ids[index]!, mode: "try", lease, confirm }),
        { concurrency: 20 }
      )
      for (const node of nodes) assert.isAbove(Number(yield* node.send("DBSIZE")), 0)
      assert.deepStrictEqual(yield* listOf(store), [...names].sort())
      for (const [index, mutex] of names.entries()) {
        assert.strictEqual(ownerOf((yield* store.inspect(mutex, 1)).ownership), ids[index])
        const named = [{ name: "{other slot}", schedule: "every 1000", keep: hour }]
        assert.isTrue((yield* store.jobs.read({ mutex, jobs: named })).jobs.has("{other slot}"))
      }
      yield* Effect.forEach(names.slice(0, 30), (mutex) => store.forceRelease(mutex, confirm), { concurrency: 10 })
      assert.deepStrictEqual(yield* listOf(store), names.slice(30).sort())
    }).pipe(Effect.scoped),
  { tags: ["B59"] }
)
