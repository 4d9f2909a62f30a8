/**
 * Formats a failure as the reason for a dead letter: the name, message and fields of each error. Stack traces are only
 * logged. Used by `handlerRunner`, `messageAttempts` and `messageDecoder`.
 */
import * as Cause from "effect/Cause"
import { format } from "effect/Formatter"

const maxCauses = 3

const shownElsewhere = new Set(["_tag", "cause", "message", "name", "stack"])

const describe = (error: unknown, depth = 0): string => {
  if (typeof error === "string") return error
  if (!(error instanceof Error)) return format(error)
  const fields = Object.entries(error).filter(([field]) => !shownElsewhere.has(field))
  return [
    [error.name, error.message].filter((text) => text !== "").join(": "),
    ...fields.length === 0 ? [] : [format(Object.fromEntries(fields))],
    ...error.cause === undefined || depth === maxCauses ? [] : [`(cause: ${describe(error.cause, depth + 1)})`]
  ].join(" ")
}

const textOf = (reason: Cause.Reason<unknown>): string => {
  if (Cause.isInterruptReason(reason)) return "interrupted"
  try {
    return describe(Cause.isFailReason(reason) ? reason.error : reason.defect)
  } catch {
    return "an error that cannot be shown"
  }
}

export const failureText = (cause: Cause.Cause<unknown>): string => [...new Set(cause.reasons.map(textOf))].join("; ")
