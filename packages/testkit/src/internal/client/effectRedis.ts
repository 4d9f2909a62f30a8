/**
 * The parts of Effect's Redis module that this package uses. That module is marked as unstable, so changes to it should
 * only affect this file.
 */
export { make, Redis, RedisError, script } from "effect/persistence/Redis"
