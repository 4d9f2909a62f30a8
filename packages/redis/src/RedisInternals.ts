/**
 * What `effect-simba`, the command line, needs from this package besides its public modules: key names, the scan over all
 * servers, and how connection options combine with the environment. It may change in any release.
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
