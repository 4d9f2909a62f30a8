/**
 * Explains why a connection or a command failed, and how to fix it. ioredis often reports only its own state, such as
 * "Connection is closed".
 */
import { DriverError } from "../driverError.ts"
import { isReply, isTransient, withoutArguments } from "../errors.ts"

/** A connection's target, for error messages. It does not contain secrets. */
export interface Target {
  readonly address: string
  readonly tls: boolean
  readonly isCluster?: boolean
  /** The primary's name, if Sentinels are used. */
  readonly primary?: string | undefined
}

const outage = (message: string) => new DriverError(message, true)
const mistake = (message: string) => new DriverError(message, false)

const codeOf = (cause: unknown): string =>
  typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : ""

/** If a host has several addresses and none can be reached, Node's error has a code but no message. */
const textOf = (cause: unknown): string =>
  (cause instanceof Error ? cause.message || codeOf(cause) : String(cause)).replace(/\.+$/, "")

/** Describes the server. If Sentinels are used, `address` contains only their addresses. */
const serverOf = ({ address, primary }: Target, article = "") =>
  primary === undefined ? `${article}${address}` : `the primary "${primary}" of the Sentinels at ${address}`

const closedImmediately = (address: string) =>
  outage(
    `${address} closed the connection immediately: raise its maxclients if all are in use, use rediss:// if it expects ` +
      "TLS, else correct the host and port"
  )

const ofReply = (text: string, target: Target) => {
  const server = serverOf(target, "the server at ")
  return text.startsWith("NOAUTH")
    ? mistake(`${server} requires a password (NOAUTH): set it in the URL or in client.password`)
    : text.startsWith("WRONGPASS")
    ? mistake(`${server} rejects the user or the password (WRONGPASS): correct them`)
    : text.includes("cluster support disabled")
    ? mistake(`${server} is not in a Redis Cluster: use IoRedis.layer`)
    // ioredis drops this reply if it has not sent a command yet
    : text.includes("max number of clients")
    ? closedImmediately(serverOf(target))
    : new DriverError(`${server} replies: ${text}`, isTransient(text))
}

const ofSentinels = (text: string, { address, primary }: Target) =>
  /unknown command '?sentinel/i.test(text)
    ? mistake(`${address} is a Redis server, not a Sentinel: use its URL, or the address of a Sentinel`)
    : text.includes("No such master")
    ? mistake(`the Sentinels at ${address} do not know the primary "${primary}": correct client.name`)
    : /NOAUTH|WRONGPASS/.test(text)
    ? mistake(`the Sentinels at ${address} require another password: set client.sentinelPassword`)
    : outage(
      `no Sentinel at ${address} can be reached for the primary "${primary}": ${text.replace(/^.*Last error: /, "")}`
    )

/** The error for a connection that could not be opened. */
export const ofConnecting = (cause: unknown, target: Target): DriverError => {
  const { isCluster = false, primary, tls } = target
  const address = serverOf(target)
  const text = textOf(cause)
  const code = codeOf(cause)
  if (cause instanceof DriverError) return cause
  if (isReply(cause)) return ofReply(text, target)
  if (primary !== undefined && text.startsWith("All sentinels")) return ofSentinels(text, target)
  if (primary !== undefined && text === "Connection is closed") {
    return outage(`${address} is a replica or closed the connection immediately`)
  }
  if (code === "ECONNREFUSED") {
    return outage(`nothing is listening at ${primary === undefined ? "" : "the address of "}${address} (${code})`)
  }
  if (code === "ENOTFOUND") return outage(`the host name of ${address} cannot be resolved (${code}): correct it`)
  if (code === "ERR_SOCKET_BAD_PORT") return mistake(`the port of ${address} is invalid: correct it`)
  if (code === "EAI_AGAIN") return outage(`the host name of ${address} cannot be resolved at the moment (${code})`)
  if (code === "CERT_HAS_EXPIRED") return mistake(`the certificate of ${address} has expired: renew it`)
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return mistake(`the certificate of ${address} is for another host: use its name, or set client.tls.servername`)
  }
  if (code.includes("CERT") || code.startsWith("UNABLE_TO_")) {
    return mistake(
      `the certificate of ${address} is not trusted (${code}): set client.tls.ca to the certificate of its CA`
    )
  }
  if (code.startsWith("ERR_SSL_")) return mistake(`${address} does not use TLS (${code}): use redis://, not rediss://`)
  if (/Unknown RESP type|Protocol error/.test(text)) {
    return mistake(`${address} does not speak the Redis protocol: correct the host and port`)
  }
  // ioredis reports only this for an unreachable node
  if (isCluster && text === "Connection is closed") {
    const mistake = tls ? "it does not use TLS" : "it expects TLS"
    return outage(`no node of the Cluster can be reached at ${address}: nothing is listening there, or ${mistake}`)
  }
  if (!tls && (code === "ECONNRESET" || code === "EPIPE" || text === "Connection is closed")) {
    return closedImmediately(address)
  }
  return outage(`${text} (${address})`)
}

/** The error for a connection that was not ready within the timeout. */
export const ofSilence = (limit: string, target: Target): DriverError =>
  outage(
    `no connection to ${serverOf(target)} within ${limit}${target.tls ? ": if it does not use TLS, use redis://" : ""}`
  )

export const noPrimary: DriverError = outage("no primary of the Cluster is known to be available")

/** The error for a client that the application has closed, or whose `retryStrategy` has given up: it never reconnects. */
export const closed = (address: string): DriverError =>
  mistake(
    `the client of Redis at ${address} is closed: close it after the layers that use it, and let its retryStrategy ` +
      "retry forever"
  )

export const notConnected = (address: string): DriverError => outage(`not connected to Redis at ${address}`)

const unknownOutcome = "whether the server ran the command is unknown"

export const lost = (address: string): DriverError =>
  outage(`the connection to ${address} was lost before the reply: ${unknownOutcome}`)

export const timedOut = (limit: string, address: string): DriverError =>
  outage(`no reply from ${address} within ${limit}: ${unknownOutcome}`)

/** For a command that could not be sent, for example because an argument is too long. */
export const unwritable = (cause: unknown): DriverError => mistake(`the command cannot be written: ${textOf(cause)}`)

/** The error for a command that failed. */
export const ofCommand = (cause: unknown, address: string): unknown => {
  if (isReply(cause)) return withoutArguments(cause)
  if (cause instanceof DriverError) return cause
  const text = textOf(cause)
  if (/isn't writeable|isn't ready/.test(text)) return notConnected(address)
  return /Connection is closed|Command aborted|max retries|is ended|is disconnect/.test(text)
    ? lost(address)
    : outage(`${text} (${address})`)
}
