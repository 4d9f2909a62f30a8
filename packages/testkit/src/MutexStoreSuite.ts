/**
 * The contract of `MutexStore` as a test suite. `Mutex` works with any store that passes it.
 *
 * @since 0.1.0
 */
import type { MutexStore } from "@effect-simba/core/MutexStore"
import { layer as layerTests } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { type Cases, long, makeBench } from "./internal/suite/bench.ts"
import { observing } from "./internal/suite/changes.ts"
import { counting } from "./internal/suite/deadWaiters.ts"
import { expiring } from "./internal/suite/expiry.ts"
import { forcing } from "./internal/suite/forcedRelease.ts"
import { granting } from "./internal/suite/grants.ts"
import { handingOver } from "./internal/suite/handOff.ts"
import { Command, runHistory } from "./internal/suite/history.ts"
import { operating } from "./internal/suite/jobOrders.ts"
import { scheduling } from "./internal/suite/jobs.ts"
import { naming } from "./internal/suite/names.ts"
import { guarding } from "./internal/suite/renewals.ts"
import { ordering } from "./internal/suite/requestOrder.ts"
import { requeueing } from "./internal/suite/requeue.ts"
import { uncounted } from "./internal/suite/silentWaiters.ts"
import { striding } from "./internal/suite/strides.ts"

type Options = {
  /**
   * Whether the store does real I/O. If it does, the suite sleeps in real time, and its tests run concurrently.
   * Otherwise the store must use `Clock`, which the suite advances with `TestClock`.
   */
  readonly live: boolean
  /**
   * Whether the store can count subscribers, and so can skip dead waiters. If it cannot, for example behind a proxy,
   * the suite requires that each dead waiter costs at most a confirm period. Default: true.
   */
  readonly countsSubscribers?: boolean | undefined
  /** The number of random histories to compare with the model. Default: 100, or 25 if `live`. */
  readonly runs?: number | undefined
  /** The seed for the random histories. A failure reports its seed. Set it here to repeat that run. */
  readonly seed?: number | string | undefined
}

/**
 * Registers tests that check the store provided by `layer` against the contract of `MutexStore`.
 *
 * **Details**
 *
 * Every run uses new mutex names, so runs may share a backend.
 *
 * **Example** (A custom store)
 *
 * ```ts
 * import * as MutexStore from "@effect-simba/core/MutexStore"
 * import * as MutexStoreSuite from "@effect-simba/testkit/MutexStoreSuite"
 *
 * MutexStoreSuite.suite("memory", MutexStore.layerMemory, { live: false })
 * ```
 *
 * @category testing
 * @since 0.1.0
 */
export const suite = <E>(name: string, layer: Layer.Layer<MutexStore, E>, options: Options): void =>
  layerTests(layer, {
    excludeTestServices: options.live,
    concurrent: options.live,
    timeout: "30 seconds"
  })(`MutexStore: ${name}`, (it) => {
    const countsSubscribers = options.countsSubscribers !== false
    const cases: Cases = {
      it,
      countsSubscribers,
      bench: (label, periods) => makeBench(options, label, periods)
    }
    granting(cases)
    handingOver(cases)
    guarding(cases)
    expiring(cases)
    naming(cases)
    observing(cases)
    forcing(cases)
    scheduling(cases)
    operating(cases)
    striding(cases)
    requeueing(cases)
    ordering(cases)
    if (countsSubscribers) counting(cases)
    else uncounted(cases)

    it.effect.prop(
      "random histories agree with the model: one owner, growing tokens, first come, first served",
      [Arbitrary.array(Arbitrary.schema(Command), { minLength: 1, maxLength: 40 })],
      ([commands]) =>
        Effect.scoped(Effect.gen(function*() {
          const periods = options.live ? long : { lease: Duration.millis(3000), confirm: Duration.millis(500) }
          yield* runHistory(yield* cases.bench("history", periods), commands, {
            live: options.live,
            countsSubscribers
          })
        })),
      {
        timeout: 120_000,
        arbitrary: {
          runs: options.runs ?? (options.live ? 25 : 100),
          size: 40,
          ...(options.seed === undefined ? {} : { seed: options.seed })
        }
      }
    )
  })
