/** Contract for stream stores: which hints and expiries a client receives. Registered by `StreamStoreSuite`. */
import type { StreamName } from "@effect-simba/core/streams/StreamName"
import type { Expiry } from "@effect-simba/core/streams/StreamStore"
import type { Subscription } from "@effect-simba/core/Subscriber"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Bench, Cases } from "./bench.ts"

/** Returns the next expiry of this data stream, skipping other data streams. */
const expiryOf = (bench: Bench, expiries: Subscription<Expiry>, stream: StreamName): Effect.Effect<Expiry> =>
  Effect.filterOrElse(
    bench.next(expiries),
    (expiry) => expiry._tag === "Gap" || expiry.stream === stream,
    () => expiryOf(bench, expiries, stream)
  )

export const listening = ({ bench, it, publishesExpiries }: Cases): void => {
  it.effect("a client receives only hints for its own service", () =>
    Effect.gen(function*() {
      const [one, two] = [yield* bench("hints"), yield* bench("hints")]
      const hints = yield* two.service.signals
      yield* one.service.release(yield* one.party().own("one"))
      yield* two.nothing(hints)
    }))

  if (publishesExpiries) {
    it.effect("the expiry of a held or a yielded lease is published", () =>
      Effect.gen(function*() {
        const tested = yield* bench("expiries")
        const { lapse, party, pass, renew, service } = tested
        const a = party()
        const expiries = Option.getOrThrow(yield* service.expiries)
        const first = yield* a.own("one")
        const { entry, stream } = first
        yield* lapse(first)
        // Access the key. Otherwise, with many keys, its expiry could go unnoticed for a long time
        assert.strictEqual((yield* renew(first))._tag, "Lost")
        assert.deepStrictEqual(yield* expiryOf(tested, expiries, stream), { _tag: "Expired", stream, entry })
        const second = yield* a.take(stream, entry)
        yield* service.release(second)
        yield* pass(Duration.millis(200))
        assert.deepStrictEqual(yield* expiryOf(tested, expiries, stream), { _tag: "Expired", stream, entry })
      }))
  } else {
    it.effect("a backend that does not publish expiries returns None", () =>
      Effect.gen(function*() {
        const { service } = yield* bench("no expiries")
        assert.isTrue(Option.isNone(yield* service.expiries))
      }))
  }
}
