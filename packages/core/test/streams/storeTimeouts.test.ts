/** Tests how long a consumer's background loops wait for replies. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as fleet from "../support/streamFleet.ts"

it.effect("a consumer gives up reading announcements after the maximum blocking time plus two command timeouts", () =>
  fleet.test(Effect.gen(function*() {
    const { open } = yield* fleet.make
    const a = yield* open("a", { commandTimeout: "500 millis" })
    a.link.modes.read = "hang"
    yield* a.start(a.client.run(Effect.never))
    const reads = () => a.link.calls.filter((call) => call === "read").length
    // The read may block for one second
    yield* TestClock.adjust("1999 millis")
    assert.strictEqual(reads(), 1)
    yield* TestClock.adjust("400 millis")
    assert.isAtLeast(reads(), 2)
  })))
