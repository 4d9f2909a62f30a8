/**
 * The only import of Effect's Redis service in this package. Effect marks that module as unstable, so its changes are
 * handled here.
 */
import { RedisError } from "effect/persistence/Redis"

/** Effect's error has no message of its own, so its log line would be empty. */
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
