/** Tests how long the background loops of a consumer wait for a reply. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as fleet from "../support/streamFleet.ts"

it.effect("a read of announcements is given up after the time that it may block and two command timeouts", () =>
  fleet.test(Effect.gen(function*() {
    const { open } = yield* fleet.make
    const a = yield* open("a", { commandTimeout: "500 millis" })
    a.link.modes.read = "hang"
    yield* a.start(a.client.run(Effect.never))
    const reads = () => a.link.calls.filter((call) => call === "read").length
    // The read may block for a second
    yield* TestClock.adjust("1999 millis")
    assert.strictEqual(reads(), 1)
    yield* TestClock.adjust("400 millis")
    assert.isAtLeast(reads(), 2)
  })))
