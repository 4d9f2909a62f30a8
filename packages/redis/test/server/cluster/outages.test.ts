/** What a layer does while a node of its Cluster is away. */
import { Mutex } from "@effect-simba/core"
import { IoRedis, RedisMutexStore } from "@effect-simba/redis"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer } from "effect"
import { slot } from "../../../src/internal/client/clusterSlot.ts"
import { capturingLogs, commandStats, RedisServer, until } from "../../support/harness.ts"
import { ownerOfSlot } from "../../support/resharding.ts"

it.live("a node that is away is asked for rarely, and the others serve on", () =>
  Effect.gen(function*() {
    const setup = yield* RedisServer.cluster({ args: ["--cluster-require-full-coverage no"] })
    const [first, second, gone] = setup.nodes
    const layer = Mutex.layer({ ttl: "1 second", transition: "3 seconds", commandTimeout: "500 millis" }).pipe(
      Layer.provide(RedisMutexStore.layer),
      Layer.provide(IoRedis.layerCluster({
        nodes: setup.nodes.map(({ port }) => ({ host: "127.0.0.1", port })),
        commandTimeout: "500 millis"
      }))
    )
    const mutexes = yield* Effect.forEach([1, 2, 3], () =>
      Effect.map(Layer.build(Layer.fresh(layer)), (context) => Context.get(context, Mutex.Mutex)))
    const owners = yield* Effect.forEach(
      Array.from({ length: 90 }, (_, i) =>
        `m ${i}`),
      (name) => Effect.map(ownerOfSlot(setup, slot(`simba:{${name}}`)), (owner) => [name, owner] as const)
    )
    const near = owners.filter(([, owner]) => owner !== gone).map(([name]) => name)
    const far = owners.filter(([, owner]) => owner === gone).map(([name]) => name)
    const leases = yield* Effect.forEach(
      near,
      (name, i) =>
        Effect.scoped(Effect.as(mutexes[i % 3]!.acquire(name), name)).pipe(
          Effect.andThen(mutexes[i % 3]!.acquire(name))
        )
    )
    yield* Effect.forEach(far, (name, i) => mutexes[i % 3]!.acquire(name))
    yield* gone!.kill()
    const stats = [first!, second!].map(commandStats)
    yield* Effect.forEach(stats, ({ reset }) => reset)
    // Callers that try again and again, as they do
    yield* Effect.forEach(far, (name, i) =>
      Effect.forkScoped(Effect.forever(Effect.andThen(
        Effect.exit(Effect.scoped(mutexes[i % 3]!.acquire(`{${name}}`, { timeout: "1 second" }))),
        Effect.sleep("20 millis")
      ))))
    yield* Effect.sleep("5 seconds")
    const calls = yield* Effect.forEach(stats, (each) => each.calls)
    const refreshes = calls.reduce((sum, each) => sum + (each.get("cluster|slots") ?? 0), 0)
    // Three layers for five seconds
    assert.isAtMost(refreshes, 40)
    for (const lease of leases) yield* lease.ensure
    yield* gone!.restart
    yield* until(
      "all is well",
      Effect.map(
        Effect.exit(Effect.scoped(mutexes[0]!.acquire(`again {${far[0]}}`, { timeout: "1 second" }))),
        Exit.isSuccess
      )
    )
  }).pipe(Effect.scoped, Effect.provide(capturingLogs([]))), 90_000)
