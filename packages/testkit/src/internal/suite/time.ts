/** Time in a contract suite: real time for a store with real I/O, otherwise `TestClock`. */
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"

export interface SuiteTime {
  /** The result of an effect that completes within this much real time. */
  readonly within: <A>(effect: Effect.Effect<A>, millis: number) => Effect.Effect<Option.Option<A>>
  /** The next element of a subscription; fails the test if none comes. */
  readonly next: <A>(subscription: { readonly next: Effect.Effect<A> }) => Effect.Effect<A>
  /** Fails the test if an element comes. */
  readonly nothing: (subscription: { readonly next: Effect.Effect<unknown> }) => Effect.Effect<void>
  /** Lets more than this time pass. */
  readonly pass: (duration: Duration.Duration) => Effect.Effect<void>
}

export const make = ({ live }: { readonly live: boolean }): SuiteTime => {
  const real = <A, E, R>(effect: Effect.Effect<A, E, R>) => live ? effect : TestClock.withLive(effect)
  const within: SuiteTime["within"] = (effect, millis) =>
    Effect.raceFirst(Effect.asSome(effect), Effect.as(real(Effect.sleep(Duration.millis(millis))), Option.none()))
  return {
    within,
    next: ({ next }) =>
      Effect.map(
        within(next, 20_000),
        (value) => Option.getOrElse(value, () => assert.fail("expected an element"))
      ),
    nothing: ({ next }) =>
      Effect.map(within(next, 100), (value) => {
        assert.isTrue(Option.isNone(value), `expected nothing to come: ${JSON.stringify(value)}`)
      }),
    pass: (duration) => {
      // Servers measure time more finely than milliseconds, so wait a little longer
      const more = Duration.millis(Duration.toMillis(duration) + 25)
      return live ? Effect.sleep(more) : TestClock.adjust(more)
    }
  }
}
