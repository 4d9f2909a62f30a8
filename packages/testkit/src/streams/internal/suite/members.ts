/**
 * Contract for stream stores: hand-overs of data streams, and the list of members. Registered by `StreamStoreSuite`.
 */
import type { EntryId } from "@effect-simba/core/streams/StreamName"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Cases, failed, only, short } from "./bench.ts"

export const sharing = ({ bench, it }: Cases): void => {
  it.effect("a handed-over stream belongs to its receiver, which confirms by renewing the lease", () =>
    Effect.gen(function*() {
      const { announce, lease, next, party, pass, pending, renew, service, stream } = yield* bench("hand over")
      const [a, b, c] = [party(), party(), party()]
      const entry = yield* announce("one", { kind: "moved" })
      yield* a.read()
      const ownership = yield* a.take(stream("one"), entry)
      yield* service.fail(ownership)
      const hints = yield* service.signals
      assert.strictEqual(yield* service.handOver(ownership, b, short), "HandedOver")
      const hint = yield* next(hints)
      assert.strictEqual(hint._tag, "HandedOver")
      if (hint._tag !== "HandedOver") return
      assert.strictEqual(hint.session, b.session)
      const { failures, info, ...handedOver } = only(yield* service.handedOver(b.consumer, b.session))
      assert.deepStrictEqual({ failures, info }, { failures: 1, info: { kind: "moved" } })
      assert.strictEqual(handedOver.consumer, b.consumer)
      assert.isTrue(handedOver.epoch.startsWith(`${b.session}.`))
      assert.isAbove(handedOver.token, ownership.token)
      assert.deepStrictEqual({ stream: handedOver.stream, entry: handedOver.entry }, { stream: stream("one"), entry })
      assert.deepStrictEqual(yield* service.handedOver(c.consumer, c.session), [])
      assert.deepStrictEqual(yield* service.handedOver(b.consumer, c.session), [])
      assert.strictEqual((yield* renew(ownership))._tag, "Lost")
      assert.strictEqual(only(yield* pending()).consumer, b.consumer)
      assert.strictEqual((yield* renew(handedOver, lease))._tag, "Renewed")
      yield* pass(short)
      assert.strictEqual((yield* renew(handedOver, lease))._tag, "Renewed")
      assert.strictEqual((yield* c.refused(stream("one"), entry))._tag, "Occupied")
      assert.strictEqual(yield* failed(service, handedOver), 2)
    }))

  it.effect("B55: anyone can claim a handed-over stream that is not confirmed", () =>
    Effect.gen(function*() {
      const { party, pass, service } = yield* bench("unconfirmed")
      const [a, b, c] = [party(), party(), party()]
      const ownership = yield* a.own("one")
      yield* service.handOver(ownership, b, short)
      yield* pass(short)
      assert.deepStrictEqual(yield* service.handedOver(b.consumer, b.session), [])
      const next = yield* c.take(ownership.stream, ownership.entry, { minIdle: short })
      assert.isAbove(next.token, ownership.token)
      // No handler has run since the hand-over
      assert.strictEqual(yield* failed(service, next), 1)
    }))

  it.effect("an expired lease on an adopted stream counts as a failure", () =>
    Effect.gen(function*() {
      const { party, pass, service } = yield* bench("adopted")
      const [a, b, c] = [party(), party(), party()]
      const ownership = yield* a.own("one")
      yield* service.handOver(ownership, b, short)
      assert.strictEqual((yield* service.handedOver(b.consumer, b.session)).length, 1)
      yield* pass(short)
      const next = yield* c.take(ownership.stream, ownership.entry, { minIdle: short })
      assert.strictEqual(yield* failed(service, next), 2)
    }))

  it.effect("a handed-over stream is adopted only once, so an idle handler still counts as idle", () =>
    Effect.gen(function*() {
      const { party, pass, service } = yield* bench("adopted once")
      const [a, b, c] = [party(), party(), party()]
      const ownership = yield* a.own("one")
      const isAdopted = (entry: EntryId) => entry === ownership.entry
      yield* service.handOver(ownership, b, short)
      const { info: _, ...handedOver } = only(yield* service.handedOver(b.consumer, b.session))
      const [renewed] = yield* service.renew([{ ...handedOver, isBusy: false }], short)
      assert.strictEqual(renewed!._tag, "Renewed")
      assert.deepStrictEqual(yield* service.handedOver(b.consumer, b.session, isAdopted), [])
      yield* pass(short)
      const next = yield* c.take(ownership.stream, ownership.entry, { minIdle: short })
      assert.strictEqual(yield* failed(service, next), 1)
    }))

  it.effect("hand-over epochs are never reused", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("epochs")
      const [a, b] = [party(), party()]
      const epochs = new Set<string>()
      for (let i = 0; i < 5; i++) {
        const ownership = yield* a.own(String(i))
        yield* service.handOver(ownership, b, Duration.minutes(1))
      }
      for (const { epoch } of yield* service.handedOver(b.consumer, b.session)) epochs.add(epoch)
      assert.strictEqual(epochs.size, 5)
    }))

  it.effect("a member is listed until it leaves or stops sending heartbeats", () =>
    Effect.gen(function*() {
      const { party, pass, service } = yield* bench("members")
      const [a, b] = [party(), party()]
      const member = (of: typeof a, owned: number) => ({
        consumer: of.consumer,
        session: of.session,
        capacity: 64,
        owned
      })
      const sorted = (members: ReadonlyArray<{ readonly session: string }>) =>
        [...members].sort((a, b) => a.session < b.session ? -1 : 1)
      assert.deepStrictEqual(yield* service.heartbeat(member(a, 3), short), [member(a, 3)])
      const both = yield* service.heartbeat(member(b, 0), Duration.minutes(1))
      assert.deepStrictEqual(sorted(both), sorted([member(a, 3), member(b, 0)]))
      assert.deepStrictEqual(sorted((yield* service.inspect).members), sorted(both))
      yield* pass(short)
      assert.deepStrictEqual((yield* service.inspect).members, [member(b, 0)])
      assert.deepStrictEqual(yield* service.heartbeat(member(b, 1), Duration.minutes(1)), [member(b, 1)])
      yield* service.heartbeat(member(a, 4), Duration.minutes(1))
      yield* service.leave(b)
      assert.deepStrictEqual((yield* service.inspect).members, [member(a, 4)])
    }))

  it.effect("two sessions with the same name are separate members", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("twins")
      const [a, b] = [party("twin"), party("twin")]
      const sendHeartbeat = (of: typeof a) =>
        service.heartbeat({ consumer: of.consumer, session: of.session, capacity: 1, owned: 0 }, Duration.minutes(1))
      yield* sendHeartbeat(a)
      assert.strictEqual((yield* sendHeartbeat(b)).length, 2)
      yield* service.leave(a)
      assert.strictEqual(only((yield* service.inspect).members).session, b.session)
    }))
}
