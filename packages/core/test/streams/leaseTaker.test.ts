/** Requests to take data streams that the backend refuses. */
import { SimbaError } from "@effect-simba/core"
import { StreamName } from "@effect-simba/core/streams"
import { assert, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import * as metricsRecorder from "../../src/internal/lease/metricsRecorder.ts"
import { check } from "../../src/streams/internal/config.ts"
import type { ClientContext } from "../../src/streams/internal/context.ts"
import * as leaseEnds from "../../src/streams/internal/leaseEnds.ts"
import * as leaseTakers from "../../src/streams/internal/leaseTaker.ts"
import { StreamTable } from "../../src/streams/internal/streamTable.ts"

it.effect("thousands of refusals have one line in ten seconds, with their count", () =>
  Effect.gen(function*() {
    const config = yield* check({ service: "svc", processName: "a", capacity: 10_000 })
    const metrics = metricsRecorder.make(yield* Effect.context<never>(), false, [])
    const table = new StreamTable(yield* Clock.Clock, config, metrics)
    const error = new SimbaError.BackendError({ operation: "take", isRetryable: false, cause: new Error("OOM") })
    const store = {
      take: (requests: ReadonlyArray<unknown>) => Effect.succeed(requests.map(() => ({ _tag: "Failed", error })))
    }
    const taker = leaseTakers.make(
      { config, metrics, table, store, session: "s00000000000" } as unknown as ClientContext
    )
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
    const candidates = Array.from({ length: 200 }, (_, i) => ({
      entry: StreamName.EntryId.make(`${i + 1}-0`),
      stream: StreamName.StreamName.make(`s${i}`),
      info: {},
      minIdle: Duration.zero
    }))
    for (let second = 0; second < 12; second++) {
      for (let call = 0; call < 2; call++) {
        yield* Effect.provide(taker.take(candidates, "sweep", () => {}), Logger.layer([logger]))
      }
      yield* TestClock.adjust("1 second")
    }
    assert.deepStrictEqual(lines.map((line) => line.replace(/later:.*/, "later")), [
      "Cannot take 200 data stream(s); retrying later",
      "Cannot take 4000 data stream(s); retrying later"
    ])
  }))

it.effect("a lease that came too late is released once: nobody waits for it, and nothing retries forever", () =>
  Effect.gen(function*() {
    const config = yield* check({ service: "svc", processName: "a" })
    const metrics = metricsRecorder.make(yield* Effect.context<never>(), false, [])
    const table = new StreamTable(yield* Clock.Clock, config, metrics)
    let releases = 0
    const store = {
      release: () =>
        Effect.suspend(() => {
          releases++
          return Effect.fail(
            new SimbaError.BackendError({ operation: "release", isRetryable: true, cause: new Error("no connection") })
          )
        })
    }
    const context = { config, metrics, table, store, session: "s00000000000" } as unknown as ClientContext
    const ends = leaseEnds.make(table, store as never, config)
    const taker = leaseTakers.make({ ...context, ends })
    const since = table.now()
    yield* TestClock.adjust("3 seconds")
    const acquisition = {
      stream: StreamName.StreamName.make("s1"),
      entry: StreamName.EntryId.make("1-0"),
      consumer: "simba-consumer-a",
      epoch: "s00000000000.1",
      token: 1,
      info: {},
      failures: 0,
      source: "sweep",
      since,
      arrival: undefined
    } as never
    const adding = yield* Effect.forkChild(taker.add(acquisition, () => assert.fail("it is over")), {
      startImmediately: true
    })
    yield* TestClock.adjust("1 minute")
    yield* Fiber.join(adding)
    assert.strictEqual(releases, 1)
  }))
