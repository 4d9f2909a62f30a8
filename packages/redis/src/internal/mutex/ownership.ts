/** A Schema codec for a mutex's ownership as text: `owner@@ttl`. */
import type { Ownership } from "@effect-simba/core/MutexState"
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import { separator, text } from "../client/codecs.ts"

/** Excludes leading zeros: each value has exactly one text. */
export const millisPattern = /^(0|[1-9]\d{0,14})$/

export const ownerProblem = (id: string): string | undefined =>
  id === ""
    ? "the owner is empty"
    : id.includes(separator) || id.startsWith("@") || id.endsWith("@")
    ? "the owner contains a separator"
    : undefined

/** An owner's id may be any text without a separator, because other implementations use different ids. */
export const OwnerId = Schema.String.check(
  Schema.makeFilter((id: string) => ownerProblem(id)),
  // Repeated because schema arbitraries ignore filters
  Schema.isMinLength(1)
)

const Remaining = Schema.Duration.check(
  Schema.makeFilter((duration: Duration.Duration) =>
    millisPattern.test(String(Duration.toMillis(duration))) || "not a whole number of milliseconds"
  )
)

/** Decodes an ownership, or returns the problem as a string. */
export const decodeOwnership = (input: string): Ownership | string => {
  if (input === separator) return { _tag: "Free" }
  const at = input.lastIndexOf(separator)
  if (at === -1) return "expected <owner>@@<milliseconds>"
  const owner = input.slice(0, at)
  const millis = input.slice(at + separator.length)
  const problem = ownerProblem(owner)
  if (problem !== undefined) return problem
  if (millis === "-1") return { _tag: "Held", owner }
  return millisPattern.test(millis)
    ? { _tag: "Held", owner, timeLeft: Duration.millis(Number(millis)) }
    : "expected a whole number of milliseconds after @@"
}

/**
 * A mutex's ownership: `<owner id>@@<remaining milliseconds>`, `<owner id>@@-1` if the key has no expiry, or `@@` if
 * the mutex is free. Simba's scripts use the same format.
 */
export const OwnershipText: Schema.Codec<Ownership, string> = text(
  Schema.TaggedUnion({ Free: {}, Held: { owner: OwnerId, timeLeft: Schema.optionalKey(Remaining) } }),
  decodeOwnership,
  (ownership) =>
    ownership._tag === "Free"
      ? separator
      : `${ownership.owner}${separator}${
        ownership.timeLeft === undefined ? "-1" : Duration.toMillis(ownership.timeLeft)
      }`
)
