/** Connections to real servers keep real time, also where a test moves the clock of the program. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

export const onWallClock = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, Clock.Clock, Clock.Clock.defaultValue())
