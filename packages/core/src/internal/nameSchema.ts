/** Creates the name schemas for `MutexName`, `StreamName` and `StreamStore`. */
import * as Schema from "effect/Schema"

/** A string that is valid if `problem` returns undefined. */
export const nameSchema = (expected: string, problem: (name: string) => string | undefined) =>
  Schema.String.check(
    Schema.makeFilter(problem, { expected }),
    // Redundant, but schema arbitraries ignore filters
    Schema.isMinLength(1)
  )
