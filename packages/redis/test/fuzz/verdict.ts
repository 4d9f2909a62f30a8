/** The allowed outcomes of a case: a value, or an error with a tag and a message of bounded length. */
import { Cause, Exit } from "effect"

/** Characters. One longer message would fill a log. */
const bound = 4000

const problemOf = (error: unknown): string | undefined => {
  if (typeof error !== "object" || error === null || !("_tag" in error)) {
    return `an error without a tag: ${String(error)}`
  }
  const { message } = error as { readonly message?: unknown }
  if (typeof message !== "string") return `an error without a message: ${String(error._tag)}`
  return message.length > bound ? `a message of ${message.length} characters: ${message.slice(0, 100)}` : undefined
}

/** What is wrong, or `undefined`. */
export const verdict = (exit: Exit.Exit<unknown, unknown>): string | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  for (const reason of exit.cause.reasons) {
    const problem = Cause.isFailReason(reason)
      ? problemOf(reason.error)
      : Cause.isDieReason(reason)
      ? `a defect: ${reason.defect instanceof Error ? reason.defect.stack : String(reason.defect)}`
      : "an interruption"
    if (problem !== undefined) return problem
  }
  return undefined
}
