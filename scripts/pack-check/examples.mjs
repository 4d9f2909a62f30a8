// Runs the examples on the packed packages, in an application that has installed their imports. Uses the repository's
// own test for the examples, which starts each example as described in its header.
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { filesFrom, root } from "../lib/workspace.mjs"
import { fromTarballs, install, pinned, system } from "./consumer.mjs"
import { run } from "./processes.mjs"
import { problem } from "./report.mjs"

const test = "examples/test/programs.test.ts"

/** Creates the application and returns its folder. */
export const installExamples = async (packed, temporary) => {
  const folder = join(temporary, "examples")
  const { dependencies } = JSON.parse(readFileSync(join(root, "examples/package.json"), "utf8"))
  const others = Object.entries(dependencies).filter(([, version]) => !version.startsWith("workspace:"))
  const tools = ["@effect/vitest", "vitest"].map((name) => [name, pinned[name]])
  await install(folder, { ...Object.fromEntries([...others, ...tools]), ...fromTarballs(packed) })
  const programs = readdirSync(join(root, "examples")).filter((name) => name.endsWith(".ts"))
  for (
    const file of new Set([test, ...programs.map((name) => `examples/${name}`)].flatMap((file) => [...filesFrom(file)]))
  ) {
    cpSync(join(root, file), join(folder, file))
  }
  writeFileSync(
    join(folder, "vitest.config.mjs"),
    `export default ${JSON.stringify({ test: { include: [test], testTimeout: 60_000, hookTimeout: 60_000 } })}\n`
  )
  return folder
}

/** The example for runtimes other than Node. */
export const runOn = async (runtime, folder, redisUrl) => {
  const { failed, text } = await run(runtime.command, [...runtime.args, "examples/own-client.ts"], {
    cwd: folder,
    env: { ...system, REDIS_URL: redisUrl },
    timeout: 60_000,
    killSignal: "SIGKILL"
  })
  if (failed || !/visits: \d+/.test(text)) {
    problem(`examples/own-client.ts on ${runtime.name} ${runtime.version}:\n${text}`)
  }
}
