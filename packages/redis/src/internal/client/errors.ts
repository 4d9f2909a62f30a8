/** Classifies Redis failures: an outage is retryable, a refusal is not. */
import { BackendError } from "@effect-simba/core/SimbaError"
import { DriverError } from "./driverError.ts"
import type { RedisError } from "./effectRedis.ts"

/** A temporarily unavailable server's error codes. A script's error may contain them too. */
const transientCode =
  /\b(LOADING|BUSY|READONLY|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|OOM|NOSCRIPT|ASK|UNBLOCKED|MISCONF)\b/

export const isTransient = (text: string): boolean => transientCode.test(text)

export const isReply = (cause: unknown): cause is Error => cause instanceof Error && cause.name === "ReplyError"

export const isRetryable = (cause: unknown): boolean =>
  cause instanceof DriverError ? cause.isRetryable : !isReply(cause) || isTransient(cause.message)

/** Returns whether the server did not have the script in its cache, and so did not run it. */
export const isForgotten = (cause: unknown): boolean => String(cause).includes("NOSCRIPT")

/** Only for single-server drivers. Cluster drivers follow MOVED. */
const moved = new DriverError("the server is a node of a Redis Cluster (MOVED): use IoRedis.layerCluster", false)

/**
 * Error replies with a known remedy, explained for readers who do not know Redis. The message contains the error code,
 * so readers can search for it.
 */
const cures: ReadonlyArray<readonly [code: RegExp, text: (keys: string, reply: string) => string]> = [
  [
    /\bREADONLY\b/,
    () =>
      "the server is a replica and refuses writes (READONLY): connect to its primary, " +
      "or name the Sentinels in client.sentinels"
  ],
  [/\bNOPERM\b/, (_, reply) => `${reply}: grant it with ACL SETUSER, as in the operations guide`],
  [/\bOOM\b/, () => "the server is full and refuses writes (OOM): raise its maxmemory, or delete keys"],
  [
    /\bWRONGTYPE\b/,
    (keys) =>
      `${keys} holds a value of the wrong type (WRONGTYPE), from another program: delete it, or use another name`
  ]
]

/** The maximum number of keys that an error message lists. */
const mostKeys = 4

const named = (keys: ReadonlyArray<string>): string =>
  keys.length === 0 || keys.length > mostKeys
    ? "a key"
    : `${keys.length === 1 ? "the key" : "one of the keys"} ${keys.map((key) => `"${key}"`).join(", ")}`

/**
 * Returns the remedy for a known error reply. `keys` are the request's keys, because one of them may have the wrong
 * type.
 */
const known = (text: string, keys: ReadonlyArray<string> = []): DriverError | undefined => {
  const cure = cures.find(([code]) => code.test(text))
  return cure && new DriverError(cure[1](named(keys), text), isTransient(text))
}

/**
 * Removes the failed command's arguments, which may be secrets. Errors from node-redis and ioredis contain them.
 */
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

/** Converts an error that concerns one key. The script returned it instead of raising it. */
export const fromReply = (operation: string, text: string, keys?: ReadonlyArray<string>): BackendError =>
  new BackendError({ operation, isRetryable: isTransient(text), cause: known(text, keys) ?? new Error(text) })
