import { Contender, Leadership, Mutex } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Logger, Ref } from "effect"
import { TestClock } from "effect/testing"
import { start } from "../support/setup.ts"

class Jobs extends Contender.Service<Jobs>()("test/Jobs") {}

it.effect("whileLeader accepts a contender or its class, and passes the lease to the work", () =>
  Effect.gen(function*() {
    const observed = yield* Ref.make(0)
    const jobs = yield* Jobs
    yield* start(Leadership.whileLeader(Jobs, (lease) => Ref.update(observed, (n) => n + lease.token)))
    yield* start(Leadership.whileLeader(jobs, Ref.update(observed, (n) => n + 1)))
    yield* start(Ref.update(observed, (n) => n + 10).pipe(Leadership.whileLeader(Jobs)))
    yield* start(Leadership.whileLeader(jobs)((lease) => Ref.update(observed, (n) => n + 100 * lease.token)))
    yield* TestClock.adjust(1)
    const lease = yield* jobs.lease
    assert.strictEqual(yield* Ref.get(observed), lease._tag === "Some" ? 101 * lease.value.token + 11 : -1)
  }).pipe(Effect.provide(
    Jobs.layer("jobs").pipe(
      Layer.provide(Mutex.layer()),
      Layer.provide(MutexStore.layerMemory),
      Layer.provideMerge(Logger.layer([]))
    )
  )))
