/**
 * Rules for the names of mutexes, processes, consumers, data streams and entries, checked where a name enters the
 * library.
 */
import * as Effect from "effect/Effect"
import { InvalidName } from "../SimbaError.ts"
import { excerpt } from "./excerpt.ts"

/** Describes the first rule that a name breaks. Undefined if the name is valid. */
type Problem = (name: string) => string | undefined

const maxLength = 1024

/** Rules for all names. */
export const anyProblem: Problem = (name) =>
  typeof name !== "string"
    ? "it is not a string"
    : name.trim() === ""
    ? "it is blank"
    : name.length > maxLength
    ? `it is longer than ${maxLength} characters`
    : /[\ud800-\udfff]/u.test(name)
    ? "it has an unpaired surrogate, which UTF-8 cannot encode: names that differ only there would be the same"
    : undefined

export const mutexProblem: Problem = (name) =>
  anyProblem(name) ?? (
    name.startsWith("}")
      ? "it starts with \"}\", which would empty the hash tag of its keys"
      : undefined
  )

/** Rules for names that are followed by separators on the wire. */
const wireProblem: Problem = (name) =>
  anyProblem(name) ?? (name.includes("@@") ? "it contains \"@@\", which separates fields on the wire" : undefined)

export const contenderProblem: Problem = (name) =>
  wireProblem(name) ?? (
    name.startsWith("@") || name.endsWith("@")
      ? "it starts or ends with \"@\", which would be ambiguous on the wire"
      : undefined
  )

/** Separates the data stream's name from the entry's id in the key of an entry lease. */
export const leaseSeparator = "<MUTEX_KEY_SEP>"

export const streamProblem: Problem = (name) =>
  anyProblem(name) ??
    (name.includes(leaseSeparator) ? `it contains "${leaseSeparator}", which separates fields in a key` : undefined)

/** The prefix of our consumers' names. Go consumers' names begin with `redis-consumer-`. */
export const consumerPrefix = "simba-consumer-"

export const consumerProblem: Problem = (name) =>
  wireProblem(name) ?? (name.endsWith("@") ? "it ends with \"@\", which would be ambiguous on the wire" : undefined)

export const entryPattern = /^\d+-\d+$/

export const entryProblem: Problem = (id) => entryPattern.test(id) ? undefined : "it is not <milliseconds>-<sequence>"

export const checked =
  <A extends string>(kind: InvalidName["kind"], problem: Problem) => (name: string): Effect.Effect<A, InvalidName> => {
    const found = problem(name)
    return found === undefined
      ? Effect.succeed(name as A)
      : Effect.fail(new InvalidName({ kind, value: typeof name === "string" ? name : excerpt(name), problem: found }))
  }
