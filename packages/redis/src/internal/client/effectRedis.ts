/** What this package uses of Effect's Redis service. Effect marks that module as unstable; its changes are met here. */
export {
  type Connection,
  make,
  type PoolOptions,
  Redis,
  RedisError,
  type Script,
  script
} from "effect/persistence/Redis"
