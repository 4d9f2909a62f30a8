/** How the program ends: the exit code for scripts, and the message on standard error. */
import * as Cause from "effect/Cause"
import * as CliError from "effect/cli/CliError"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import { advised } from "./advice.ts"

/** Codes from 64 to 78 follow sysexits.h. */
export const exitCodes = {
  negative: 1,
  usage: 64,
  redis: 69,
  unwritable: 74,
  notAcquired: 75,
  lost: 79,
  notExecutable: 126,
  notFound: 127,
  interrupted: 130,
  readerGone: 141
} as const

export class Stop extends Data.TaggedError("Stop")<{ readonly code: number; readonly message: string }> {}

/**
 * The error goes to standard error even with `--json`, because the command has already printed results and standard
 * output must contain only one value, or because standard output belongs to the command that `run` starts.
 */
export class Partly extends Data.TaggedError("Partly")<{ readonly cause: unknown }> {}

/** Ends the program with this exit code, and prints the message unless it is empty. */
export const stop = (code: keyof typeof exitCodes, message = ""): Effect.Effect<never, Stop> =>
  Effect.fail(new Stop({ code: exitCodes[code], message }))

/** Exit codes by error tag. Any other error is a bug in this program. */
const codes: Readonly<Record<string, number>> = {
  InvalidConfig: exitCodes.usage,
  InvalidName: exitCodes.usage,
  ConfigError: exitCodes.usage,
  BackendError: exitCodes.redis,
  ProtocolError: exitCodes.redis,
  AcquireTimeout: exitCodes.notAcquired,
  LeaseLost: exitCodes.lost
}

const codeOf = (error: unknown): number => {
  if (error instanceof Partly) return codeOf(error.cause)
  if (error instanceof Stop) return error.code
  if (CliError.isCliError(error)) return error._tag === "ShowHelp" && error.errors.length === 0 ? 0 : exitCodes.usage
  return Predicate.hasProperty(error, "_tag") ? codes[String(error._tag)] ?? exitCodes.negative : exitCodes.negative
}

export const exitCodeOf = (exit: Exit.Exit<unknown, unknown>): number =>
  Exit.isSuccess(exit)
    ? 0
    : Cause.hasInterruptsOnly(exit.cause)
    ? exitCodes.interrupted
    : codeOf(Cause.squash(exit.cause))

export const errorJson = (tag: unknown, message: string): string => JSON.stringify({ error: { tag, message } })

/** Formats an error as text or JSON. Leaves errors about arguments to `presenter`. */
export const messageOf = (error: unknown, isJson: boolean): string | undefined => {
  if (error instanceof Partly) return messageOf(error.cause, isJson)
  if (CliError.isCliError(error)) return undefined
  const message = advised(error instanceof Error ? error.message : String(error))
  if (message === "") return undefined
  const tag = Predicate.hasProperty(error, "_tag") ? error._tag : "Defect"
  return isJson ? errorJson(tag, message) : `effect-simba: ${message}`
}
