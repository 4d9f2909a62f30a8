import type { Mutex } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Duration, Effect, Exit } from "effect"
import * as mutexes from "../../src/internal/mutex/environment.ts"
import * as streams from "../../src/streams/internal/environment.ts"

const within = (env: Record<string, string>) =>
  Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))

const millis = (input: Duration.Input | undefined) =>
  input === undefined ? undefined : Duration.toMillis(Duration.fromInputUnsafe(input))

describe("the environment", () => {
  it.effect("has the ttl and the transition of mutexes, and what is no duration is refused", () =>
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
      // A variable that code overrides is not read
      assert.deepStrictEqual(
        yield* read({ SIMBA_REDIS_TTL: "soon", SIMBA_REDIS_TRANSITION: "8s" }, { ttl: "20 seconds" }),
        [20_000, 8_000]
      )
    }))

  it.effect("has the process name of data streams in POD_NAME, else in POD_IP", () =>
    Effect.gen(function*() {
      const read = (env: Record<string, string>, processName?: string) =>
        Effect.map(streams.complete({ service: "svc", processName }), (options) => options.processName).pipe(
          within(env)
        )
      assert.strictEqual(yield* read({ POD_NAME: "pod-1", POD_IP: "10.0.0.1" }), "pod-1")
      assert.strictEqual(yield* read({ POD_IP: "10.0.0.1" }), "10.0.0.1")
      assert.strictEqual(yield* read({ POD_NAME: "pod-1" }, "mine"), "mine")
      assert.isUndefined(yield* read({}))
    }))
})
