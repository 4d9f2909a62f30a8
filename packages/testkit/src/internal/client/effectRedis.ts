/** What this package uses of Effect's Redis service. Effect marks that module as unstable; its changes are met here. */
export { make, Redis, RedisError, script } from "effect/persistence/Redis"
