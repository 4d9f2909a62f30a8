// Runs seeds of the simulator's plans on the packed packages. The plans are copied into the consumer's folder under the
// same paths, so that they import the `@effect-simba/*` packages that npm installed.
import { cpSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { filesFrom, root } from "../lib/workspace.mjs"
import { plans, simulator, simulatorHelpers } from "./paths.mjs"
import { run } from "./processes.mjs"
import { problem } from "./report.mjs"

const copyPlans = (folder) => {
  for (const file of filesFrom(simulator)) {
    if (/\/src\//.test(file) && !simulatorHelpers.includes(file)) {
      problem(`the plans import ${file}, which would run from sources instead of the packed package`)
    }
    cpSync(join(root, file), join(folder, file))
  }
}

/** Runs `seeds` seeds of each plan. */
export const simulate = async (folder, seeds) => {
  copyPlans(folder)
  // Use few workers, because loading the packages takes a worker as long as several seeds
  const workers = Math.min(availableParallelism(), Math.ceil(seeds / 10))
  for (const plan of plans) {
    const args = [simulator, "--plan", plan, "--seeds", `${seeds}`, "--workers", `${workers}`]
    const { failed, text } = await run(process.execPath, args, { cwd: folder })
    if (failed || !text.includes(`${seeds} seeds, 0 violations`)) {
      problem(`the ${plan} plan on the packed packages:\n${text}`)
    }
  }
  return `${seeds} seeds each of ${plans.join(", ")}`
}
