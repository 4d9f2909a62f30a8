/**
 * The ioredis settings that this library forces on each connection: commands fail immediately during an outage,
 * reconnecting never stops, and nothing is resent. `connection` uses them. `options` has the options that users may
 * set.
 */
import * as Duration from "effect/Duration"
import type { RedisOptions } from "ioredis"

/** The ioredis options that users may set. Excludes those that change the shape of replies. */
export type ClientOptions = Omit<RedisOptions, "replyMapping" | "stringNumbers" | "keyPrefix">

export interface Settings {
  readonly client: ClientOptions
  readonly commandTimeout: Duration.Duration
  readonly connectTimeout: Duration.Duration
}

export type Role = "commands" | "subscriber" | "reserved"

/**
 * Backs off from 50 ms to one second, which is short compared with a lease, with jitter to avoid a stampede after a
 * restart.
 */
export const reconnectDelay = (random: () => number) => (attempt: number): number =>
  Math.min(50 * 2 ** Math.min(attempt - 1, 5), 1000) * (0.8 + 0.4 * random())

/** Merges the forced settings into the user's options. */
export const withForced = (
  role: Role,
  settings: Settings
): ClientOptions & { readonly replyMapping: "legacy"; readonly stringNumbers: false } => {
  const commandTimeout = Duration.toMillis(settings.commandTimeout)
  const connectTimeout = Duration.toMillis(settings.connectTimeout)
  return {
    connectionName: `simba:${role}`,
    // A loading server estimates its remaining time in seconds, which is too coarse for a lease
    maxLoadingRetryTime: 200,
    // How long closing waits for the server. A connection to a dead primary reconnects only afterwards, and a process
    // ends only afterwards
    disconnectTimeout: 200,
    // Leave time for the other Sentinels if one does not reply
    sentinelCommandTimeout: Math.min(commandTimeout, connectTimeout / (1 + (settings.client.sentinels?.length ?? 0))),
    ...settings.client,
    // The layer's own timeout ends first: its error says more
    connectTimeout: connectTimeout + 100,
    lazyConnect: true,
    replyMapping: "legacy",
    stringNumbers: false,
    // During an outage, a command fails immediately and is never sent later: the caller decides whether to retry
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
