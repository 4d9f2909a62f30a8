/** Runs mixed fleets of effect-simba and Go consumers on a real server. */
import { IoRedis } from "@effect-simba/redis"
import { assert, describe, it } from "@effect/vitest"
import type { Scope } from "effect"
import { Effect, Layer } from "effect"
import { commandStats, quiet, RedisServer } from "../../support/harness.ts"
import { consumers } from "../../support/interopConsumers.ts"
import * as scenarios from "../../support/streamInteropScenarios.ts"

/** Uses a separate server, because the scenarios inspect the server's settings and the whole keyspace. */
const real = <A>(scenario: (stage: scenarios.Stage) => Effect.Effect<A, unknown, Scope.Scope>) =>
  Effect.gen(function*() {
    const server = yield* RedisServer.start()
    return yield* scenario({
      send: server.send,
      ...consumers(
        () => Layer.fresh(IoRedis.layer({ url: server.url })),
        () => Effect.die("the processes in this test share connections and cannot be disconnected"),
        // Long enough to keep every lease on a busy machine
        { heartbeatInterval: "250 millis" }
      )
    })
  }).pipe(Effect.scoped, Effect.provide(quiet))

describe("with Go consumers, on a real Redis", () => {
  it.live("each data stream is processed by one consumer, no matter which library announced it", () =>
    real(scenarios.bothWays))

  it.live("a live Go consumer keeps its data streams", () => real(scenarios.liveGo))

  it.live("a Go consumer takes yielded data streams", () => real(scenarios.handBack), { tags: ["G20"] })

  it.live("with events, a dead Go consumer's data streams are taken over", () =>
    real((stage) => scenarios.goDies(stage, true)))

  it.live(
    "without events, a sweep takes over a dead Go consumer's data streams",
    () => real((stage) => scenarios.goDies(stage, false)),
    { tags: ["G15"] }
  )

  it.live("a sweep needs few commands for a thousand entries held by Go consumers", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const stage = {
        send: server.send,
        ...consumers(() => Layer.fresh(IoRedis.layer({ url: server.url })), () =>
          Effect.die("no process can be disconnected"))
      } satisfies scenarios.Stage as scenarios.Stage
      const held = 1000
      yield* scenarios.lockedByGo(stage, held)
      for (const id of ["one", "two"]) {
        yield* (yield* stage.own(id, { capacity: 5000 })).run(() =>
          Effect.never
        )
      }
      // Long enough for each consumer to read each entry once
      yield* Effect.sleep("6 seconds")
      const stats = commandStats(server)
      yield* stats.reset
      yield* Effect.sleep("6 seconds")
      const calls = yield* stats.calls
      const most = 2 * (6 / 1.6 + 1) * (held / 200 + 1)
      assert.isAtMost(calls.get("xrange") ?? 0, 10)
      assert.isAtMost(calls.get("get") ?? 0, 10)
      assert.isAtLeast(calls.get("mget") ?? 0, held / 200)
      for (const command of ["mget", "hmget", "xpending"]) assert.isAtMost(calls.get(command) ?? 0, most, command)
    }).pipe(Effect.scoped, Effect.provide(quiet)))

  it.live("two announcements of one data stream are processed one after another", () => real(scenarios.duplicates), {
    tags: ["G8"]
  })

  it.live(
    "if a Go consumer finishes late, its effect-simba successor stops and nothing is processed again",
    () => real(scenarios.lateDone),
    { tags: ["G18"] }
  )

  it.live(
    "a Go consumer that shuts down finishes its own data streams but none of effect-simba's",
    () => real(scenarios.goDone),
    { tags: ["G20"] }
  )
})
