/**
 * An in-memory Redis 7.0 on a socket, for any client.
 *
 * @since 0.1.0
 */
export * from "./createFakeRedis.ts"
