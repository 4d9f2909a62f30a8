/** Exports mutex keys and the main script to benchmarks that send the protocol's commands directly. */
export * as keys from "../../src/internal/mutex/keys.ts"
import { acquireAndRelease as script } from "../../src/internal/mutex/scripts.generated.ts"

export const acquireAndRelease = script.text.lua
