import * as Mutex from "@effect-simba/core/Mutex"
import { InvalidConfig } from "@effect-simba/core/SimbaError"
import { RedisMutex } from "@effect-simba/redis"
import { assert, describe, it, layer } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { connections, freshName, keysOf, killConnections, openMutex, RedisServer } from "../../support/harness.ts"
import * as scenarios from "../../support/mutexScenarios.ts"
import type { Server } from "../../support/redisServer.ts"

const stageOn = (server: Server): scenarios.Stage => ({
  open: ({ clientTimeout, name, ...options } = {}) =>
    openMutex(server, {
      ...options,
      redis: {
        ...(clientTimeout === undefined ? {} : { commandTimeout: clientTimeout }),
        ...(name === undefined ? {} : { client: { connectionName: name } })
      }
    }),
  server: {
    send: server.send,
    pause: server.pause,
    resume: server.resume,
    kill: server.kill(),
    restart: server.restart,
    loseSubscription: (name) =>
      Effect.flatMap(connections(server, name), (ids) => server.send("CLIENT", "KILL", "ID", ids.at(-1)!)),
    loseConnections: killConnections(server, "simba:commands")
  }
})

type Scenario = (stage: scenarios.Stage) => Effect.Effect<void, unknown>

/** Runs a scenario on the shared server. */
const shared = (scenario: Scenario) => Effect.flatMap(RedisServer, (server) => scenario(stageOn(server)))

/** Runs a scenario that suspends, restarts or cuts off its server, which is therefore a separate one. */
const alone = (scenario: Scenario) => Effect.flatMap(RedisServer.start(), (server) => scenario(stageOn(server)))

layer(RedisServer.layer, { excludeTestServices: true })("a mutex on Redis", (it) => {
  it.effect("fifteen fibers in three processes exclude each other", () => shared(scenarios.exclusion), {
    tags: ["B60"]
  })

  it.effect("waiters in different processes are served in order of arrival", () => shared(scenarios.order), {
    tags: ["H1"]
  })

  it.effect("a waiter whose subscription was lost still gets the mutex", () => shared(scenarios.lostSubscription), {
    tags: ["B2"]
  })

  it.effect(
    "if the owner's key is deleted, the lease is lost and its work is interrupted",
    () => shared(scenarios.deleted),
    { tags: ["B18"] }
  )

  it.effect("if the owner's key is overwritten, the loss names the new owner and the key stays unchanged", () =>
    shared(scenarios.overwritten))

  it.effect("a lease is renewed for as long as its work takes", () => shared(scenarios.renewed), { tags: ["L2"] })

  it.effect(
    "an interrupted acquire returns immediately and leaves nothing behind",
    () => shared(scenarios.interrupted),
    {
      tags: ["H7"]
    }
  )

  it.effect(
    "an acquire leaves nothing behind, no matter when it is interrupted",
    () => shared(scenarios.interruptedAnywhere),
    { tags: ["H7"] }
  )

  it.effect(
    "an acquire that times out names the owner in its error and leaves nothing behind",
    () => shared(scenarios.timedOut),
    { tags: ["H7"] }
  )

  it.effect("the longest periods work like any other", () => shared(scenarios.longest))

  it.effect("with a timeout of zero, an acquire makes a single attempt and waits for the reply", () =>
    alone(scenarios.oneTry))

  it.effect("closing a layer interrupts its work, waits for it, and releases its mutexes", () =>
    shared(scenarios.closed))

  it.effect("a waiter that leaves does not delay the one behind it", () => shared(scenarios.leaving), {
    tags: ["H3"]
  })
})

describe("a mutex when Redis fails", () => {
  it.live(
    "if the server restarts without its data, the holder loses the mutex and a waiter gets it",
    () => alone(scenarios.restarted),
    { tags: ["B2"] }
  )

  it.live(
    "if the server hangs, work is interrupted at the local deadline, with BackendGone",
    () => alone(scenarios.hanging),
    { tags: ["L1"] }
  )

  it.live("an outage shorter than the transition does not end a lease", () => alone(scenarios.shortOutage), {
    tags: ["L2", "B13"]
  })

  it.live("acquire rides out an outage, but fails with a BackendError if the outage outlasts a lease", () =>
    alone(scenarios.outage))
})

describe("a mutex on Redis, from the environment", () => {
  const build = (env: Record<string, string>) =>
    Layer.fresh(RedisMutex.layerFromEnv()).pipe(
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
    )

  it.live.each(["SIMBA_ENABLED", "SIMBA_REDIS_ENABLED"])(
    "%s=false: refuses to build and says why",
    (option) =>
      Effect.gen(function*() {
        const server = yield* RedisServer.start()
        const error = yield* Effect.flip(
          Effect.scoped(Layer.build(build({ REDIS_URL: server.url, [option]: "false" })))
        )
        assert.instanceOf(error, InvalidConfig)
        assert.strictEqual((error as InvalidConfig).option, option)
        assert.include((error as InvalidConfig).message, "Mutex.layerMemory")
        assert.strictEqual((yield* connections(server, "simba:commands")).length, 0)
      })
  )

  it.live("takes the periods and the URL from environment variables", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const env = {
        REDIS_URL: server.url,
        SIMBA_ENABLED: "true",
        SIMBA_REDIS_TTL: "40 seconds",
        SIMBA_REDIS_TRANSITION: "20 seconds"
      }
      const m = freshName("environment")
      yield* Effect.gen(function*() {
        yield* Mutex.acquire(m)
        const left = Number(yield* server.send("PTTL", keysOf(m).owner))
        assert.isAbove(left, 50_000)
        assert.isAtMost(left, 60_000)
      }).pipe(Effect.scoped, Effect.provide(build(env)))
    }))

  it.live.each([
    { SIMBA_REDIS_TTL: "soon" },
    { SIMBA_REDIS_TTL: "0 seconds" },
    { SIMBA_REDIS_TRANSITION: "1 second" },
    { SIMBA_REDIS_TRANSITION: "-1 second" },
    { SIMBA_ENABLED: "perhaps" },
    { REDIS_URL: "http://localhost" }
  ])("%j: refuses to build", (env) =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const error = yield* Effect.flip(Effect.scoped(Layer.build(build({ REDIS_URL: server.url, ...env }))))
      assert.include(["InvalidConfig", "ConfigError"], error._tag)
      assert.strictEqual((yield* connections(server, "simba:commands")).length, 0)
    }))
})
