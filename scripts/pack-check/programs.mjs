// Runs programs that use the packed packages, on any runtime.
import { cpSync } from "node:fs"
import { join } from "node:path"
import { root } from "../lib/workspace.mjs"
import { system } from "./consumer.mjs"
import { run } from "./processes.mjs"
import { problem } from "./report.mjs"

/** The system's Node. */
export const systemNode = { name: "Node", command: "node", args: [] }

/** Copies the programs into the folder of a consumer. */
export const writePrograms = (folder) =>
  cpSync(join(root, "scripts/pack-check/consumer/runtime"), join(folder, "runtime"), { recursive: true })

/** Whether a program succeeds and its last line reports that everything holds. */
export const holds = async (runtime, folder, program, redisUrl) => {
  const { failed, text } = await run(runtime.command, [...runtime.args, program], {
    cwd: folder,
    env: { ...system, REDIS_URL: redisUrl },
    // A program takes seconds, so kill one that hangs
    timeout: 120_000,
    killSignal: "SIGKILL"
  })
  return { passed: !failed && /(?:^|\n)holds$/.test(text), text }
}

/** Runs programs concurrently, because they mostly sleep, and reports those that fail. */
export const mustHold = (runtime, folder, programs, redisUrl) =>
  Promise.all(programs.map(async (program) => {
    const { passed, text } = await holds(runtime, folder, program, redisUrl)
    if (!passed) problem(`${program} on ${runtime.name} (${runtime.command}):\n${text}`)
  }))
