import { assert, it } from "@effect/vitest"
import { Deferred, Effect, References } from "effect"
import { type JobHost, withNames } from "../../src/internal/leadership/jobHost.ts"

it.effect("two runners never share a job name, even if both fibers yield as they reserve it", () =>
  Effect.gen(function*() {
    const shared: Array<number> = []
    for (let before = 0; before < 40; before++) {
      const host: Pick<JobHost, "jobs"> = { jobs: new Map() }
      const end = yield* Deferred.make<void>()
      let running = 0
      const runner = Effect.provideService(
        Effect.andThen(
          Effect.forEach(Array.from({ length: before }), () => Effect.void),
          withNames(host, ["job"], () => Effect.andThen(Effect.sync(() => void running++), Deferred.await(end)))
        ),
        References.MaxOpsBeforeYield,
        40
      )
      yield* Effect.forkChild(runner)
      yield* Effect.forkChild(runner)
      for (let i = 0; i < 50; i++) yield* Effect.yieldNow
      if (running !== 1) shared.push(before)
      yield* Deferred.succeed(end, undefined)
    }
    assert.deepStrictEqual(shared, [])
  }))
