/** Classifies failures of Redis: an outage is worth a retry, a refusal is not. */
import { BackendError } from "@effect-simba/core/SimbaError"
import { DriverError } from "./driverError.ts"
import type { RedisError } from "./effectRedis.ts"

/** Error codes of a temporarily unavailable server. A script's error contains them. */
const transientCode =
  /\b(LOADING|BUSY|READONLY|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|OOM|NOSCRIPT|ASK|UNBLOCKED|MISCONF)\b/

export const isTransient = (text: string): boolean => transientCode.test(text)

export const isReply = (cause: unknown): cause is Error => cause instanceof Error && cause.name === "ReplyError"

export const isRetryable = (cause: unknown): boolean =>
  cause instanceof DriverError ? cause.isRetryable : !isReply(cause) || isTransient(cause.message)

/** The server does not know the script, and ran nothing. */
export const isForgotten = (cause: unknown): boolean => String(cause).includes("NOSCRIPT")

/** Cluster drivers follow this reply themselves. */
const moved = new DriverError("the server is a node of a Redis Cluster (MOVED): use IoRedis.layerCluster", false)

/**
 * Error replies with a known remedy, for readers who do not know Redis. The error code stays in the message, because
 * readers search for it.
 */
const cures: ReadonlyArray<readonly [code: RegExp, text: (keys: string) => string]> = [
  [/\bOOM\b/, () => "the server is full and refuses writes (OOM): raise its maxmemory, or delete keys"],
  [
    /\bWRONGTYPE\b/,
    (keys) => `${keys} holds a value of another type (WRONGTYPE), from another program: delete it, or use another name`
  ]
]

/** More keys would make the message unreadable. */
const mostKeys = 4

const named = (keys: ReadonlyArray<string>): string =>
  keys.length === 0 || keys.length > mostKeys
    ? "a key"
    : `${keys.length === 1 ? "the key" : "one of the keys"} ${keys.map((key) => `"${key}"`).join(", ")}`

/** `keys`: the request's keys, one of which may have the wrong type. */
const known = (text: string, keys: ReadonlyArray<string> = []): DriverError | undefined => {
  const cure = cures.find(([code]) => code.test(text))
  return cure && new DriverError(cure[1](named(keys)), isTransient(text))
}

/** Node-redis and ioredis keep the arguments of a command, which may be secrets. */
export const withoutArguments = (cause: unknown): unknown => {
  if (!(cause instanceof Error)) return cause
  const { command } = cause as { command?: { readonly name?: string } }
  return command === undefined ? cause : Object.assign(cause, { command: { name: command.name } })
}

export const backendError = (operation: string, cause: unknown, keys?: ReadonlyArray<string>): BackendError => {
  const text = isReply(cause) ? cause.message : undefined
  const shown = text?.startsWith("MOVED ") ? moved : text && known(text, keys) || withoutArguments(cause)
  return new BackendError({ operation, isRetryable: isRetryable(shown), cause: shown })
}

export const fromRedis = (operation: string) => (error: RedisError): BackendError =>
  backendError(operation, error.cause)

/** An error at one key, which a script returned instead of raising. */
export const fromReply = (operation: string, text: string, keys?: ReadonlyArray<string>): BackendError =>
  new BackendError({ operation, isRetryable: isTransient(text), cause: known(text, keys) ?? new Error(text) })
