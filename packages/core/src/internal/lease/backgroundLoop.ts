/**
 * Helpers for a layer's background loops: sleeping, and restarting after a crash. Used by `timerQueue`, `leaseRenewer`
 * and the loops for data streams.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Latch from "effect/Latch"
import * as log from "../log.ts"
import { instant } from "./instant.ts"

/** Runs the loop forever. If it crashes, logs the crash and restarts it. */
export const supervise = <R>(what: string, loop: Effect.Effect<unknown, never, R>): Effect.Effect<never, never, R> =>
  Effect.forever(Effect.catchCause(
    loop,
    (cause) => Effect.andThen(log.error(`${what} crashed; restarting`, cause), Effect.sleep("100 millis"))
  ))

/** Sleeps until `at`, in monotonic milliseconds, or until the latch opens. Close the latch before computing `at`. */
export const sleepUntil = (at: number, changed: Latch.Latch) =>
  Effect.withFiber<void>((fiber) => {
    const millis = at - instant(fiber.getRef(Clock.Clock)).monotonic
    if (millis <= 0) return Effect.void
    if (millis === Infinity) return changed.await
    // Cheaper than a race: the loops of a layer sleep several times a second
    const sleep = Effect.runForkWith(fiber.context)(Effect.sleep(Duration.millis(Math.ceil(millis * 1e6) / 1e6)))
    sleep.addObserver(() => changed.openUnsafe())
    // If the sleep crashed, the loop must crash too, because it would otherwise spin
    const woken = Effect.flatMap(changed.await, () => sleep.pollUnsafe() ?? Effect.void)
    return Effect.ensuring(woken, Effect.sync(() => sleep.interruptUnsafe()))
  })
