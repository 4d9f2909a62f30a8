/**
 * The lease objects that users see: one for a single mutex, one for the mutexes from `acquireAll`. `service` creates
 * them. `lease/leaseHandle` contains what they share with data-stream leases.
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
  readonly leases: ReadonlyArray<LeaseImpl>
  readonly tokens: ReadonlyMap<string, FencingToken>
  readonly protect: LeaseGroup["protect"]

  constructor(leases: ReadonlyArray<LeaseImpl>, protect: LeaseGroup["protect"]) {
    super()
    this.leases = leases
    this.tokens = new Map(leases.map((lease) => [lease.mutex, lease.token]))
    this.protect = protect
  }

  get isHeld() {
    return Effect.sync(() => this.ended === undefined)
  }

  get ensure() {
    return Effect.suspend(() => this.ended?.ensure ?? Effect.void)
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

  /**
   * The first lease that has ended. Reads all leases in one step: during a yield, one of them could end. Checks all of
   * them first, because ending one runs finalizers, which may end another.
   */
  private get ended(): LeaseImpl | undefined {
    for (const lease of this.leases) lease.isHeldAt()
    return this.leases.find((lease) => !lease.isHeldAt())
  }

  override toJSON() {
    return { leases: this.leases.map((lease) => lease.toJSON()) }
  }
}
