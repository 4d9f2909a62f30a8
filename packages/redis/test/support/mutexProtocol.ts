/** The keys and the script of mutexes, for benchmarks that send the protocol's commands themselves. */
export * as keys from "../../src/internal/mutex/keys.ts"
import { acquireAndRelease as script } from "../../src/internal/mutex/scripts.generated.ts"

export const acquireAndRelease = script.text.lua
