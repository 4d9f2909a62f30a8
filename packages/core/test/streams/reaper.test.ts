/** Tests that one member in the fleet removes old data at long intervals, without delaying other work. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as fleet from "../support/streamFleet.ts"

const minute = 60_000

const tidies = (consumer: fleet.Consumer) => consumer.link.calls.filter((call) => call === "reap").length

const removals = (lines: ReadonlyArray<string>) => lines.filter((line) => line.includes("Removed"))

describe("keeping checkpoints", () => {
  it.effect("an owner extends the retention of its checkpoints once a day, and retries after an outage", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { heartbeatInterval: "1 hour", leaseDuration: "3 hours", sweepInterval: "1 hour" })
      yield* a.client.announceAll([{ stream: "s1" }, { stream: "s2" }])
      for (const row of backend.rows) row.owner = "redis-consumer-gone"
      yield* TestClock.adjust("23 hours")
      yield* a.acquire("s1")
      yield* TestClock.adjust("58 minutes")
      yield* a.acquire("s2")
      a.link.modes.keepCheckpoints = "fail"
      yield* TestClock.adjust("4 minutes")
      assert.include(a.link.calls, "keepCheckpoints")
      assert.deepStrictEqual(backend.kept, [])
      a.link.modes.keepCheckpoints = "work"
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(backend.kept, ["s1", "s2"])
    })))
})

describe("the reaper", () => {
  it.effect("the reaper runs at intervals between half of reapAfter and reapAfter, and removes consumers that were silent for reapAfter", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { reapAfter: "1 minute" })
      yield* a.start(a.client.run(Effect.never))
      const began = backend.now()
      yield* TestClock.adjust("20 minutes")
      const times = [began, ...backend.tidied.map(({ at }) => at)]
      assert.isAbove(times.length, 20)
      for (let i = 1; i < times.length; i++) {
        const pause = times[i]! - times[i - 1]!
        assert.isAtLeast(pause, minute / 2)
        assert.isAtMost(pause, minute)
      }
      const pauses = new Set(times.slice(1).map((at, i) => Math.round(at - times[i]!)))
      assert.isAbove(pauses.size, 1, "the intervals vary")
      assert.isTrue(backend.tidied.every(({ idle }) => idle === minute))
    })))

  it.effect("one member reaps for the whole fleet", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const options = { rebalance: true, reapAfter: "1 minute" } as const
      const c = yield* open("c", options)
      const b = yield* open("b", options)
      for (const one of [c, b]) yield* one.start(one.client.run(Effect.never))
      yield* TestClock.adjust("10 minutes")
      assert.isAtLeast(tidies(b), 10)
      assert.strictEqual(tidies(c), 0)
      yield* b.close
      const last = tidies(b)
      yield* TestClock.adjust("10 minutes")
      assert.isAtLeast(tidies(c), 9)
      assert.strictEqual(tidies(b), last)
    })))

  it.effect("each client reaps if rebalancing is disabled", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { reapAfter: "1 minute" })
      const b = yield* open("b", { reapAfter: "1 minute" })
      for (const one of [a, b]) yield* one.start(one.client.run(Effect.never))
      yield* TestClock.adjust("10 minutes")
      for (const one of [a, b]) assert.isAtLeast(tidies(one), 10)
    })))

  it.effect("the log says how much was removed", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, lines, open } = yield* fleet.make
      const a = yield* open("a", { reapAfter: "1 minute" })
      yield* a.start(a.client.run(Effect.never))
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual(removals(lines), [])
      backend.rubbish = { consumers: 1, entries: 0 }
      yield* TestClock.adjust("5 minutes")
      backend.rubbish = { consumers: 0, entries: 3 }
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual(removals(lines), [
        "Info: Removed 1 silent consumer(s) and 0 finished announcement(s)",
        "Info: Removed 0 silent consumer(s) and 3 finished announcement(s)"
      ])
    })))

  it.effect.each(["fail", "refuse"] as const)(
    "reaping is retried later if the backend replies with: %s",
    (mode) =>
      fleet.test(Effect.gen(function*() {
        const { backend, lines, open } = yield* fleet.make
        const a = yield* open("a", { reapAfter: "1 minute" })
        yield* a.start(a.client.run(Effect.never))
        a.link.modes.reap = mode
        yield* a.client.announceAll([{ stream: "s1" }])
        yield* TestClock.adjust("10 minutes")
        const warnings = lines.filter((line) => line.startsWith("Warn: Cannot remove old data; retrying later: "))
        assert.strictEqual(warnings.length, tidies(a))
        assert.isAtLeast(tidies(a), 10)
        assert.isAtMost(tidies(a), 20, "retries are not more frequent than other runs")
        assert.strictEqual((yield* a.client.owned).length, 1, "data streams are still taken")
        delete a.link.modes.reap
        yield* TestClock.adjust("1 minute")
        assert.isAtLeast(backend.tidied.length, 1)
      }))
  )

  it.effect("reaping may take longer than other calls, because there may be much to remove", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, lines, open } = yield* fleet.make
      const a = yield* open("a", { reapAfter: "1 minute" })
      yield* a.start(a.client.run(Effect.never))
      a.link.delays.reap = 50_000
      backend.rubbish = { consumers: 5000, entries: 0 }
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(removals(lines), ["Info: Removed 5000 silent consumer(s) and 0 finished announcement(s)"])
    })))

  it.effect("the reaper does not wait forever if the backend does not reply", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { reapAfter: "1 minute" })
      a.link.modes.reap = "hang"
      yield* a.start(a.client.run(Effect.never))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(tidies(a), 1)
      delete a.link.modes.reap
      // Enough time for the hanging call to time out, and for another pause
      yield* TestClock.adjust("2 minutes")
      assert.isAtLeast(backend.tidied.length, 1)
    })))

  it.effect("the reaper ends with the consumer", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", { reapAfter: "1 minute" })
      yield* a.start(a.client.run(Effect.never))
      yield* TestClock.adjust("1 minute")
      yield* a.close
      const { length } = backend.tidied
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(backend.tidied.length, length)
    })))
})
