// `npx effect-simba` as an operator runs it: in an application that has the package of the command line and no other.
import { join } from "node:path"
import { fromTarballs, install, system } from "./consumer.mjs"
import { run } from "./processes.mjs"
import { problem } from "./report.mjs"

export const runCommandLineAlone = async (packed, temporary, redisUrl) => {
  const folder = join(temporary, "command-line")
  await install(folder, fromTarballs(packed.filter(({ name }) => name === "effect-simba")))
  const { text } = await run("npx", ["--no", "effect-simba", "doctor", "--json"], {
    cwd: folder,
    env: { ...system, REDIS_URL: redisUrl },
    shell: process.platform === "win32"
  })
  // The exit code is 1 if it gives advice
  if (!/"findings":\[/.test(text)) problem(`npx effect-simba doctor:\n${text}`)
}
