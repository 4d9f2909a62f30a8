/**
 * The contract of a stream store, as tests: whatever passes them can carry `StreamClient`.
 *
 * @since 0.1.0
 */
import type { StreamStore } from "@effect-simba/core/StreamStore"
import { layer as layerTests } from "@effect/vitest"
import * as Duration from "effect/Duration"
import type * as Layer from "effect/Layer"
import { announcing } from "./internal/streamStoreSuite/announcing.ts"
import { type Cases, makeBench } from "./internal/streamStoreSuite/bench.ts"
import { committing } from "./internal/streamStoreSuite/committing.ts"
import { ending } from "./internal/streamStoreSuite/ending.ts"
import { listening } from "./internal/streamStoreSuite/listening.ts"
import { reading } from "./internal/streamStoreSuite/reading.ts"
import { renewing } from "./internal/streamStoreSuite/renewing.ts"
import { sharing } from "./internal/streamStoreSuite/sharing.ts"
import { taking } from "./internal/streamStoreSuite/taking.ts"
import { tidying } from "./internal/streamStoreSuite/tidying.ts"

/**
 * - `live`: time passes by itself, and the suite really sleeps (for a store behind real I/O). Otherwise the store lives
 *   on `Clock`, and the suite moves it with `TestClock`. Live tests run side by side.
 * - `publishesExpiries` (default false): whether the backend is set up to tell which leases expire.
 *
 * @see {@link suite}
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly live: boolean
  readonly publishesExpiries?: boolean | undefined
}

/**
 * Registers the contract of `StreamStore` as tests of whatever `layer` provides. The names of services and data streams
 * are new in every run, so the backend may be shared. All names of one service share a hash tag.
 *
 * **Example** (A store of one's own)
 *
 * ```ts
 * import type { StreamStore } from "@effect-simba/core"
 * import { StreamStoreSuite } from "@effect-simba/testkit"
 * import type { Layer } from "effect"
 *
 * const check = (store: Layer.Layer<StreamStore.StreamStore>) =>
 *   StreamStoreSuite.suite("mine", store, { live: true })
 * ```
 *
 * @category suites
 * @since 0.1.0
 */
export const suite = <E>(name: string, layer: Layer.Layer<StreamStore, E>, options: Options): void =>
  layerTests(layer, {
    excludeTestServices: options.live,
    concurrent: options.live,
    timeout: "30 seconds"
  })(`StreamStore: ${name}`, (it) => {
    const cases: Cases = {
      it,
      publishesExpiries: options.publishesExpiries === true,
      bench: (label, lease) => makeBench(options, label, lease),
      short: options.live ? Duration.millis(900) : Duration.seconds(2)
    }
    announcing(cases)
    reading(cases)
    taking(cases)
    renewing(cases)
    ending(cases)
    committing(cases)
    sharing(cases)
    tidying(cases)
    listening(cases)
  })
