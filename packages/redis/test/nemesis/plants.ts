/** Planted defects that a nemesis run's checkers must find. `worker.ts` applies them. */
import { Mutex } from "@effect-simba/core"
import type { Body, Lease } from "@effect-simba/core/Lease"
import type { Simulation } from "@effect-simba/testkit"
import { Effect, Layer } from "effect"

/** A slow external system that forgets the largest token. Work that continues without its lease corrupts it. */
export const unfenced = (outside: Simulation.Client["outside"]): Simulation.Client["outside"] => (delay, act) =>
  outside(20 * delay, (real) => act({ ...real, state: new Map() }))

/** A mutex that ignores lost leases: work is uninterruptible, and `ensure` always succeeds. */
export const deaf: Layer.Layer<Mutex.Mutex, never, Mutex.Mutex> = Layer.effect(
  Mutex.Mutex,
  Effect.map(Mutex.Mutex, (mutex) => {
    const held = (lease: Lease): Lease => Object.create(lease, { ensure: { value: Effect.void } })
    const stubborn = <A, E, R>(body: Body<A, E, R>) => (lease: Lease) =>
      Effect.uninterruptible(Effect.isEffect(body) ? body : body(held(lease)))
    const withLock: Mutex.Mutex["Service"]["withLock"] = (name, options) => (body) =>
      mutex.withLock(name, options)(stubborn(body))
    const acquire: Mutex.Mutex["Service"]["acquire"] = (name, options) => Effect.map(mutex.acquire(name, options), held)
    return { ...mutex, acquire, withLock }
  })
)
