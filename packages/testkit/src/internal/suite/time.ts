/** How time passes in a contract suite: by itself where the store lives on real time, else by `TestClock`. */
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"

export interface SuiteTime {
  /** What comes within so much real time. */
  readonly within: <A>(effect: Effect.Effect<A>, millis: number) => Effect.Effect<Option.Option<A>>
  /** What a subscription brings next; fails the test if nothing comes. */
  readonly next: <A>(subscription: { readonly next: Effect.Effect<A> }) => Effect.Effect<A>
  /** Fails the test if a subscription brings something. */
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
        within(next, 5000),
        (value) => Option.getOrElse(value, () => assert.fail("expected something to come"))
      ),
    nothing: ({ next }) =>
      Effect.map(within(next, 100), (value) => {
        assert.isTrue(Option.isNone(value), `expected nothing to come: ${JSON.stringify(value)}`)
      }),
    pass: (duration) => {
      // Servers count finer than milliseconds, and no two commands share an instant: some time more than the time
      const more = Duration.millis(Duration.toMillis(duration) + 25)
      return live ? Effect.sleep(more) : TestClock.adjust(more)
    }
  }
}
