/** Refuses unknown options, because no compiler checks JavaScript programs. Called by `promise`. */
import { InvalidConfig } from "@effect-simba/core/SimbaError"

/** A table of all names in an options type. The compiler rejects a table with a missing name. */
export type Names<Options> = Readonly<Record<keyof Options, true>>

/** Returns the error for an unknown option or a value that is not an object; undefined if the options are valid. */
export const problemWith = <Options extends object>(
  options: unknown,
  names: Names<Options>
): InvalidConfig | undefined => {
  if (options === undefined) return undefined
  if (typeof options !== "object" || options === null) {
    return new InvalidConfig({ option: "options", problem: "they must be an object" })
  }
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(names, name))
  return unknown === undefined ? undefined : new InvalidConfig({
    option: unknown,
    problem: `it does not exist; the options are ${Object.keys(names).sort().join(", ")}`
  })
}
