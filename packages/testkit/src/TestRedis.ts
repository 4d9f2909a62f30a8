/**
 * A fake Redis server with one client, in one layer: what most tests need.
 *
 * @since 0.1.0
 */
import type { Subscriber } from "@effect-simba/core/Subscriber"
import * as Layer from "effect/Layer"
import type { Redis } from "effect/persistence/Redis"
import * as FakeRedis from "./FakeRedis.ts"

/**
 * @category models
 * @since 0.1.0
 */
export interface Options extends FakeRedis.Options, FakeRedis.ClientOptions {}

/**
 * A server and a client with options.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerWith = (options?: Options): Layer.Layer<FakeRedis.FakeRedis | Redis | Subscriber> =>
  FakeRedis.layerClient(options).pipe(Layer.provideMerge(FakeRedis.layer(options)))

/**
 * A server and a client. It goes wherever a layer for Redis goes, and its time is the `Clock` of the test.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<FakeRedis.FakeRedis | Redis | Subscriber> = layerWith()
