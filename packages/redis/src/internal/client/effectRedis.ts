/** What this package uses of Effect's Redis service. Effect marks that module as unstable; its changes are met here. */
import { RedisError } from "effect/persistence/Redis"

/** Effect's error has no message of its own: a log line of it would say nothing. */
export const redisError = (cause: unknown): RedisError =>
  Object.defineProperty(new RedisError({ cause }), "message", {
    value: cause instanceof Error ? cause.message : String(cause),
    configurable: true,
    writable: true
  })

export {
  type Connection,
  make,
  type PoolOptions,
  Redis,
  RedisError,
  type Script,
  script
} from "effect/persistence/Redis"
