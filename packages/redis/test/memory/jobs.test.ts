/** A leader's jobs on the fake Redis, which limits a job's record more than the in-memory store does. */
import { Leadership } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { TestRedis } from "@effect-simba/testkit"
import { assert, it } from "@effect/vitest"
import { type Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"

const server = RedisMutex.layerRedis().pipe(Layer.provide(TestRedis.layer()))

it.effect("a job runs with the largest catchUp", () =>
  Effect.gen(function*() {
    const runs: Array<string> = []
    const job = (name: string, catchUp: Duration.Input) => ({
      name,
      schedule: Leadership.every("1 hour"),
      catchUp,
      run: Effect.sync(() => void runs.push(name))
    })
    yield* Layer.build(Leadership.layerJobs("m", [job("largest", "365000 days"), job("usual", "1 hour")]))
    yield* TestClock.adjust("1 minute")
    assert.sameMembers(runs, ["largest", "usual"])
  }).pipe(Effect.provide(server)))
