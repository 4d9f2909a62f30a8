/** Keys and script of the mutex, for benchmarks that speak the protocol directly. */
export * as keys from "../../src/internal/mutex/keys.ts"
import { acquireAndRelease as script } from "../../src/internal/mutex/scripts.generated.ts"

export const acquireAndRelease = script.text.lua
