/**
 * The lease objects that users see: one for a single mutex, one for the mutexes of `acquireAll`. `service` creates
 * them. `lease/leaseHandle` has what they share with leases of data streams.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { FencingToken } from "../../FencingToken.ts"
import type { Lease, LeaseGroup } from "../../Lease.ts"
import { Handle } from "../handleBase.ts"
import { LeaseHandle } from "../lease/leaseHandle.ts"
import type { HeldLease } from "./heldLease.ts"

export class LeaseImpl extends LeaseHandle<HeldLease> implements Lease {
  get mutex() {
    return this.lease.mutex
  }

  get id() {
    return this.lease.id
  }

  override toJSON() {
    const { id, mutex, token } = this.lease
    return { mutex, id, token, timeLeft: this.shownTimeLeft }
  }
}

export class LeaseGroupImpl extends Handle implements LeaseGroup {
  readonly leases: ReadonlyArray<Lease>
  readonly tokens: ReadonlyMap<string, FencingToken>
  readonly protect: LeaseGroup["protect"]

  constructor(leases: ReadonlyArray<Lease>, protect: LeaseGroup["protect"]) {
    super()
    this.leases = leases
    this.tokens = new Map(leases.map((lease) => [lease.mutex, lease.token]))
    this.protect = protect
  }

  get isHeld() {
    return Effect.map(Effect.forEach(this.leases, (lease) => lease.isHeld), (held) => held.every(Boolean))
  }

  get ensure() {
    return Effect.forEach(this.leases, (lease) => lease.ensure, { discard: true })
  }

  get timeLeft() {
    return Effect.map(
      Effect.forEach(this.leases, (lease) => lease.timeLeft),
      (left) => left.reduce((a, b) => Duration.min(a, b))
    )
  }

  get lost() {
    return Effect.raceAllFirst(this.leases.map((lease) => lease.lost))
  }

  override toJSON() {
    return { leases: this.leases.map((lease) => lease.toJSON()) }
  }
}
