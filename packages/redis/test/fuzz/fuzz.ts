/** The fuzzer's `texts` and `options` areas: for any input, the library returns a result or a tagged error. */
import { Effect } from "effect"
import { drawOf, show } from "./input.ts"
import * as options from "./options.ts"
import * as texts from "./texts.ts"
import { verdict } from "./verdict.ts"

export interface Finding {
  readonly area: string
  readonly name: string
  readonly number: number
  readonly input: string
  readonly problem: string
}

export const fuzzTexts = (seed: number, cases: number): ReadonlyArray<Finding> => {
  const findings: Array<Finding> = []
  for (let number = 0; number < cases; number++) {
    const { input, name, run } = texts.anyCase(drawOf(seed, number))
    let problem: string | undefined
    try {
      problem = verdict(run())
    } catch (error) {
      problem = `an exception: ${error instanceof Error ? error.stack : String(error)}`
    }
    if (problem !== undefined) findings.push({ area: "texts", name, number, input: show(input), problem })
  }
  return findings
}

export const fuzzOptions = Effect.fnUntraced(function*(seed: number, cases: number) {
  const findings: Array<Finding> = []
  for (let number = 0; number < cases; number++) {
    const { effect, input, name } = options.anyCase(drawOf(seed, number))
    const problem = verdict(yield* Effect.exit(effect))
    if (problem !== undefined) findings.push({ area: "options", name, number, input: show(input), problem })
  }
  return findings
})
