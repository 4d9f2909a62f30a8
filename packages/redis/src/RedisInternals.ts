/**
 * Internals for the `effect-simba` command line: key names, a key scan across all servers, and connection options from
 * the environment. They may change in any release.
 *
 * @since 0.1.0
 */
export { Redis } from "./internal/client/effectRedis.ts"
export { fromRedis } from "./internal/client/errors.ts"
export { environmentBeside, partsOf } from "./internal/client/ioredis/options.ts"
export { scan } from "./internal/client/scan.ts"
export * as mutexKeys from "./internal/mutex/keys.ts"
export { announcementField, toEntry } from "./streams/internal/announcementEntry.ts"
export * as streamKeys from "./streams/internal/keys.ts"
