import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Latch from "effect/Latch"
import { instant } from "./deadline.ts"

/** Sleeps until `at`, or until the latch opens. Close the latch before you compute `at`. */
export const sleepUntil = (at: number, changed: Latch.Latch) =>
  Clock.clockWith((clock) => {
    const millis = at - instant(clock).monotonic
    if (millis <= 0) return Effect.void
    return millis === Infinity
      ? changed.await
      : Effect.raceFirst(Effect.sleep(Duration.millis(Math.ceil(millis * 1e6) / 1e6)), changed.await)
  })
