/** Short nemesis runs as tests. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { rmSync } from "node:fs"
import { type Options, run } from "./run.ts"

/** Asserts that a run has no violations, and enough holds, messages and faults to be meaningful. */
export const holds = (options: Options) =>
  Effect.gen(function*() {
    const { faults, folder, holds, messages, violations } = yield* run(options)
    assert.deepStrictEqual(violations, [], `histories are in ${folder}`)
    assert.isAbove(holds, 20)
    assert.isAbove(messages, 20)
    assert.isAbove(faults.length, 1)
    rmSync(folder, { recursive: true })
  }).pipe(Effect.scoped)

/** Asserts that a run with a planted defect violates one of these rules. */
export const isFound = (options: Options, rules: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const { folder, violations } = yield* run(options)
    assert.isTrue(violations.some((violation) => rules.some((rule) => violation.includes(rule))), violations.join("\n"))
    rmSync(folder, { recursive: true })
  }).pipe(Effect.scoped)
