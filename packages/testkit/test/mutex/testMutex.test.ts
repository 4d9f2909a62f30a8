/** Shows how users test their own services with `TestMutex`. */
import type { SimbaError } from "@effect-simba/core"
import { Mutex } from "@effect-simba/core"
import type { LeaseLost } from "@effect-simba/core/SimbaError"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer, Ref } from "effect"
import { TestClock } from "effect/testing"

class Reports extends Context.Service<Reports, {
  readonly write: Effect.Effect<boolean, SimbaError.RequestError | LeaseLost>
  readonly written: Effect.Effect<number>
}>()("test/Reports") {
  static readonly layer = Layer.effect(
    Reports,
    Effect.gen(function*() {
      const mutex = yield* Mutex.Mutex
      const count = yield* Ref.make(0)
      return {
        write: Effect.sleep("10 minutes").pipe(
          Effect.andThen(Ref.update(count, (n) => n + 1)),
          mutex.withLockIfAvailable("reports"),
          Effect.map((result) => result._tag === "Some")
        ),
        written: Ref.get(count)
      }
    })
  )
}

it.effect("only one report is written at a time", () =>
  Effect.gen(function*() {
    const reports = yield* Reports
    const first = yield* Effect.forkChild(reports.write)
    yield* TestClock.adjust("5 minutes")
    assert.isFalse(yield* reports.write)
    yield* TestClock.adjust("5 minutes")
    assert.isDefined(first.pollUnsafe())
    assert.strictEqual(yield* reports.written, 1)
  }).pipe(Effect.provide(Reports.layer.pipe(Layer.provide(Mutex.layerMemory())))))
