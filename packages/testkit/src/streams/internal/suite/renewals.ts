/**
 * Contract for stream stores: what renewing a data stream's lease may and may not change. Registered by
 * `StreamStoreSuite`.
 */
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Cases, only, short } from "./bench.ts"

export const renewing = ({ bench, it }: Cases): void => {
  it.effect("a renewed lease lasts longer and still excludes other consumers", () =>
    Effect.gen(function*() {
      const { party, pass, renew } = yield* bench("renew", short)
      const [a, b] = [party(), party()]
      const ownership = yield* a.own("one")
      for (let i = 0; i < 4; i++) {
        yield* pass(Duration.times(short, 0.4))
        assert.strictEqual((yield* renew(ownership))._tag, "Renewed")
        assert.strictEqual((yield* b.refused(ownership.stream, ownership.entry))._tag, "Occupied")
      }
    }))

  it.effect("G3: renewals keep an entry from becoming idle enough to be claimed", () =>
    Effect.gen(function*() {
      const { party, pass, pending, renew } = yield* bench("idle", short)
      const a = party()
      const ownership = yield* a.own("one")
      for (let i = 0; i < 4; i++) {
        yield* pass(Duration.times(short, 0.4))
        yield* renew(ownership)
      }
      const found = only(yield* pending())
      assert.isBelow(Duration.toMillis(found.idle), Duration.toMillis(short) * 0.4)
      assert.deepStrictEqual(yield* pending({ minIdle: short }), [])
    }))

  it.effect("G10: renewing an expired lease reports the loss and does not recreate the lease", () =>
    Effect.gen(function*() {
      const { lapse, party, renew } = yield* bench("vanished")
      const [a, b] = [party(), party()]
      const ownership = yield* a.own("one")
      yield* lapse(ownership)
      assert.deepStrictEqual(yield* renew(ownership), { _tag: "Lost", reason: "Vanished" })
      yield* b.take(ownership.stream, ownership.entry)
    }))

  it.effect("renewing a lease that was taken over reports the loss and leaves the new owner's lease alone", () =>
    Effect.gen(function*() {
      const { lapse, party, renew } = yield* bench("taken over")
      const [a, b] = [party(), party()]
      const ownership = yield* a.own("one")
      yield* lapse(ownership)
      const other = yield* b.take(ownership.stream, ownership.entry)
      assert.deepStrictEqual(yield* renew(ownership), { _tag: "Lost", reason: "TakenOver" })
      assert.strictEqual((yield* renew(other))._tag, "Renewed")
    }))

  it.effect("the lease on a finished or yielded stream cannot be renewed", () =>
    Effect.gen(function*() {
      const { party, pass, renew, service } = yield* bench("finished")
      const a = party()
      const done = yield* a.own("one")
      yield* service.done(done)
      const released = yield* a.own("two")
      yield* service.release(released)
      yield* pass(Duration.millis(5))
      assert.deepStrictEqual(yield* renew(done), { _tag: "Lost", reason: "Vanished" })
      assert.deepStrictEqual(yield* renew(released), { _tag: "Lost", reason: "Vanished" })
    }))

  it.effect("a lost lease does not affect other leases in the same call", () =>
    Effect.gen(function*() {
      const { lease, party, service } = yield* bench("neighbours")
      const a = party()
      const ownership = [yield* a.own("one"), yield* a.own("two"), yield* a.own("three")]
      yield* service.done(ownership[1]!)
      assert.deepStrictEqual((yield* service.renew(ownership, lease)).map(({ _tag }) => _tag), [
        "Renewed",
        "Lost",
        "Renewed"
      ])
    }))
}
