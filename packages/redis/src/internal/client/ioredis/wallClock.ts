/** Runs connections in real time, because a real server does not follow a test's clock. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

const clock = Clock.Clock.defaultValue()

export const monotonicMillis = (): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

export const onWallClock = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, Clock.Clock, clock)
