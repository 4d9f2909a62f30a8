/**
 * The parts of Effect's Redis module that this package uses. Effect marks that module as unstable, so its changes are
 * handled here.
 */
export { make, Redis, RedisError, script } from "effect/persistence/Redis"
