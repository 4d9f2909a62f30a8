/** Judges a fuzzer case. It must succeed, or fail with a tagged error whose message has a bounded length. */
import { Cause, Exit } from "effect"

/** Maximum length of an error's message, in characters, so that it does not flood a log. */
const bound = 4000

const problemOf = (error: unknown): string | undefined => {
  if (typeof error !== "object" || error === null || !("_tag" in error)) {
    return `an error without a tag: ${String(error)}`
  }
  const { message } = error as { readonly message?: unknown }
  if (typeof message !== "string") return `an error without a message: ${String(error._tag)}`
  return message.length > bound ? `a message of ${message.length} characters: ${message.slice(0, 100)}` : undefined
}

/** Returns what is wrong with an outcome, or `undefined` if it is allowed. */
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
