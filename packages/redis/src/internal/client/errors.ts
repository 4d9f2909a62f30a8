/** Classifies failures of Redis: an outage is worth a retry, a refusal is not. */
import { BackendError } from "@effect-simba/core/SimbaError"
import { DriverError } from "./driverError.ts"
import type { RedisError } from "./effectRedis.ts"

/** Codes of a server that cannot serve now. The error of a script contains them. */
const transientCode =
  /\b(LOADING|BUSY|READONLY|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|OOM|NOSCRIPT|ASK|UNBLOCKED|MISCONF)\b/

export const isTransient = (text: string): boolean => transientCode.test(text)

export const isReply = (cause: unknown): cause is Error => cause instanceof Error && cause.name === "ReplyError"

export const isRetryable = (cause: unknown): boolean =>
  cause instanceof DriverError ? cause.retryable : !isReply(cause) || isTransient(cause.message)

/** The server does not know the script, and ran nothing. */
export const isForgotten = (cause: unknown): boolean => String(cause).includes("NOSCRIPT")

/** Drivers of a Cluster follow this reply themselves. */
const moved = new DriverError("the server is a node of a Redis Cluster (MOVED): use IoRedis.layerCluster", false)

/** Node-redis and ioredis keep the arguments of a command, which may be secrets. */
export const withoutArguments = (cause: unknown): unknown => {
  if (!(cause instanceof Error)) return cause
  const { command } = cause as { command?: { readonly name?: string } }
  return command === undefined ? cause : Object.assign(cause, { command: { name: command.name } })
}

export const backendError = (operation: string, cause: unknown): BackendError => {
  const known = isReply(cause) && cause.message.startsWith("MOVED ") ? moved : withoutArguments(cause)
  return new BackendError({ operation, retryable: isRetryable(known), cause: known })
}

export const fromRedis = (operation: string) => (error: RedisError): BackendError =>
  backendError(operation, error.cause)

/** An error at one key, which a script replied instead of raising. */
export const fromReply = (operation: string, text: string): BackendError =>
  new BackendError({ operation, retryable: isTransient(text), cause: new Error(text) })
