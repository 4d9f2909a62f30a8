/**
 * Simulations of programs that use mutexes on Redis, by `Simulation` of `@effect-simba/testkit`.
 *
 * For tests: import it by its path, with `@effect-simba/testkit` installed. The package's index leaves it out.
 *
 * **Example** (Your own program under all faults)
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
 * it.effect("holds", () =>
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
 * Options of a simulation: those of `Simulation.run`, with a program that uses `Mutex`.
 *
 * @see {@link run}
 * @category options
 * @since 0.1.0
 */
export interface Options<E> extends Omit<Simulation.Options<E>, "program" | "lock" | "checkers"> {
  /** The program of each process. It need not call `note`, and may also use `Redis`. */
  readonly program: (
    client: Simulation.Client
  ) => Effect.Effect<void, E, Mutex.Mutex | Redis | Subscriber | Scope.Scope>
  /** The names of all mutexes that the program uses. */
  readonly mutexes: ReadonlyArray<string>
  /**
   * Options of the mutexes of each process. A `ttl` or `transition` of a single lease should not exceed
   * them.
   */
  readonly config?: Mutex.Options | undefined
  /** Default: `Checker.all`, with the bounds that follow from `config`. */
  readonly checkers?: ReadonlyArray<Checker.Checker> | undefined
}

/**
 * Returns the options of `Simulation.run`, for `Simulation.shrink` and for models that differ in some parts.
 *
 * **Details**
 *
 * The program gets a `Mutex` with the production scripts and layers, which records what the program does. The lock's
 * `keep` accepts the keys of mutexes. Programs that leave other keys need their own `keep`.
 *
 * **Example** (A key of the program that may stay)
 *
 * ```ts
 * import * as RedisSimulation from "@effect-simba/redis/RedisSimulation"
 * import { Simulation } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 *
 * const simulate = (options: RedisSimulation.Options<never>) =>
 *   Effect.flatMap(RedisSimulation.make(options), (made) =>
 *     Simulation.run({
 *       ...made,
 *       lock: { ...made.lock, keep: (key, expires) => key === "total" || made.lock.keep!(key, expires) }
 *     }))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <E>(
  options: Options<E>
): Effect.Effect<Simulation.Options<E | BackendError | InvalidConfig>, InvalidConfig> => {
  const { checkers, config, mutexes, program, ...rest } = options
  return Effect.map(lockModel.bounds(config), (bounds) => ({
    ...rest,
    lock: lockModel.make(mutexes),
    checkers: checkers ?? Checker.all(bounds),
    program: (client) =>
      Effect.provide(
        program(client),
        TestMutex.layerNoted(client).pipe(Layer.provide(Mutex.layer(config)), Layer.provide(layerStore))
      )
  }))
}

/**
 * Runs a program that uses mutexes in simulated processes, and checks what mutexes guarantee.
 *
 * **Details**
 *
 * The seed decides everything: the same options and the same seed give the same result.
 *
 * @category running
 * @since 0.1.0
 */
export const run = <E>(options: Options<E>): Effect.Effect<Simulation.Result, InvalidConfig> =>
  Effect.flatMap(make(options), Simulation.run)
