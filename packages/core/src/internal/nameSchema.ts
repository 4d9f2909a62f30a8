/** Schemas for names. */
import * as Schema from "effect/Schema"

/** A string that has no problem. */
export const nameSchema = (expected: string, problem: (name: string) => string | undefined) =>
  Schema.String.check(
    Schema.makeFilter(problem, { expected }),
    // Repeated because schema arbitraries ignore filters
    Schema.isMinLength(1)
  )
