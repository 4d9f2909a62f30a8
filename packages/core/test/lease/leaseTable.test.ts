/** The order in which a lease table reports losses. */
import { FencingToken, MutexName } from "@effect-simba/core"
import * as MutexConfig from "@effect-simba/core/MutexConfig"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Logger } from "effect"
import { HeldLease } from "../../src/internal/mutex/heldLease.ts"
import * as heldLeases from "../../src/internal/mutex/heldLeases.ts"
import { settingsOf } from "../../src/internal/mutex/leaseOptions.ts"
import { stalling } from "../support/stalling.ts"

it.effect("checking a lost lease reports the loss immediately, even if many other losses are waiting to be reported", () =>
  Effect.gen(function*() {
    const { clock, stall } = yield* stalling
    yield* Effect.gen(function*() {
      const config = yield* MutexConfig.make()
      const leases = yield* heldLeases.make(yield* MutexStore.MutexStore, config)
      const reported: Array<HeldLease> = []
      leases.follow({ lost: (lease) => void reported.push(lease), released: () => undefined })
      const all = Array.from({ length: 200 }, (_, i) => {
        const id = `${i}-aaaaaaaaaaaa:us` as MutexName.LeaseId
        const name = MutexName.MutexName.make(`m${i}`)
        return new HeldLease(name, id, FencingToken.FencingToken.make(1), settingsOf(config), leases.now())
      })
      for (const lease of all) leases.add(lease)
      stall.millis = 20_000
      leases.check(all[0]!, leases.now())
      assert.isTrue(all.every((lease) => !lease.isOpen()))
      const waiting = all.find((lease) => !reported.includes(lease))!
      leases.check(waiting, leases.now())
      assert.include(reported, waiting)
      assert.isBelow(reported.length, all.length)
    }).pipe(Effect.provideService(Clock.Clock, clock))
  }).pipe(Effect.scoped, Effect.provide([MutexStore.layerMemory, Logger.layer([])])))
