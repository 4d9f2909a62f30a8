/**
 * The only file in this package that imports Effect's Redis service. That module is marked as unstable, so changes to
 * it should only affect this file.
 */
import { RedisError } from "effect/persistence/Redis"

/** Adds a message to Effect's error, whose log line would otherwise be empty. */
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
