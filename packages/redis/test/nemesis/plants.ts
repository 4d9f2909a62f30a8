/** Programs with a planted mistake, which the checkers must find. */
import { Mutex } from "@effect-simba/core"
import type { Body, Lease } from "@effect-simba/core/Lease"
import type { Simulation } from "@effect-simba/testkit"
import { Effect, Layer } from "effect"

/**
 * The external system forgets the tokens that it has seen, and is slow. For work that continues when the lease is lost.
 */
export const unfenced = (outside: Simulation.Client["outside"]): Simulation.Client["outside"] => (delay, act) =>
  outside(20 * delay, (real) => act({ ...real, state: new Map() }))

/** Work that continues when the lease is lost, under a lease that is always held. */
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
