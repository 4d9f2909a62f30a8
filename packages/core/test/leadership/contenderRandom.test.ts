import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { simulate } from "../support/contenderModel.ts"

describe("contenders that are started, stopped, asked to step down and closed at random, from inside and outside their work", () => {
  for (const outages of [false, true]) {
    it.effect(
      `never hang, lead while stopped, or work at the same time (outages: ${outages})`,
      () =>
        Effect.gen(function*() {
          for (let seed = 0; seed < 60; seed++) {
            const scope = yield* Scope.make()
            assert.deepStrictEqual(yield* Scope.provide(simulate(`${seed}`, outages), scope), [], `seed ${seed}`)
            // Close the scope here, not in a finalizer: if a contender hung, the finalizer would hang too
            yield* Scope.close(scope, Exit.void)
          }
        })
    )
  }
})
