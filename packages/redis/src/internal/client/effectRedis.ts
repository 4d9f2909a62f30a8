/**
 * The package's only import of Effect's Redis service. Effect marks that module as unstable, so this file absorbs its
 * changes.
 */
import { RedisError } from "effect/persistence/Redis"

/** Adds a message to Effect's error, because its log line would be empty otherwise. */
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
