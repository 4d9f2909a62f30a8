/**
 * A Redis 7.0 in memory, on a socket, for any client.
 *
 * @since 0.1.0
 */
export * from "./createFakeRedis.ts"
