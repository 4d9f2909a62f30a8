/** Helpers for tests in which several simulated processes share a fake server. */
import * as Mutex from "@effect-simba/core/Mutex"
import { RedisMutex } from "@effect-simba/redis"
import { FakeRedis, TestMutex } from "@effect-simba/testkit"
import { Context, Effect, Layer, Logger } from "effect"

export const start = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

/** Opens a `Mutex` with its own client, as another process would, until the scope closes. */
export const openFake = (name: string) =>
  Effect.map(
    Layer.build(Layer.fresh(TestMutex.layerClient(RedisMutex.layerStore, { name }))),
    (context) => Context.get(context, Mutex.Mutex)
  )

export const FakeLive = Layer.merge(FakeRedis.layer(), Logger.layer([]))
