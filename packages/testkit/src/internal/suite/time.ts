/** How time passes in a contract suite: for a store with real I/O in real time, otherwise on `TestClock`. */
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"

export interface SuiteTime {
  /**
   * Runs an effect. Returns `None` if the effect does not complete in time. In real time, the limit is this duration.
   * On `TestClock` it is a number of event-loop turns, because a slow machine must not make a difference.
   */
  readonly within: <A>(effect: Effect.Effect<A>, millis: number) => Effect.Effect<Option.Option<A>>
  /** Returns the next element of a subscription. Fails the test if none arrives. */
  readonly next: <A>(subscription: { readonly next: Effect.Effect<A> }) => Effect.Effect<A>
  /** Fails the test if an element arrives. */
  readonly nothing: (subscription: { readonly next: Effect.Effect<unknown> }) => Effect.Effect<void>
  /** Lets slightly more than this duration pass. */
  readonly pass: (duration: Duration.Duration) => Effect.Effect<void>
}

/** The number of event-loop turns after which a store without real I/O has delivered everything. */
const turns = 1000

export const make = ({ live }: { readonly live: boolean }): SuiteTime => {
  const within: SuiteTime["within"] = (effect, millis) => {
    const limit = live ? Effect.sleep(Duration.millis(millis)) : Effect.repeat(Effect.yieldNow, { times: turns })
    return Effect.raceFirst(Effect.asSome(effect), Effect.as(limit, Option.none()))
  }
  return {
    within,
    next: ({ next }) =>
      Effect.map(
        within(next, 20_000),
        (value) => Option.getOrElse(value, () => assert.fail("expected an element"))
      ),
    nothing: ({ next }) =>
      Effect.map(within(next, 100), (value) => {
        assert.isTrue(Option.isNone(value), `expected no element: ${JSON.stringify(value)}`)
      }),
    pass: (duration) => {
      // Wait a little longer, because the server's clock has a finer resolution than milliseconds
      const more = Duration.millis(Duration.toMillis(duration) + 25)
      return live ? Effect.sleep(more) : TestClock.adjust(more)
    }
  }
}
