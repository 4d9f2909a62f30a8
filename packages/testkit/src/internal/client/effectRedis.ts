/**
 * What this package uses of Effect's Redis service. Effect marks that module as unstable, so its changes are handled
 * here.
 */
export { make, Redis, RedisError, script } from "effect/persistence/Redis"
