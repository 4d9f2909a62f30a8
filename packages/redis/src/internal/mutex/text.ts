/** Texts of the usual course: read by the codecs, and by those for whom a codec would take too long. */
import type { Ownership } from "@effect-simba/core/MutexStore"
import * as Duration from "effect/Duration"
import { separator } from "../client/codecs.ts"

/** No leading zeros, so that every text has one reading and every reading one text. */
export const millisPattern = /^(0|[1-9]\d{0,14})$/

export const ownerIdProblem = (id: string): string | undefined =>
  id === ""
    ? "the owner is empty"
    : id.includes(separator) || id.startsWith("@") || id.endsWith("@")
    ? "the owner contains a separator"
    : undefined

export type Told = { readonly _tag: "Released"; readonly owner: string } | {
  readonly _tag: "Look"
  readonly millis: number
}

/** What it says, or what is wrong with it. */
export const decodeContender = (input: string): Told | string => {
  if (input.startsWith("released@@")) {
    const owner = input.slice("released@@".length)
    return ownerIdProblem(owner) ?? { _tag: "Released", owner }
  }
  if (!input.startsWith("look@@")) return "expected released@@<owner> or look@@<milliseconds>"
  const millis = input.slice("look@@".length)
  return millisPattern.test(millis)
    ? { _tag: "Look", millis: Number(millis) }
    : "expected a whole number of milliseconds after look@@"
}

export const encodeContender = (told: Told): string =>
  told._tag === "Released" ? `released${separator}${told.owner}` : `look${separator}${told.millis}`

/** Who owns a mutex, or what is wrong with the text. */
export const decodeOwnership = (input: string): Ownership | string => {
  if (input === separator) return { _tag: "Free" }
  const at = input.lastIndexOf(separator)
  if (at === -1) return "expected <owner>@@<milliseconds>"
  const owner = input.slice(0, at)
  const millis = input.slice(at + separator.length)
  const problem = ownerIdProblem(owner)
  if (problem !== undefined) return problem
  if (millis === "-1") return { _tag: "Held", owner }
  return millisPattern.test(millis)
    ? { _tag: "Held", owner, remaining: Duration.millis(Number(millis)) }
    : "expected a whole number of milliseconds after @@"
}

export const encodeOwnership = (ownership: Ownership): string =>
  ownership._tag === "Free"
    ? separator
    : `${ownership.owner}${separator}${
      ownership.remaining === undefined ? "-1" : Duration.toMillis(ownership.remaining)
    }`
