/** Options from environment variables, and configuration by `Config`. */
import type { Mutex } from "@effect-simba/core"
import { IoRedis } from "@effect-simba/redis"
import { assert, describe, it } from "@effect/vitest"
import { Config, ConfigProvider, Duration, Effect, Exit, Layer } from "effect"
import { environmentBeside } from "../../src/internal/client/ioredis/options.ts"
import * as mutexes from "../../src/internal/mutex/environment.ts"
import * as streams from "../../src/streams/internal/environment.ts"

const within = (env: Record<string, string>) =>
  Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))

const millis = (input: Duration.Input | undefined) =>
  input === undefined ? undefined : Duration.toMillis(Duration.fromInputUnsafe(input))

describe("environment variables", () => {
  it.effect("set a mutex's ttl and transition, unless a duration is invalid", () =>
    Effect.gen(function*() {
      const read = (env: Record<string, string>, options: Mutex.Options = {}) =>
        Effect.map(mutexes.complete(options), ({ transition, ttl }) => [millis(ttl), millis(transition)]).pipe(
          within(env)
        )
      assert.deepStrictEqual(yield* read({}), [undefined, undefined])
      assert.deepStrictEqual(
        yield* read({ SIMBA_REDIS_TTL: "20 seconds", SIMBA_REDIS_TRANSITION: "8s" }),
        [20_000, 8_000]
      )
      assert.isTrue(Exit.isFailure(yield* Effect.exit(read({ SIMBA_REDIS_TTL: "soon" }))))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(read({ SIMBA_REDIS_TRANSITION: "8" }))))
      // A variable is not read if the program sets the option
      assert.deepStrictEqual(
        yield* read({ SIMBA_REDIS_TTL: "soon", SIMBA_REDIS_TRANSITION: "8s" }, { ttl: "20 seconds" }),
        [20_000, 8_000]
      )
    }))

  it.effect.each(["SIMBA_REDIS_TTL", "SIMBA_REDIS_TRANSITION", "REDIS_COMMAND_TIMEOUT", "REDIS_CONNECT_TIMEOUT"])(
    "%s may use a short unit, and the error for a number without a unit shows an example",
    (name) =>
      Effect.gen(function*() {
        const read = (value: string) =>
          within({ [name]: value })(Effect.all([mutexes.complete<Mutex.Options>({}), environmentBeside({})]))
        const [{ transition, ttl }, { commandTimeout, connectTimeout }] = yield* read(" 1500ms")
        assert.deepStrictEqual(
          [ttl, transition, commandTimeout, connectTimeout].flatMap((input) => millis(input) ?? []),
          [1500]
        )
        for (const value of ["1000", "-1", "1.5", "soon"]) {
          const { message } = yield* Effect.flip(read(value))
          assert.include(message, "expected a number with its unit, such as 10s, 500ms or 10 seconds")
          assert.include(message, name)
        }
      })
  )

  it.effect.each(
    [
      ["mutexes", (processName?: string) => mutexes.complete({ processName })],
      ["data streams", (processName?: string) => streams.complete({ service: "svc", processName })]
    ] as const
  )("%s uses POD_NAME, or else POD_IP, as its process name", ([, complete]) =>
    Effect.gen(function*() {
      const read = (env: Record<string, string>, processName?: string) =>
        complete(processName).pipe(Effect.map((options) => options.processName), within(env))
      assert.strictEqual(yield* read({ POD_NAME: "pod-1", POD_IP: "10.0.0.1" }), "pod-1")
      assert.strictEqual(yield* read({ POD_IP: "10.0.0.1" }), "10.0.0.1")
      assert.strictEqual(yield* read({ POD_NAME: "pod-1" }, "mine"), "mine")
      assert.isUndefined(yield* read({}))
    }))

  it.effect("count as unset if empty", () =>
    Effect.gen(function*() {
      const empty = Object.fromEntries(
        [
          ...["SIMBA_ENABLED", "SIMBA_REDIS_TTL", "SIMBA_REDIS_TRANSITION", "POD_NAME", "POD_IP", "REDIS_URL"],
          ...["USERNAME", "PASSWORD", "DB", "SENTINEL_PASSWORD", "COMMAND_TIMEOUT", "CONNECT_TIMEOUT"].map((name) =>
            `REDIS_${name}`
          )
        ].map((name) => [name, ""])
      )
      const read = Effect.all([
        Config.Boolean("SIMBA_ENABLED").pipe(Config.withDefault(true)),
        mutexes.complete({}),
        streams.complete({ service: "svc" }),
        environmentBeside({})
      ])
      assert.deepStrictEqual(yield* within(empty)(read), yield* within({})(read))
    }))

  it.effect("set a connection's credentials unless the program does", () =>
    Effect.gen(function*() {
      const env = { REDIS_USERNAME: "ann", REDIS_PASSWORD: "p", REDIS_SENTINEL_PASSWORD: "s" }
      const read = (options: IoRedis.Options) =>
        Effect.map(environmentBeside(options), ({ client }) => client).pipe(within(env))
      assert.deepStrictEqual(yield* read({}), { username: "ann", password: "p", sentinelPassword: "s" })
      assert.deepStrictEqual(yield* read({ client: { sentinelPassword: "mine" } }), { username: "ann", password: "p" })
    }))
})

describe("IoRedis.layerConfig", () => {
  it.effect("fails before connecting if a setting is missing, and names the setting", () =>
    Effect.gen(function*() {
      const failure = <A, E>(layer: Layer.Layer<A, E>) => Effect.map(Effect.flip(Layer.build(layer)), String)
      assert.include(yield* failure(IoRedis.layerConfig({ url: Config.Redacted("APP_REDIS") })), "APP_REDIS")
      assert.include(
        yield* failure(IoRedis.layerClusterConfig({ nodes: Config.map(Config.String("APP_NODES"), (node) => [node]) })),
        "APP_NODES"
      )
      const misconfigured = IoRedis.layerConfig({ url: Config.Redacted("APP_REDIS") })
      assert.include(yield* failure(misconfigured).pipe(within({ APP_REDIS: "http://localhost" })), "InvalidConfig")
    }).pipe(Effect.scoped))
})
