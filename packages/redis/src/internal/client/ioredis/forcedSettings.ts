/**
 * The ioredis settings that this library forces on each connection: commands fail immediately during an outage,
 * reconnecting never stops, and nothing is resent. Used by `connection`. The options that users may set are in
 * `options`.
 */
import * as Duration from "effect/Duration"
import type { RedisOptions } from "ioredis"

/** The ioredis options that users may set. Options that change the shape of replies are excluded. */
export type ClientOptions = Omit<RedisOptions, "replyMapping" | "stringNumbers" | "keyPrefix">

export interface Settings {
  readonly client: ClientOptions
  readonly commandTimeout: Duration.Duration
  readonly connectTimeout: Duration.Duration
}

export type Role = "commands" | "subscriber" | "reserved"

/**
 * Backs off from 50 ms to one second, which is short compared with a lease. Jitter avoids a stampede after a restart.
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
    // ioredis would wait as long as a loading server estimates. The estimate is in whole seconds, which is too coarse
    // for a lease
    maxLoadingRetryTime: 200,
    // How long closing waits for the server. Until then, a connection to a dead primary does not reconnect, and the
    // process does not exit
    disconnectTimeout: 200,
    // Leave time to try the other Sentinels if one does not reply
    sentinelCommandTimeout: Math.min(commandTimeout, connectTimeout / (1 + (settings.client.sentinels?.length ?? 0))),
    ...settings.client,
    // Let the layer's own timeout end first, because its error is more informative
    connectTimeout: connectTimeout + 100,
    lazyConnect: true,
    replyMapping: "legacy",
    stringNumbers: false,
    // During an outage, a command fails immediately and is never sent later. The caller decides whether to retry
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    // Do not use `commandTimeout`: it would abort the handshake with a slow server long before `connectTimeout`
    ...(role === "commands"
      ? { socketTimeout: Math.max(2 * commandTimeout, connectTimeout) }
      // No socket timeout is needed: subscribers are pinged, and a blocking read has its own timeout
      : { socketTimeout: undefined, commandTimeout: undefined, blockingTimeout: undefined })
  }
}
