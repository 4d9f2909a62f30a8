/**
 * The contract of `StreamStore` as a test suite. `StreamClient` works with any store that passes it.
 *
 * @since 0.1.0
 */
import type { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import type { RawMessage } from "@effect-simba/core/streams/StreamState"
import type { StreamStore } from "@effect-simba/core/streams/StreamStore"
import { layer as layerTests } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { announcing } from "./internal/suite/announcements.ts"
import { type Append, type Cases, makeBench, type Trim } from "./internal/suite/bench.ts"
import { committing } from "./internal/suite/checkpoints.ts"
import { reading } from "./internal/suite/entries.ts"
import { Command, runHistory } from "./internal/suite/history.ts"
import { lagging } from "./internal/suite/lags.ts"
import { ending } from "./internal/suite/leaseEnds.ts"
import { taking } from "./internal/suite/leases.ts"
import { sharing } from "./internal/suite/members.ts"
import { messaging } from "./internal/suite/messages.ts"
import { pausing } from "./internal/suite/pauses.ts"
import { tidying } from "./internal/suite/reaper.ts"
import { renewing } from "./internal/suite/renewals.ts"
import { seeking } from "./internal/suite/seeks.ts"
import { listening } from "./internal/suite/signals.ts"

type Options<R = never> = {
  /**
   * Whether the store does real I/O. If it does, the suite sleeps in real time, and its tests run concurrently.
   * Otherwise the store must use `Clock`, which the suite advances with `TestClock`.
   */
  readonly live: boolean
  /** Whether the backend publishes lease expiries. Default: false. */
  readonly publishesExpiries?: boolean | undefined
  /** The number of random histories to compare with the model. Default: 100, or 25 if `live`. */
  readonly runs?: number | undefined
  /** The seed for the random histories. */
  readonly seed?: number | string | undefined
  /** Adds a message to a data stream, as a producer does. Without it, the suite does not test messages. */
  readonly append?:
    | ((stream: StreamName, fields: RawMessage["fields"]) => Effect.Effect<EntryId, unknown, R>)
    | undefined
  /** Removes all messages before the given one. Without it, the suite does not test deleted messages. */
  readonly trim?: ((stream: StreamName, before: EntryId) => Effect.Effect<unknown, unknown, R>) | undefined
}

/**
 * Registers tests that check the store provided by `layer` against the contract of `StreamStore`.
 *
 * **Details**
 *
 * Every run uses new names for services and data streams, so runs may share a backend. All names in one service have
 * the same hash tag.
 *
 * **Example** (A custom store)
 *
 * ```ts
 * import type * as StreamStore from "@effect-simba/core/streams/StreamStore"
 * import * as StreamStoreSuite from "@effect-simba/testkit/streams/StreamStoreSuite"
 * import type { Layer } from "effect"
 *
 * const check = (store: Layer.Layer<StreamStore.StreamStore>) =>
 *   StreamStoreSuite.suite("mine", store, { live: true })
 * ```
 *
 * @category testing
 * @since 0.1.0
 */
export const suite = <E, R = never>(
  name: string,
  layer: Layer.Layer<StreamStore | R, E>,
  options: Options<R>
): void =>
  layerTests(layer, {
    excludeTestServices: options.live,
    concurrent: options.live,
    timeout: "30 seconds"
  })(`StreamStore: ${name}`, (it) => {
    const cases: Cases = {
      it,
      // `layer` provides the services required by `append` and `trim`
      append: options.append as Append | undefined,
      trim: options.trim as Trim | undefined,
      publishesExpiries: options.publishesExpiries === true,
      bench: (label, lease) => makeBench(options, label, lease)
    }
    announcing(cases)
    reading(cases)
    taking(cases)
    renewing(cases)
    ending(cases)
    committing(cases)
    seeking(cases)
    pausing(cases)
    lagging(cases)
    messaging(cases)
    sharing(cases)
    tidying(cases)
    listening(cases)

    it.effect.prop(
      "random histories agree with the model: one owner, growing tokens, nothing forgotten",
      [Arbitrary.array(Arbitrary.schema(Command), { minLength: 1, maxLength: 40 })],
      ([commands]) =>
        Effect.scoped(
          Effect.flatMap(cases.bench("history"), (bench) => runHistory(bench, commands, { live: options.live }))
        ),
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
