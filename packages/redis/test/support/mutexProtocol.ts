/** Keys and script of the mutex, for benchmarks that speak the protocol by themselves. */
export * as keys from "../../src/internal/mutex/keys.ts"
export { acquireAndRelease } from "../../src/internal/mutex/scripts.generated.ts"
