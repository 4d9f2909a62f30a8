/** A `Mutex` that notes what its callers do, for the checkers of a simulation. */
import type { WorkOptions } from "@effect-simba/core/Contender"
import type { Body, Lease } from "@effect-simba/core/Lease"
import type { Mutex } from "@effect-simba/core/Mutex"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Client } from "./setup.ts"

export const make = (mutex: Mutex["Service"], { note }: Client): Mutex["Service"] => {
  let waits = 0

  const granted = (lease: Lease) => note("granted", { resource: lease.mutex, id: lease.id, token: lease.token })

  /** Notes the start and end of a wait. `served` must be called with the acquired lease. */
  const waiting = <A, E, R>(
    resource: string,
    make: (served: (lease: Lease) => void) => Effect.Effect<A, E, R>
  ) =>
    Effect.suspend(() => {
      const wait = `wait ${++waits}`
      note("waiting", { resource, wait })
      const served = (lease: Lease) => {
        note("waited", { resource, wait, served: 1 })
        granted(lease)
      }
      return Effect.ensuring(make(served), Effect.sync(() => note("waited", { resource, wait })))
    })

  /** Notes the start and end of the work, even if it is interrupted as soon as it starts. */
  const noted = <A, E, R>(body: Body<A, E, R>, served: (lease: Lease) => void) => (lease: Lease) => {
    const fields = { resource: lease.mutex, id: lease.id }
    return Effect.acquireUseRelease(
      Effect.sync(() => {
        served(lease)
        note("begin", fields)
      }),
      () => Effect.isEffect(body) ? body : body(lease),
      () =>
        Effect.sync(() => {
          note("stopped", fields)
          note("end", fields)
        })
    )
  }

  return {
    ...mutex,
    acquire: (name, options) =>
      waiting(name, (served) =>
        Effect.map(mutex.acquire(name, options), (lease) => {
          served(lease)
          return lease
        })),
    acquireIfAvailable: (name, options) =>
      Effect.map(mutex.acquireIfAvailable(name, options), (lease) => {
        Option.map(lease, granted)
        return lease
      }),
    withLock: (name, options) => (body) =>
      waiting(name, (served) => mutex.withLock(name, options)(noted(body, served))),
    withLockIfAvailable: (name, options) => (body) => mutex.withLockIfAvailable(name, options)(noted(body, granted)),
    acquireAll: (names, options) =>
      Effect.map(mutex.acquireAll(names, options), (group) => {
        group.leases.forEach(granted)
        return group
      }),
    wrapContender: (contender) =>
      Object.create(contender, {
        whileLeader: {
          value: <A, E, R>(work: Body<A, E, R>, options?: WorkOptions) =>
            contender.whileLeader(noted(work, granted), options)
        }
      })
  }
}
