/** Classifies failures of Redis: an outage is worth a retry, a refusal is not. */
import { BackendError } from "@effect-simba/core/SimbaError"
import type { RedisError } from "./effectRedis.ts"

/** Codes of a server that cannot serve now, or redirects. The error of a script contains them. */
const transientCode =
  /\b(LOADING|BUSY|READONLY|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|OOM|NOSCRIPT|MOVED|ASK|UNBLOCKED|MISCONF)\b/

export const isReply = (cause: unknown): cause is Error => cause instanceof Error && cause.name === "ReplyError"

export const isRetryable = (cause: unknown): boolean => !isReply(cause) || transientCode.test(cause.message)

/** The server does not know the script, and ran nothing. */
export const isForgotten = (cause: unknown): boolean => String(cause).includes("NOSCRIPT")

/** ioredis describes a lost connection by its options, and keeps the arguments of a command, which may be secrets. */
const withPlainMessage = (cause: unknown): unknown => {
  if (!(cause instanceof Error)) return cause
  if (cause.message.startsWith("Stream isn't writeable")) return new Error("not connected to Redis", { cause })
  const { command } = cause as { command?: { readonly name?: string } }
  return command === undefined ? cause : Object.assign(cause, { command: { name: command.name } })
}

export const backendError = (operation: string, cause: unknown): BackendError =>
  new BackendError({ operation, retryable: isRetryable(cause), cause: withPlainMessage(cause) })

export const fromRedis = (operation: string) => (error: RedisError): BackendError =>
  backendError(operation, error.cause)

/** An error at one key, which a script replied instead of raising. */
export const fromReply = (operation: string, text: string): BackendError =>
  new BackendError({ operation, retryable: transientCode.test(text), cause: new Error(text) })
