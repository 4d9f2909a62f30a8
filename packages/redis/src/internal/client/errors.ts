/** What a failure of Redis means: an outage to sit out, or a refusal that will come again. */
import { BackendError } from "@effect-simba/core/SimbaError"
import type { RedisError } from "effect/persistence/Redis"

/** Codes of a server that cannot serve now, or asks to be asked elsewhere. A script's error carries them inside. */
const passing =
  /\b(LOADING|BUSY|READONLY|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|OOM|NOSCRIPT|MOVED|ASK|UNBLOCKED|MISCONF)\b/

export const isReply = (cause: unknown): cause is Error => cause instanceof Error && cause.name === "ReplyError"

export const isRetryable = (cause: unknown): boolean => !isReply(cause) || passing.test(cause.message)

/** The server does not know a script: nothing was run. */
export const isForgotten = (cause: unknown): boolean => String(cause).includes("NOSCRIPT")

/** ioredis names its options, and keeps the arguments of the command, which may be secrets. */
const inOurWords = (cause: unknown): unknown => {
  if (!(cause instanceof Error)) return cause
  if (cause.message.startsWith("Stream isn't writeable")) return new Error("not connected to Redis", { cause })
  const { command } = cause as { command?: { readonly name?: string } }
  return command === undefined ? cause : Object.assign(cause, { command: { name: command.name } })
}

export const backendError = (operation: string, cause: unknown): BackendError =>
  new BackendError({ operation, retryable: isRetryable(cause), cause: inOurWords(cause) })

export const fromRedis = (operation: string) => (error: RedisError): BackendError =>
  backendError(operation, error.cause)

/** An error that a script met at one key, and answered instead of raising. */
export const fromReply = (operation: string, text: string): BackendError =>
  new BackendError({ operation, retryable: passing.test(text), cause: new Error(text) })
