/**
 * The ioredis settings that this library forces on each connection: a command fails at once, reconnecting never ends,
 * and nothing is sent again. `connection` uses them; `options` has the options that users may set.
 */
import * as Duration from "effect/Duration"
import type { RedisOptions } from "ioredis"

/** Without the options that change the shape of replies, `replyMapping` and `stringNumbers`. */
export type ClientOptions = Omit<RedisOptions, "replyMapping" | "stringNumbers" | "keyPrefix">

export interface Settings {
  readonly client: ClientOptions
  readonly commandTimeout: Duration.Duration
  readonly connectTimeout: Duration.Duration
}

export type Role = "commands" | "subscriber" | "reserved"

/** 50 ms, doubling up to a second: short compared with a lease. With jitter, to avoid a stampede after a restart. */
export const reconnectDelay = (random: () => number) => (attempt: number): number =>
  Math.min(50 * 2 ** Math.min(attempt - 1, 5), 1000) * (0.8 + 0.4 * random())

/** The user's options with the forced ones. */
export const withForced = (
  role: Role,
  settings: Settings
): ClientOptions & { readonly stringNumbers: false } => {
  const commandTimeout = Duration.toMillis(settings.commandTimeout)
  const connectTimeout = Duration.toMillis(settings.connectTimeout)
  return {
    connectionName: `simba:${role}`,
    // A loading server estimates its remaining time in whole seconds, which is too coarse for a lease
    maxLoadingRetryTime: 200,
    // Leaves time for the other Sentinels if one does not reply
    sentinelCommandTimeout: Math.min(commandTimeout, connectTimeout / (1 + (settings.client.sentinels?.length ?? 0))),
    ...settings.client,
    connectTimeout,
    lazyConnect: true,
    stringNumbers: false,
    // During an outage, a command fails at once and is never sent later: the caller decides whether to retry
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    // Not `commandTimeout`: it would abort the handshake of a slow server long before `connectTimeout`
    ...(role === "commands"
      ? { socketTimeout: Math.max(2 * commandTimeout, connectTimeout) }
      // Subscribers are pinged, and a blocking read has its own timeout
      : { socketTimeout: undefined, commandTimeout: undefined, blockingTimeout: undefined })
  }
}
