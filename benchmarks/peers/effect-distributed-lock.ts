/**
 * The contestant for effect-distributed-lock. The library runs on Effect 3, so this file must not use the suite's own
 * Effect.
 */
import { fromLocks } from "../lib/locks.ts"
import { connect, holding, load } from "./folder.ts"

/** An effect, layer or schedule from Effect 3, which is not type-checked. */
type Opaque = { readonly pipe: (...operations: ReadonlyArray<unknown>) => Opaque }

interface Semaphore {
  readonly withPermits: (permits: number) => (effect: Opaque) => Opaque
}
interface Library {
  readonly DistributedSemaphore: { readonly make: (key: string, config: Record<string, unknown>) => Opaque }
  readonly RedisBacking: { readonly layer: (client: unknown) => Opaque }
}
interface Effect3 {
  readonly Effect: {
    readonly promise: (evaluate: () => Promise<unknown>) => Opaque
    readonly flatMap: (effect: Opaque, f: (semaphore: Semaphore) => Opaque) => Opaque
  }
  readonly ManagedRuntime: {
    readonly make: (layer: Opaque) => {
      readonly runPromise: (effect: Opaque) => Promise<unknown>
      readonly dispose: () => Promise<void>
    }
  }
  readonly Schedule: { readonly spaced: (millis: number) => Opaque }
}

const name = "effect-distributed-lock"

export const contestant = fromLocks(async ({ leaseMillis, setting, url }) => {
  const { DistributedSemaphore, RedisBacking } = await load<Library>(name, name)
  const { Effect, ManagedRuntime, Schedule } = await load<Effect3>(name, "effect")
  const client = await connect(name, url)
  const runtime = ManagedRuntime.make(RedisBacking.layer(client))
  const config = { ttl: leaseMillis, ...(setting === "fast" ? { acquireRetryPolicy: Schedule.spaced(1) } : {}) }
  const acquire = (key: string) =>
    holding((body) =>
      runtime.runPromise(
        Effect.flatMap(
          DistributedSemaphore.make(key, config),
          (semaphore) => semaphore.withPermits(1)(Effect.promise(body))
        )
      )
    )
  return {
    acquire,
    close: async () => {
      await runtime.dispose()
      client.disconnect()
    }
  }
})
