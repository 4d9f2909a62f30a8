/**
 * Simulates programs that use mutexes on Redis. Based on `Simulation` from `@effect-simba/testkit`.
 *
 * For tests only. Install `@effect-simba/testkit`, and import this module from its own path, because the package's
 * index does not export it.
 *
 * **Example** (Exposing your own program to all faults)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import * as RedisSimulation from "@effect-simba/redis/RedisSimulation"
 * import { Simulation } from "@effect-simba/testkit"
 * import { assert, it } from "@effect/vitest"
 * import { Effect } from "effect"
 *
 * const program = Effect.sleep("100 millis").pipe(
 *   Mutex.withLock("report", { timeout: "5 seconds" }),
 *   Effect.ignore,
 *   Effect.delay("50 millis"),
 *   Effect.forever
 * )
 *
 * it.effect("the program keeps all rules", () =>
 *   Effect.gen(function*() {
 *     const result = yield* RedisSimulation.run({
 *       seed: 1,
 *       program: () => program,
 *       mutexes: ["report"],
 *       config: { ttl: "2 seconds", transition: "3 seconds" },
 *       faults: Simulation.allFaults
 *     })
 *     assert.deepStrictEqual(result.violations, [], Simulation.report(result))
 *   }))
 * ```
 *
 * @since 0.1.0
 */
import * as Mutex from "@effect-simba/core/Mutex"
import type { BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import type { Subscriber } from "@effect-simba/core/Subscriber"
import * as Checker from "@effect-simba/testkit/Checker"
import * as Simulation from "@effect-simba/testkit/Simulation"
import * as TestMutex from "@effect-simba/testkit/TestMutex"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Redis } from "./internal/client/effectRedis.ts"
import * as lockModel from "./internal/mutex/lockModel.ts"
import { layerStore } from "./RedisMutex.ts"

/**
 * Options for a simulation. They are like those for `Simulation.run`, but the program uses `Mutex`.
 *
 * @see {@link run}
 * @category options
 * @since 0.1.0
 */
export interface Options<E> extends Omit<Simulation.Options<E>, "program" | "lock" | "checkers"> {
  /** The program that each process runs. It may use `Redis` too, and does not have to call `note`. */
  readonly program: (
    client: Simulation.Client
  ) => Effect.Effect<void, E, Mutex.Mutex | Redis | Subscriber | Scope.Scope>
  /** The names of all mutexes used by the program. */
  readonly mutexes: ReadonlyArray<string>
  /** Options for the mutexes in each process. No individual lease should have a longer `ttl` or `transition`. */
  readonly config?: Mutex.Options | undefined
  /** Default: `Checker.all`, with bounds derived from `config`. */
  readonly checkers?: ReadonlyArray<Checker.Checker> | undefined
  /**
   * Returns true for other keys that the program may leave behind. Mutex keys and `RedisFence` tokens are always
   * accepted.
   */
  readonly keep?: ((key: string, expires: boolean) => boolean) | undefined
}

/**
 * Returns options for `Simulation.run` and `Simulation.shrink`. Use it if you need to change some of them.
 *
 * **Details**
 *
 * The program receives a `Mutex` that uses the production scripts and layers, and that records what the program does.
 *
 * **Example** (Adding a checker to those for mutexes)
 *
 * ```ts
 * import * as RedisSimulation from "@effect-simba/redis/RedisSimulation"
 * import { type Checker, Simulation } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 *
 * const simulate = (options: RedisSimulation.Options<never>, noOverdraft: Checker.Checker) =>
 *   Effect.flatMap(RedisSimulation.make(options), (made) =>
 *     Simulation.run({ ...made, checkers: [...made.checkers, noOverdraft] }))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <E>(
  options: Options<E>
): Effect.Effect<Simulation.Options<E | BackendError | InvalidConfig>, InvalidConfig> => {
  const { checkers, config, keep, mutexes, program, ...rest } = options
  const lock = lockModel.make(mutexes)
  return Effect.map(lockModel.bounds(config), (bounds) => ({
    ...rest,
    lock: { ...lock, keep: (key, expires) => lock.keep(key, expires) || keep?.(key, expires) === true },
    checkers: checkers ?? Checker.all(bounds),
    program: (client) =>
      Effect.provide(
        program(client),
        TestMutex.layerNoted(client).pipe(Layer.provide(Mutex.layer(config)), Layer.provide(layerStore))
      )
  }))
}

/**
 * Runs a program in simulated processes, and checks that its mutexes keep their guarantees.
 *
 * **Details**
 *
 * The run is deterministic: the same options and seed produce the same result.
 *
 * **Example** (A program that stores its own data)
 *
 * ```ts
 * import * as RedisSimulation from "@effect-simba/redis/RedisSimulation"
 * import { Simulation } from "@effect-simba/testkit"
 *
 * const simulate = (program: RedisSimulation.Options<never>["program"]) =>
 *   RedisSimulation.run({
 *     seed: 1,
 *     program,
 *     mutexes: ["invoices"],
 *     keep: (key) => key.startsWith("invoice:"),
 *     faults: Simulation.allFaults
 *   })
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const run = <E>(options: Options<E>): Effect.Effect<Simulation.Result, InvalidConfig> =>
  Effect.flatMap(make(options), Simulation.run)
